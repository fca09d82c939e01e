-- Limits. Only jobs that have one touch these tables, and only they have a line.
-- A job with limits waits before its gates with run_at = 9998-01-01, out of the way of claims, until a pass lets it
-- through. Its place among the permits is freed by what becomes of its row: nothing is written when it ends.
CREATE TABLE gates (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    name        TEXT    NOT NULL,
    key         TEXT    NOT NULL,           -- whose; empty: everybody's
    concurrency INTEGER,
    rate        INTEGER,
    period      INTEGER,
    burst       INTEGER NOT NULL,
    open_window INTEGER,
    tokens      REAL    NOT NULL DEFAULT 0,
    refilled_at INTEGER,
    UNIQUE (name, key)
) STRICT;
-- Jobs that wait for exactly the same gates stand in one line: if its first cannot pass, none of it can.
CREATE TABLE lines (
    id    INTEGER PRIMARY KEY AUTOINCREMENT,
    gates TEXT    NOT NULL UNIQUE           -- ids of gates, sorted, with commas between them
) STRICT;
CREATE TABLE permits (
    gate_id INTEGER NOT NULL,
    job_id  INTEGER NOT NULL,
    PRIMARY KEY (gate_id, job_id)
) STRICT, WITHOUT ROWID;
ALTER TABLE jobs ADD COLUMN line_id INTEGER;
ALTER TABLE jobs ADD COLUMN due_at INTEGER;
CREATE INDEX jobs_gated ON jobs (line_id, priority DESC, due_at, id) WHERE run_at = 253339228800000000;
ALTER TABLE dead_jobs ADD COLUMN line_id INTEGER;
ALTER TABLE schedules ADD COLUMN line_id INTEGER;

-- Queues that are paused: claims pass their lanes by.
ALTER TABLE lanes ADD COLUMN paused INTEGER NOT NULL DEFAULT 0;
CREATE TABLE queue_pauses (
    queue     TEXT    NOT NULL PRIMARY KEY,
    paused_at INTEGER NOT NULL,
    paused_by TEXT    NOT NULL,
    note      TEXT
) STRICT, WITHOUT ROWID;
