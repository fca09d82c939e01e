// Graphile Worker on PostgreSQL.
import { setTimeout as pause } from "node:timers/promises";

import { Logger, makeWorkerUtils, parseCronItems, run } from "graphile-worker";
import pg from "pg";

import { run as command, SCHEDULES, URL } from "./commands.mjs";
import { mark } from "./mark.mjs";

const CONCURRENCY = 24;
const LOCAL_QUEUE = 2000;
const SLOW = 10;

const waiting = [];
let slow = 0;

const tasks = {
  noop: async ({ number, sentAt }) => mark(number, sentAt),
  slow: async ({ number, sentAt }) => {
    // Concurrency is one number for all tasks of a worker, so this task keeps its own.
    if (slow === SLOW) await new Promise((resolve) => waiting.push(resolve));
    else slow += 1;
    mark(number, sentAt);
    await pause(1000);
    mark(number, sentAt, "e");
    if (waiting.length) waiting.shift()();
    else slow -= 1;
  },
  tick: async ({ number }) => mark(number, 0, "t"),
};

const quiet = new Logger(() => (level, message) => {
  if (level === "error" || level === "warning") console.error(message);
});

const options = { connectionString: URL, logger: quiet };

const about = {
  label: "Graphile Worker",
  package: "graphile-worker",
  durability:
    "PostgreSQL: jobs and completions are committed; completions wait for others of the same moment, and a killed " +
    "worker's jobs, those it only fetched too, run again after 4 hours.",
  settings:
    `concurrentJobs ${CONCURRENCY} (10 and 100 tried), localQueue.size ${LOCAL_QUEUE} (200 to 5,000 tried: jobs ` +
    "are fetched in batches), completeJobBatchDelay and failJobBatchDelay 0 (0, 10 and 100 ms tried: completions are " +
    "written in batches, without a wait); addJobs of 1,000 (5,000 to 60,000 were no faster). Node 24, which it asks for.",
  handlers: ["async"],
  bulk: 1000,
  schedules: ["minute"],
};

async function prepare() {
  const utils = await makeWorkerUtils(options);
  try {
    await utils.migrate();
  } finally {
    await utils.release();
  }
}

async function worker() {
  const schedules = Array.from({ length: SCHEDULES }, (_, number) => ({
    task: "tick",
    match: "* * * * *",
    identifier: `tick-${number}`,
    payload: { number },
  }));
  const batches = {
    concurrentJobs: CONCURRENCY,
    localQueue: { size: LOCAL_QUEUE },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
  };
  const preset = { worker: { connectionString: URL, logger: quiet, maxPoolSize: CONCURRENCY + 2, ...batches } };
  const runner = await run({ preset, taskList: tasks, parsedCronItems: parseCronItems(schedules) });
  await runner.promise;
}

async function client() {
  const utils = await makeWorkerUtils(options);
  await utils.withPgClient((connection) => connection.query("select 1"));
  return {
    one: (task, number, sentAt) => utils.addJob(task, { number, sentAt }),
    many: (jobs) => utils.addJobs(jobs.map((payload) => ({ identifier: "noop", payload }))),
    close: () => utils.release(),
  };
}

async function pending() {
  const connection = new pg.Client(URL);
  await connection.connect();
  try {
    const { rows } = await connection.query("select count(*)::int as pending from graphile_worker._private_jobs");
    return rows[0].pending;
  } finally {
    await connection.end();
  }
}

await command({ about, prepare, worker, client, pending });
