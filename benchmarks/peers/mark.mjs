// The same bytes as mark.py.
import fs from "node:fs";

let log;

export function mark(number, sentAt = 0, kind = "s") {
  const record = Buffer.alloc(29);
  record.write(kind, 0, "latin1");
  record.writeBigInt64LE(BigInt(number), 1);
  record.writeDoubleLE(sentAt, 9);
  record.writeDoubleLE((performance.timeOrigin + performance.now()) / 1000, 17);
  record.writeInt32LE(process.pid, 25);
  log ??= fs.openSync(process.env.PEER_LOG, "a");
  fs.writeSync(log, record);
}
