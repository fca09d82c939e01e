// The commands of README.md for a peer in Node, as commands.py is for one in Python.
//
// A peer has `about` (as README.md says, with `package` instead of `version`, and with `bulk` as the number of jobs
// that one call stores at most), `prepare()`, `worker()`, `pending()` and `client()`, which connects and resolves
// to { one(task, number, sentAt), many([{ number, sentAt }…]) for `noop` jobs, close() }.
import fs from "node:fs";
import { setTimeout as pause } from "node:timers/promises";

export const URL = process.env.PEER_URL;
export const SCHEDULES = Number(process.env.PEER_SCHEDULES ?? 0);

const PERIOD = Number(process.env.PEER_PERIOD ?? 60);
const GRACE = 1.0; // A feeder that is later than this when its time is over stops.

class Unsupported extends Error {}

export async function run(peer) {
  const [name, ...given] = process.argv.slice(2);
  const known = {
    about: () => about(peer.about),
    prepare: () => peer.prepare(),
    worker: () => {
      canRun(peer.about);
      return peer.worker();
    },
    scheduler: () => {
      throw new Unsupported(`the workers of ${peer.about.label} fire its schedules`);
    },
    enqueue: (how, count) => connected(peer, (client) => enqueue(client, how, Number(count), peer.about.bulk)),
    feed: (rate, seconds) => connected(peer, (client) => feed(client, Number(rate), Number(seconds), peer.about.bulk)),
    hold: (count) => connected(peer, (client) => oneByOne(client, "slow", Number(count))),
    pending: async () => ({ pending: await peer.pending() }),
  };
  let answer;
  try {
    answer = await known[name](...given);
  } catch (error) {
    if (!(error instanceof Unsupported)) throw error;
    answer = { unsupported: error.message };
  }
  if (answer !== undefined) console.log(JSON.stringify(answer));
}

function about({ package: name, bulk, ...rest }) {
  const installed = new globalThis.URL(`node_modules/${name}/package.json`, import.meta.url);
  const { version } = JSON.parse(fs.readFileSync(installed, "utf8"));
  return { ...rest, version, bulk: bulk > 0, lacks: {} };
}

function canRun({ label, handlers, schedules }) {
  const handler = process.env.PEER_HANDLER || handlers[0];
  if (!handlers.includes(handler)) throw new Unsupported(`${label} has no ${handler} handlers`);
  const kind = PERIOD < 60 ? "second" : "minute";
  if (SCHEDULES && !schedules.includes(kind)) throw new Unsupported(`${label} has no schedules of one ${kind}`);
}

async function connected(peer, act) {
  const client = await peer.client();
  try {
    return await act(client);
  } finally {
    await client.close();
  }
}

function enqueue(client, how, count, atOnce) {
  return how === "bulk" ? inBulk(client, count, atOnce) : oneByOne(client, "noop", count);
}

async function oneByOne(client, task, count) {
  const began = now();
  for (let number = 0; number < count; number += 1) await client.one(task, number, now());
  return { seconds: now() - began };
}

async function inBulk(client, count, atOnce) {
  const began = now();
  for (let first = 0; first < count; first += atOnce) {
    const sentAt = now();
    const length = Math.min(atOnce, count - first);
    await client.many(Array.from({ length }, (_, index) => ({ number: first + index, sentAt })));
  }
  return { seconds: now() - began };
}

async function feed(client, rate, seconds, atOnce) {
  const began = now();
  const total = Math.round(rate * seconds);
  let sent = 0;
  let woke = began; // A timer that rings late is not the peer's: see commands.py.
  while (sent < total && now() < began + seconds + GRACE) {
    const passed = now() - began;
    const due = Math.min(total, Math.floor(passed * rate) + 1);
    if (sent === due) {
      // Until the next one is due, and not by a slice of time: see commands.py.
      await pause((sent / rate - passed) * 1000);
      woke = now();
      continue;
    }
    const length = Math.min(due - sent, atOnce);
    const first = sent;
    await client.many(
      Array.from({ length }, (_, index) => ({
        number: first + index,
        sentAt: Math.max(began + (first + index) / rate, woke),
      })),
    );
    sent += length;
  }
  return { sent, seconds: now() - began };
}

function now() {
  return (performance.timeOrigin + performance.now()) / 1000;
}
