CREATE TABLE dead_jobs (
    id           INTEGER NOT NULL PRIMARY KEY,
    run_at       INTEGER NOT NULL,
    enqueued_at  INTEGER NOT NULL,
    died_at      INTEGER NOT NULL,
    schedule_id  INTEGER,
    slot_at      INTEGER,
    queue        TEXT    NOT NULL,
    task         TEXT    NOT NULL,
    fence        INTEGER NOT NULL,
    priority     INTEGER NOT NULL,
    max_attempts INTEGER NOT NULL,
    failures     INTEGER NOT NULL,
    crashes      INTEGER NOT NULL,
    reason       TEXT    NOT NULL,
    payload      BLOB    NOT NULL,
    errors       TEXT    NOT NULL              -- JSON
) STRICT;
CREATE TABLE fires (
    spec_id INTEGER NOT NULL,
    slot_at INTEGER NOT NULL,
    since   INTEGER,
    last_id INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (spec_id, slot_at)
) STRICT, WITHOUT ROWID;
CREATE TABLE jobs (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    run_at       INTEGER NOT NULL,
    enqueued_at  INTEGER NOT NULL,
    claimed_at   INTEGER NOT NULL DEFAULT 0,
    worker_id    INTEGER NOT NULL DEFAULT 0,   -- 0: nobody's
    schedule_id  INTEGER,
    slot_at      INTEGER,
    queue        TEXT    NOT NULL,
    task         TEXT    NOT NULL,
    fence        INTEGER NOT NULL DEFAULT 0,   -- +1 with every claim
    priority     INTEGER NOT NULL,
    max_attempts INTEGER NOT NULL,
    failures     INTEGER NOT NULL DEFAULT 0,
    crashes      INTEGER NOT NULL DEFAULT 0,
    payload      BLOB    NOT NULL,
    errors       TEXT                          -- JSON
) STRICT;
CREATE INDEX jobs_held ON jobs (worker_id) WHERE worker_id <> 0;
CREATE INDEX jobs_ready ON jobs (queue, priority, run_at, id) WHERE worker_id = 0;
CREATE TABLE lanes (
    queue    TEXT    NOT NULL,
    priority INTEGER NOT NULL,
    PRIMARY KEY (queue, priority)
) STRICT, WITHOUT ROWID;
CREATE TABLE members (
    id          INTEGER NOT NULL PRIMARY KEY,  -- random per process start
    role        TEXT    NOT NULL,
    name        TEXT    NOT NULL,
    queues      TEXT    NOT NULL,              -- JSON
    tasks       TEXT    NOT NULL,              -- JSON
    version     TEXT    NOT NULL,
    tzdata      TEXT    NOT NULL,
    started_at  INTEGER NOT NULL,
    lease_until INTEGER NOT NULL,
    dead        INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE migrations (
    version    INTEGER NOT NULL PRIMARY KEY,
    name       TEXT    NOT NULL,
    checksum   TEXT    NOT NULL,
    applied_at INTEGER NOT NULL
) STRICT;
CREATE TABLE runs (
    job_id       INTEGER NOT NULL,
    finished_at  INTEGER NOT NULL,
    started_at   INTEGER,                      -- null: ended before any handler began
    enqueued_at  INTEGER NOT NULL,
    run_at       INTEGER NOT NULL,
    worker_id    INTEGER NOT NULL,
    schedule_id  INTEGER,
    slot_at      INTEGER,
    queue        TEXT    NOT NULL,
    task         TEXT    NOT NULL,
    fence        INTEGER NOT NULL,
    priority     INTEGER NOT NULL,
    max_attempts INTEGER NOT NULL,
    failures     INTEGER NOT NULL,             -- before this run
    crashes      INTEGER NOT NULL,
    verdict      INTEGER NOT NULL,
    payload      BLOB,                         -- kept with the run that ended the job, unless it is dead
    result       BLOB,
    error        TEXT                          -- JSON
) STRICT;
CREATE INDEX runs_finished ON runs (finished_at);
CREATE INDEX runs_job ON runs (job_id);
CREATE TABLE schedules (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    name         TEXT    NOT NULL UNIQUE,
    spec_id      INTEGER NOT NULL,
    task         TEXT    NOT NULL,
    queue        TEXT    NOT NULL,
    priority     INTEGER NOT NULL,
    max_attempts INTEGER NOT NULL,
    payload      BLOB    NOT NULL,
    misfire      TEXT    NOT NULL,
    catch_up     INTEGER NOT NULL,
    version      INTEGER NOT NULL DEFAULT 1,
    active_from  INTEGER NOT NULL
) STRICT;
CREATE INDEX schedules_spec ON schedules (spec_id, id);
CREATE TABLE slots (
    schedule_id INTEGER NOT NULL,
    slot_at     INTEGER NOT NULL,
    decided_at  INTEGER NOT NULL,
    since       INTEGER,
    job_id      INTEGER,
    disposition INTEGER NOT NULL,
    reason      TEXT,
    PRIMARY KEY (schedule_id, slot_at)
) STRICT, WITHOUT ROWID;
CREATE INDEX slots_at ON slots (slot_at);
CREATE TABLE specs (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    trigger      TEXT    NOT NULL UNIQUE,
    next_at      INTEGER,                      -- null: no slot is left
    following_at INTEGER,
    planned      INTEGER NOT NULL              -- following_at is known
) STRICT;
CREATE INDEX specs_due ON specs (next_at);
CREATE INDEX specs_unplanned ON specs (id) WHERE NOT planned;
