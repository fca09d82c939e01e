// pg-boss on PostgreSQL.
import { setTimeout as pause } from "node:timers/promises";

import pg from "pg";
import { PgBoss } from "pg-boss";

import { run, SCHEDULES, URL } from "./commands.mjs";
import { mark } from "./mark.mjs";

const BATCH = 2000;
const WORKERS = 4;
const QUEUES = ["noop", "slow", "tick"];

const about = {
  label: "pg-boss",
  package: "pg-boss",
  durability:
    "PostgreSQL: jobs and completions are committed; a batch is completed as one when its handler ended, and a " +
    "killed worker's jobs run again after 15 minutes.",
  settings:
    `batchSize ${BATCH} (100 to 4,000 tried), localConcurrency ${WORKERS} (1 to 10 tried: loops that fetch while ` +
    "others run), burstWhenBatchFull, useListenNotify and the queue's notify (a job wakes a worker), polls every " +
    "0.5 s, its least; a batch is completed as one. cronMonitorIntervalSeconds and cronWorkerIntervalSeconds 1, " +
    "their least. insert() of 1,000 (5,000 was no faster). A partition of its own for the queue was no faster. Node 24, which it asks for.",
  handlers: ["async"],
  bulk: 1000,
  schedules: ["minute"],
};

/** Started, with only what the caller needs of its loops. */
async function boss(options = {}) {
  const found = new PgBoss({ connectionString: URL, supervise: false, schedule: false, ...options });
  found.on("error", (error) => console.error(error));
  await found.start();
  return found;
}

async function prepare() {
  const found = await boss();
  for (const name of QUEUES) await found.createQueue(name, { notify: true });
  for (let number = 0; number < SCHEDULES; number += 1)
    await found.schedule("tick", "* * * * *", { number }, { key: `tick-${number}` });
  await found.stop();
}

async function worker() {
  const scheduled = { schedule: SCHEDULES > 0, cronMonitorIntervalSeconds: 1, cronWorkerIntervalSeconds: 1 };
  const found = await boss({ supervise: true, useListenNotify: true, ...scheduled });
  const often = { pollingIntervalSeconds: 0.5, notifyPollingIntervalSeconds: 0.5, burstWhenBatchFull: true };
  const batch = { ...often, batchSize: BATCH, localConcurrency: WORKERS };
  await found.work("noop", batch, async (jobs) => {
    for (const { data } of jobs) mark(data.number, data.sentAt);
  });
  if (SCHEDULES)
    await found.work("tick", batch, async (jobs) => {
      for (const { data } of jobs) mark(data.number, 0, "t");
    });
  await found.work("slow", { ...often, localConcurrency: 10 }, async ([{ data }]) => {
    mark(data.number, data.sentAt);
    await pause(1000);
    mark(data.number, data.sentAt, "e");
  });
}

async function client() {
  const found = await boss();
  // Which options a queue has is read at its first use, and kept.
  await found.getQueue("noop");
  return {
    one: (task, number, sentAt) => found.send(task, { number, sentAt }),
    many: (jobs) => found.insert("noop", jobs.map((data) => ({ data }))),
    close: () => found.stop({ graceful: false }),
  };
}

async function pending() {
  const connection = new pg.Client(URL);
  await connection.connect();
  try {
    const { rows } = await connection.query(
      "select count(*)::int as pending from pgboss.job where state < 'completed' and name = any($1)",
      [QUEUES],
    );
    return rows[0].pending;
  } finally {
    await connection.end();
  }
}

await run({ about, prepare, worker, client, pending });
