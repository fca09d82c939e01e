-- The whole layout, column for column PostgreSQL's. Times and lengths are integers, in
-- microseconds; queue and task names are text, for a file that is read in place gains little from
-- a dictionary.

-- Every (queue, priority) ever used. A claim walks these, best priority first, with an equality on
-- the priority: one range scan of jobs_ready each, which ends at now and so never walks jobs that
-- are not due.
CREATE TABLE priority_levels (
    queue    TEXT    NOT NULL,
    priority INTEGER NOT NULL,
    -- Queues that are paused: claims pass their priority levels by.
    paused   INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (queue, priority)
) STRICT, WITHOUT ROWID;

-- Live jobs only: delayed, ready and running. AUTOINCREMENT, because finished jobs leave and an id
-- must never come back. SQLite has no HOT updates to lose, so the indexes are partial: a claim moves
-- the row from one to the other.
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
    errors       TEXT,                         -- JSON
    -- Slots of the past, run on request. A backfill's jobs are told apart, for overlap takes no notice of them.
    backfill_id  INTEGER,
    limit_set_id      INTEGER,
    due_at       INTEGER,
    -- Deadlines of jobs; most jobs have none, and are in no index for it.
    expires_at   INTEGER,
    -- The workflow whose step a job is. Null for nearly every job.
    workflow_id  INTEGER,
    -- The trace that a job goes on with: a W3C traceparent, and after a space a tracestate if there is one.
    trace        TEXT,
    -- Jobs that may have ended a process. NULL for nearly all. Otherwise the fence of the job's last run that was put on record when
    -- it began, 0 for none: a worker that dies costs such a job a crash only where that is the claim it died with.
    orphan      INTEGER,
    -- What claims and passes compute with. The column holds nothing.
    readable     INTEGER CHECK (
        previous_at BETWEEN -2208988800000000 AND 253402214400000000
        AND run_at BETWEEN -2208988800000000 AND 253402214400000000
        AND enqueued_at BETWEEN -2208988800000000 AND 253402214400000000
        AND claimed_at BETWEEN -2208988800000000 AND 253402214400000000
        AND coalesce(slot_at, 0) BETWEEN -2208988800000000 AND 253402214400000000
        AND coalesce(due_at, 0) BETWEEN -2208988800000000 AND 253402214400000000
        AND coalesce(expires_at, 0) BETWEEN -2208988800000000 AND 253402214400000000
        AND fence BETWEEN 0 AND 2147483646
        AND failures BETWEEN 0 AND 32766
        AND crashes BETWEEN 0 AND 32766
        AND max_attempts BETWEEN 1 AND 32766
    ),
    previous_at  INTEGER
) STRICT;
CREATE INDEX jobs_ready ON jobs (queue, priority, run_at, id) WHERE worker_id = 0;
CREATE INDEX jobs_held ON jobs (worker_id) WHERE worker_id <> 0;
-- Live jobs by schedule, for overlap; and those held back until their predecessors have ended, whose
-- run_at is the end of time: PostgreSQL's jobs_held, a name that is taken here.
CREATE INDEX jobs_schedule ON jobs (schedule_id) WHERE schedule_id IS NOT NULL;
CREATE INDEX jobs_waiting ON jobs (schedule_id, id) WHERE run_at = 253370764800000000;
CREATE INDEX jobs_backfill ON jobs (backfill_id) WHERE backfill_id IS NOT NULL;
CREATE INDEX jobs_limited ON jobs (limit_set_id, priority DESC, due_at, id) WHERE run_at = 253339228800000000;
CREATE INDEX jobs_expiring ON jobs (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX jobs_orphans ON jobs (queue, priority, crashes, run_at, id) WHERE orphan IS NOT NULL;

-- History: append-only, pruned by whole days.
CREATE TABLE runs (
    job_id       INTEGER NOT NULL,
    finished_at  INTEGER NOT NULL,
    started_at   INTEGER,            -- null: ended before any handler began
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
    failures     INTEGER NOT NULL,   -- before this run
    crashes      INTEGER NOT NULL,
    verdict      INTEGER NOT NULL,
    payload      BLOB,               -- kept with the run that ended the job, unless it is dead
    result       BLOB,
    error        TEXT                -- JSON
) STRICT;
CREATE INDEX runs_job ON runs (job_id);
CREATE INDEX runs_finished ON runs (finished_at);
-- For results that are not kept as long as their run. An empty one was dropped.
CREATE INDEX runs_results ON runs (finished_at) WHERE result <> X'';

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
    errors       TEXT    NOT NULL,   -- JSON
    limit_set_id      INTEGER,
    expires_at   INTEGER,
    workflow_id  INTEGER,
    trace        TEXT,
    CHECK (
        run_at BETWEEN -2208988800000000 AND 253402214400000000
        AND enqueued_at BETWEEN -2208988800000000 AND 253402214400000000
        AND died_at BETWEEN -2208988800000000 AND 253402214400000000
        AND slot_at BETWEEN -2208988800000000 AND 253402214400000000
        AND expires_at BETWEEN -2208988800000000 AND 253402214400000000
    )
) STRICT;
-- How many died lately, without reading all that ever did.
CREATE INDEX dead_jobs_died ON dead_jobs (died_at);
-- Dead letters are counted for each task, and looked for by schedule: many of one must not hide another.
CREATE INDEX dead_jobs_task ON dead_jobs (task, died_at);
CREATE INDEX dead_jobs_schedule ON dead_jobs (schedule_id, slot_at) WHERE schedule_id IS NOT NULL AND slot_at IS NOT NULL;

-- Processes. A beat touches one row and no index.
CREATE TABLE processes (
    id          INTEGER NOT NULL PRIMARY KEY,   -- random per process start
    role        TEXT    NOT NULL,
    name        TEXT    NOT NULL,
    queues      TEXT    NOT NULL,               -- JSON
    tasks       TEXT    NOT NULL,               -- JSON
    version     TEXT    NOT NULL,
    tzdata      TEXT    NOT NULL,
    started_at  INTEGER NOT NULL,
    lease_until INTEGER NOT NULL,
    dead        INTEGER NOT NULL DEFAULT 0,
    -- What each process had in hand when it last said that it lives, and how far its clock is from the database's.
    skew        INTEGER,
    holding     TEXT    NOT NULL DEFAULT '[]',
    -- How long a process's lease lasts. After an outage every process has that long again to renew it.
    lease       INTEGER NOT NULL DEFAULT 15000000,
    -- What claims and passes compute with. The column holds nothing.
    readable    INTEGER CHECK (
        started_at BETWEEN -2208988800000000 AND 253402214400000000
        AND lease_until BETWEEN -2208988800000000 AND 253402214400000000
        AND lease BETWEEN 0 AND 316224000000000000
    )
) STRICT;

-- A trigger shared by every schedule that has it. This is what falls due.
CREATE TABLE specs (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    trigger      TEXT    NOT NULL,
    next_at      INTEGER,            -- null: no slot is left
    following_at INTEGER,
    planned      INTEGER NOT NULL,   -- following_at is known
    -- Schedules that want every missed slot do not share a spec with those that want the newest.
    catch_up     INTEGER NOT NULL DEFAULT -1000000,   -- negative: coalesce
    -- What claims and passes compute with. The column holds nothing.
    readable     INTEGER CHECK (
        last_at BETWEEN -2208988800000000 AND 253402214400000000
        AND coalesce(next_at, 0) BETWEEN -2208988800000000 AND 253402214400000000
        AND coalesce(following_at, 0) BETWEEN -2208988800000000 AND 253402214400000000
        AND catch_up BETWEEN -1000000 AND 316224000000000000
    ),
    -- What a slot's job stands for: the slot before its own, worked out once when the slot is opened, and given to its jobs. Null
    -- where missed slots were combined into it, or where it has none: then it is looked up.
    last_at      INTEGER,
    UNIQUE (trigger, catch_up)
) STRICT;
CREATE INDEX specs_due ON specs (next_at);
CREATE INDEX specs_unplanned ON specs (id) WHERE NOT planned;

CREATE TABLE schedules (
    id                  INTEGER PRIMARY KEY AUTOINCREMENT,
    name                TEXT    NOT NULL UNIQUE,
    spec_id             INTEGER NOT NULL,
    task                TEXT    NOT NULL,
    queue               TEXT    NOT NULL,
    priority            INTEGER NOT NULL,
    max_attempts        INTEGER NOT NULL,
    payload             BLOB    NOT NULL,
    misfire             TEXT    NOT NULL,
    catch_up            INTEGER NOT NULL,
    version             INTEGER NOT NULL DEFAULT 1,
    active_from         INTEGER NOT NULL,
    overlap             TEXT    NOT NULL DEFAULT 'skip',
    overlap_limit       INTEGER NOT NULL DEFAULT 1,
    offset_by           INTEGER NOT NULL DEFAULT 0,
    jitter              INTEGER NOT NULL DEFAULT 0,
    max_fires           INTEGER,
    fires_left          INTEGER,
    skips               INTEGER NOT NULL DEFAULT 0,
    edited              INTEGER NOT NULL DEFAULT 0,
    paused_at           INTEGER,
    paused_by           TEXT,
    pause_note          TEXT,
    -- The last pause that has ended: slots of it that nobody had opened are skipped as paused when somebody does.
    last_paused_at      INTEGER,
    last_resumed_at     INTEGER,
    limit_set_id             INTEGER,
    expires_after       INTEGER,
    -- What somebody expects of a schedule's slots; most schedules have neither, and are in no index for it.
    expect_start_within INTEGER,
    expect_finish_by    INTEGER,
    -- What claims and passes compute with. The column holds nothing.
    readable            INTEGER CHECK (
        last_paused_at BETWEEN -2208988800000000 AND 253402214400000000
        AND last_resumed_at BETWEEN -2208988800000000 AND 253402214400000000
        AND active_from BETWEEN -2208988800000000 AND 253402214400000000
        AND coalesce(paused_at, 0) BETWEEN -2208988800000000 AND 253402214400000000
        AND catch_up BETWEEN 0 AND 316224000000000000
        AND offset_by BETWEEN 0 AND 316224000000000000
        AND jitter BETWEEN 0 AND 316224000000000000
        AND coalesce(expires_after, 0) BETWEEN 0 AND 316224000000000000
        AND misfire IN ('latest', 'all', 'skip')
        AND overlap IN ('skip', 'queue_one', 'queue_all', 'allow', 'replace')
        AND max_attempts BETWEEN 1 AND 32766
        AND overlap_limit >= 0
        AND skips >= 0
    )
) STRICT;
CREATE INDEX schedules_spec ON schedules (spec_id, id);
CREATE INDEX schedules_expecting ON schedules (id) WHERE expect_start_within IS NOT NULL OR expect_finish_by IS NOT NULL;
CREATE INDEX schedules_skips ON schedules (spec_id, skips) WHERE skips > 0;

-- A slot being fired: how far through its schedules we are.
CREATE TABLE firings (
    spec_id     INTEGER NOT NULL,
    slot_at     INTEGER NOT NULL,
    since       INTEGER,
    last_id     INTEGER NOT NULL DEFAULT 0,
    skip        TEXT,
    note        TEXT,
    previous_at INTEGER,
    -- The newest of the missed slots that a fire stands for, as many as a schedule is asked to skip: such a request is for slots,
    -- not for rows. Few schedules have one.
    combined    TEXT,   -- JSON
    PRIMARY KEY (spec_id, slot_at),
    CHECK (
        slot_at BETWEEN -2208988800000000 AND 253402214400000000
        AND since BETWEEN -2208988800000000 AND 253402214400000000
        AND previous_at BETWEEN -2208988800000000 AND 253402214400000000
    )
) STRICT, WITHOUT ROWID;
-- The oldest fire first, without sorting all that are open at the top of the hour.
CREATE INDEX firings_oldest ON firings (slot_at, spec_id);

-- The ledger. Its key is the promise: one row for a slot, for ever.
CREATE TABLE slots (
    schedule_id INTEGER NOT NULL,
    slot_at     INTEGER NOT NULL,
    decided_at  INTEGER NOT NULL,
    since       INTEGER,
    job_id      INTEGER,
    disposition INTEGER NOT NULL,
    reason      TEXT,
    blocker     INTEGER,
    note        TEXT,
    PRIMARY KEY (schedule_id, slot_at)
) STRICT, WITHOUT ROWID;
-- For pruning, which would otherwise read the whole ledger under the write lock.
CREATE INDEX slots_at ON slots (slot_at);
-- Slots that were dropped, by schedule: alerts ask for them. Other rows are in no index of this kind.
CREATE INDEX slots_dropped ON slots (schedule_id, decided_at) WHERE disposition = 1 AND reason IN ('too_late', 'breaker');

CREATE TABLE schedule_versions (
    schedule_id INTEGER NOT NULL,
    version     INTEGER NOT NULL,
    name        TEXT    NOT NULL,
    change      TEXT    NOT NULL,
    changed_at  INTEGER NOT NULL,
    author      TEXT    NOT NULL,
    note        TEXT,
    definition  TEXT    NOT NULL,   -- the schedule as JSON, as it was from then on
    PRIMARY KEY (schedule_id, version),
    CHECK (
        changed_at BETWEEN -2208988800000000 AND 253402214400000000
    )
) STRICT, WITHOUT ROWID;
CREATE INDEX schedule_versions_name ON schedule_versions (name);

-- Leases of user code. A row stays for ever, released or not, so that its token only ever rises.
CREATE TABLE leases (
    name        TEXT    NOT NULL PRIMARY KEY,
    token       INTEGER NOT NULL,   -- +1 with every new holder
    holder_id   INTEGER NOT NULL,   -- random for each acquisition; 0: released
    holder      TEXT    NOT NULL,   -- for people to read
    expires_at  INTEGER NOT NULL,
    acquired_at INTEGER NOT NULL,
    -- What claims and passes compute with. The column holds nothing.
    readable    INTEGER CHECK (
        expires_at BETWEEN -2208988800000000 AND 253402214400000000
        AND acquired_at BETWEEN -2208988800000000 AND 253402214400000000
        AND token BETWEEN 0 AND 9223372036854775806
    )
) STRICT, WITHOUT ROWID;

-- Business calendars: named, and a new row for every version. Triggers name both.
CREATE TABLE calendars (
    name       TEXT    NOT NULL,
    version    INTEGER NOT NULL,
    definition TEXT    NOT NULL,
    PRIMARY KEY (name, version)
) STRICT;

CREATE TABLE backfills (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    schedule     TEXT    NOT NULL,
    start_at     INTEGER NOT NULL,
    end_at       INTEGER NOT NULL,
    author       TEXT    NOT NULL,
    max_active   INTEGER NOT NULL,
    reverse      INTEGER NOT NULL,
    reprocess    TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    ended_at     INTEGER,
    cancelled_by TEXT,
    CHECK (
        start_at BETWEEN -2208988800000000 AND 253402214400000000
        AND end_at BETWEEN -2208988800000000 AND 253402214400000000
        AND created_at BETWEEN -2208988800000000 AND 253402214400000000
        AND ended_at BETWEEN -2208988800000000 AND 253402214400000000
    )
) STRICT;
CREATE INDEX backfills_active ON backfills (id) WHERE ended_at IS NULL;

CREATE TABLE backfill_slots (
    backfill_id INTEGER NOT NULL,
    place       INTEGER NOT NULL,   -- the order in which they run
    schedule_id INTEGER NOT NULL,
    slot_at     INTEGER NOT NULL,
    version     INTEGER NOT NULL,
    seen_job_id INTEGER,            -- what the ledger named when this was planned
    job_id      INTEGER,            -- what was made of it; NULL with done: somebody else was faster
    done        INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (backfill_id, place),
    CHECK (
        slot_at BETWEEN -2208988800000000 AND 253402214400000000
    )
) STRICT, WITHOUT ROWID;
CREATE INDEX backfill_slots_pending ON backfill_slots (backfill_id, place) WHERE NOT done;
CREATE INDEX backfill_slots_schedule ON backfill_slots (schedule_id, slot_at);

-- Keys of jobs that must not be doubled. Only jobs that have one touch this table, and only when they are inserted:
-- whether a key is taken is read off the job it names.
CREATE TABLE unique_keys (
    key    BLOB    NOT NULL PRIMARY KEY,   -- SHA-256
    name   TEXT    NOT NULL,               -- for people
    job_id INTEGER NOT NULL,
    until  INTEGER,                         -- kept so long, whatever becomes of the job
    CHECK (
        until BETWEEN -2208988800000000 AND 253402214400000000
    )
) STRICT, WITHOUT ROWID;
CREATE INDEX unique_keys_name ON unique_keys (name);

-- Limits. Only jobs that have one touch these tables, and only they have a line.
-- A job with limits waits before its limit keys with run_at = 9998-01-01, out of the way of claims, until a pass lets it
-- through. Its place among the limit holders is freed by what becomes of its row: nothing is written when it ends.
CREATE TABLE limit_keys (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    name        TEXT    NOT NULL,
    key         TEXT    NOT NULL,   -- whose; empty: everybody's
    concurrency INTEGER,
    rate        INTEGER,
    period      INTEGER,
    burst       INTEGER NOT NULL,
    open_window INTEGER,
    tokens      REAL    NOT NULL DEFAULT 0,
    refilled_at INTEGER,
    -- What claims and passes compute with. The column holds nothing.
    readable    INTEGER CHECK (
        coalesce(concurrency, 0) >= 0
        AND coalesce(rate, 0) >= 0
        AND burst >= 0
        AND coalesce(open_window, 0) >= 0
        AND tokens BETWEEN -1e15 AND 1e15
        AND coalesce(refilled_at, 0) BETWEEN -2208988800000000 AND 253402214400000000
    ),
    UNIQUE (name, key)
) STRICT;

-- Jobs that wait for exactly the same limit keys stand in one line: if its first cannot pass, none of it can.
CREATE TABLE limit_sets (
    id    INTEGER PRIMARY KEY AUTOINCREMENT,
    limit_keys TEXT    NOT NULL UNIQUE   -- ids of limit keys, sorted, with commas between them
) STRICT;

CREATE TABLE limit_holders (
    limit_key_id INTEGER NOT NULL,
    job_id  INTEGER NOT NULL,
    PRIMARY KEY (limit_key_id, job_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE queue_pauses (
    queue     TEXT    NOT NULL PRIMARY KEY,
    paused_at INTEGER NOT NULL,
    paused_by TEXT    NOT NULL,
    note      TEXT,
    CHECK (
        paused_at BETWEEN -2208988800000000 AND 253402214400000000
    )
) STRICT, WITHOUT ROWID;

-- What runs say of themselves. Only jobs that use it touch any of this.

-- How far a run is; it counts only while its fence is the job's.
CREATE TABLE progress (
    job_id   INTEGER NOT NULL PRIMARY KEY,
    fence    INTEGER NOT NULL,
    fraction REAL    NOT NULL,
    note     TEXT    NOT NULL,
    at       INTEGER NOT NULL,
    CHECK (
        at BETWEEN -2208988800000000 AND 253402214400000000
    )
) STRICT;

-- Captured lines, kept as long as the run.
CREATE TABLE run_logs (
    job_id      INTEGER NOT NULL,
    finished_at INTEGER NOT NULL,
    worker_id   INTEGER NOT NULL,
    fence       INTEGER NOT NULL,
    text        TEXT    NOT NULL
) STRICT;
CREATE INDEX run_logs_job ON run_logs (job_id);
CREATE INDEX run_logs_finished ON run_logs (finished_at);

-- Steps that a job's runs have done, for good: a run that comes after looks here before it acts. `value` is
-- for what a step answered. A row goes when its job has left the queue, the dead letters and history.
CREATE TABLE steps (
    job_id  INTEGER NOT NULL,
    name    TEXT    NOT NULL,
    value   BLOB,
    done_at INTEGER NOT NULL,
    PRIMARY KEY (job_id, name),
    CHECK (
        done_at BETWEEN -2208988800000000 AND 253402214400000000
    )
) STRICT, WITHOUT ROWID;

CREATE TABLE definitions (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    name       TEXT    NOT NULL,
    version    INTEGER NOT NULL,
    digest     BLOB    NOT NULL,   -- SHA-256 of the definition
    definition TEXT    NOT NULL,   -- JSON
    created_at INTEGER NOT NULL,
    UNIQUE (name, version),
    UNIQUE (name, digest),
    CHECK (
        created_at BETWEEN -2208988800000000 AND 253402214400000000
    )
) STRICT;

CREATE TABLE workflows (
    id            INTEGER NOT NULL PRIMARY KEY,   -- that of the job that started it
    started_at    INTEGER NOT NULL,
    ended_at      INTEGER,
    paused_at     INTEGER,
    parent_id     INTEGER,
    forked_from   INTEGER,
    definition_id INTEGER NOT NULL,
    nodes_left    INTEGER NOT NULL,
    nodes_failed  INTEGER NOT NULL DEFAULT 0,
    state         INTEGER NOT NULL DEFAULT 0,
    name          TEXT    NOT NULL,
    stopping      TEXT,
    params        BLOB    NOT NULL,
    step_ids      TEXT    NOT NULL,               -- JSON: one for each node, in the order of the definition
    -- What claims and passes compute with. The column holds nothing.
    readable      INTEGER CHECK (
        paused_at BETWEEN -2208988800000000 AND 253402214400000000
        AND state BETWEEN 0 AND 3
        AND started_at BETWEEN -2208988800000000 AND 253402214400000000
        AND coalesce(ended_at, 0) BETWEEN -2208988800000000 AND 253402214400000000
    )
) STRICT;
CREATE INDEX workflows_ended ON workflows (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX workflows_name ON workflows (name, id);
CREATE INDEX workflows_running ON workflows (id) WHERE state = 0;

CREATE TABLE workflow_steps (
    id           INTEGER NOT NULL PRIMARY KEY,   -- that of its job
    workflow_id  INTEGER NOT NULL,
    ended_at     INTEGER,
    place        INTEGER NOT NULL,               -- of its node in the definition
    item         INTEGER,                        -- of a map
    waits        INTEGER NOT NULL,               -- parents that have not ended; items, once a map is live
    items_failed INTEGER NOT NULL DEFAULT 0,
    fence        INTEGER NOT NULL DEFAULT 0,     -- claims of its job before it was made again
    state        INTEGER NOT NULL DEFAULT 0,
    cause        TEXT,
    result       BLOB,
    error        TEXT,                           -- JSON
    -- What claims and passes compute with. The column holds nothing.
    readable     INTEGER CHECK (
        state BETWEEN 0 AND 5
        AND coalesce(ended_at, 0) BETWEEN -2208988800000000 AND 253402214400000000
    )
) STRICT;
CREATE INDEX workflow_steps_place ON workflow_steps (workflow_id, place, item);

CREATE TABLE workflow_orders (
    workflow_id INTEGER NOT NULL,
    at          INTEGER NOT NULL,
    action         TEXT    NOT NULL,
    author      TEXT    NOT NULL,
    note        TEXT,
    CHECK (
        at BETWEEN -2208988800000000 AND 253402214400000000
    )
) STRICT;
CREATE INDEX workflow_orders_workflow ON workflow_orders (workflow_id, at);

-- Jobs of workflows that have left the queue, until somebody has dealt with it. Job 0: look at the workflow;
-- the workflow itself: its own job is gone.
CREATE TABLE ended_steps (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    workflow_id INTEGER NOT NULL,
    job_id      INTEGER NOT NULL
) STRICT;
-- However a job ends, its workflow hears of it, in the same transaction. A trigger, so that no statement can
-- forget it; its condition keeps it from jobs that have nothing to do with workflows.
CREATE TRIGGER jobs_ended AFTER DELETE ON jobs
WHEN OLD.workflow_id IS NOT NULL OR OLD.run_at = 253307692800000000
BEGIN
    INSERT INTO ended_steps (workflow_id, job_id) SELECT OLD.workflow_id, OLD.id WHERE OLD.workflow_id IS NOT NULL;
    INSERT INTO ended_steps (workflow_id, job_id)
    SELECT w.id, w.id FROM workflows w WHERE OLD.run_at = 253307692800000000 AND w.id = OLD.id AND w.state = 0;
END;

-- Events. Until somebody has sent one there is no row. A job waits as long as it has not been claimed again: until
-- its fence is another.
CREATE TABLE events (
    job_id  INTEGER NOT NULL,   -- whose; 0: everybody's
    name    TEXT    NOT NULL,
    payload BLOB    NOT NULL,
    sent_at INTEGER NOT NULL,
    PRIMARY KEY (job_id, name),
    CHECK (
        sent_at BETWEEN -2208988800000000 AND 253402214400000000
    )
) STRICT, WITHOUT ROWID;

CREATE TABLE event_waits (
    job_id INTEGER NOT NULL PRIMARY KEY,
    name   TEXT    NOT NULL,
    fence  INTEGER NOT NULL
) STRICT;
CREATE INDEX event_waits_name ON event_waits (name);

-- Who may come in from outside. A token and a session are known by the SHA-256 of their secret, which is kept nowhere.
CREATE TABLE tokens (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    digest       BLOB    NOT NULL UNIQUE CHECK (length(digest) = 32),
    name         TEXT    NOT NULL,
    role         TEXT    NOT NULL CHECK (role IN ('viewer', 'operator', 'admin')),
    scopes       TEXT    NOT NULL,   -- JSON
    hint         TEXT    NOT NULL,
    author       TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER,
    last_used_at INTEGER,
    revoked_at   INTEGER,
    CHECK (
        created_at BETWEEN -2208988800000000 AND 253402214400000000
        AND expires_at BETWEEN -2208988800000000 AND 253402214400000000
        AND last_used_at BETWEEN -2208988800000000 AND 253402214400000000
        AND revoked_at BETWEEN -2208988800000000 AND 253402214400000000
    )
) STRICT;

CREATE TABLE sessions (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    digest    BLOB    NOT NULL UNIQUE CHECK (length(digest) = 32),
    name      TEXT    NOT NULL,
    role      TEXT    NOT NULL CHECK (role IN ('viewer', 'operator', 'admin')),
    scopes    TEXT    NOT NULL,   -- JSON
    token_id  INTEGER,            -- the token it was opened with, and ends with
    opened_at INTEGER NOT NULL,
    seen_at   INTEGER NOT NULL,
    CHECK (
        opened_at BETWEEN -2208988800000000 AND 253402214400000000
        AND seen_at BETWEEN -2208988800000000 AND 253402214400000000
    )
) STRICT;
CREATE INDEX sessions_token ON sessions (token_id);
CREATE INDEX sessions_opened ON sessions (opened_at);

-- What people and programs ordered. Numbered without gaps; `digest` covers the entry and the digest before it.
CREATE TABLE audit_log (
    id       INTEGER NOT NULL PRIMARY KEY,
    at       INTEGER NOT NULL,
    phase    TEXT    NOT NULL CHECK (phase IN ('ordered', 'done', 'failed', 'refused')),
    action      TEXT    NOT NULL,
    actor    TEXT    NOT NULL,
    role     TEXT    NOT NULL,
    via      TEXT    NOT NULL,
    object   TEXT    NOT NULL,
    details  BLOB    NOT NULL,
    order_id INTEGER,   -- the entry that ordered what this one tells the end of
    address  TEXT    NOT NULL,
    digest   BLOB    NOT NULL,
    CHECK (
        at BETWEEN -2208988800000000 AND 253402214400000000
    )
) STRICT;
CREATE UNIQUE INDEX audit_log_order ON audit_log (order_id) WHERE order_id IS NOT NULL;
CREATE INDEX audit_log_first ON audit_log (id) WHERE order_id IS NULL;
CREATE INDEX audit_log_object ON audit_log (object, id) WHERE order_id IS NULL;
CREATE INDEX audit_log_actor ON audit_log (actor, id) WHERE order_id IS NULL;
CREATE INDEX audit_log_action ON audit_log (action, id) WHERE order_id IS NULL;

-- The last entry.
CREATE TABLE audit_log_head (
    one    INTEGER NOT NULL PRIMARY KEY DEFAULT 1 CHECK (one = 1),
    id     INTEGER NOT NULL,
    digest BLOB    NOT NULL
) STRICT;
INSERT INTO audit_log_head (id, digest) VALUES (0, zeroblob(32));
CREATE TRIGGER audit_log_stand BEFORE UPDATE ON audit_log BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only: update of audit_log is refused');
END;
CREATE TRIGGER audit_log_stay BEFORE DELETE ON audit_log BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only: delete of audit_log is refused');
END;
-- REPLACE would delete the old row without a word to the trigger above.
CREATE TRIGGER audit_log_once BEFORE INSERT ON audit_log WHEN EXISTS (SELECT 1 FROM audit_log WHERE id = new.id) BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only: insert over audit_log is refused');
END;
CREATE TRIGGER audit_log_head_rises BEFORE UPDATE ON audit_log_head WHEN new.id <= old.id BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only: update of audit_log_head is refused');
END;
CREATE TRIGGER audit_log_head_stays BEFORE DELETE ON audit_log_head BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only: delete of audit_log_head is refused');
END;
CREATE TRIGGER audit_log_head_once BEFORE INSERT ON audit_log_head BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only: insert over audit_log_head is refused');
END;

-- Requests that carry a key of their caller's, and what was answered: who asks again is answered the same.
CREATE TABLE requests (
    caller TEXT    NOT NULL,
    key    TEXT    NOT NULL,
    digest BLOB    NOT NULL,   -- SHA-256 of what was asked for
    answer BLOB    NOT NULL,   -- JSON: a job's id, whether it was made, whether replaced
    at     INTEGER NOT NULL,
    PRIMARY KEY (caller, key),
    CHECK (
        at BETWEEN -2208988800000000 AND 253402214400000000
    )
) STRICT, WITHOUT ROWID;
CREATE INDEX requests_at ON requests (at);

-- Processes whose lease ended without a word: their own rows are gone as soon as their jobs are given back.
CREATE TABLE lost_processes (
    id      INTEGER NOT NULL PRIMARY KEY,
    role    TEXT    NOT NULL,
    name    TEXT    NOT NULL,
    lost_at INTEGER NOT NULL,
    CHECK (
        lost_at BETWEEN -2208988800000000 AND 253402214400000000
    )
) STRICT;
CREATE INDEX lost_processes_at ON lost_processes (lost_at);

CREATE TABLE alerts (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    uid         INTEGER NOT NULL,   -- random: names it to receivers, whatever becomes of the database
    rule        TEXT    NOT NULL,
    subject     TEXT    NOT NULL,
    severity    TEXT    NOT NULL,
    sentence    TEXT    NOT NULL,
    since       INTEGER NOT NULL,   -- when what is wrong began
    seen_at     INTEGER NOT NULL,   -- when it was first seen
    opened_at   INTEGER,            -- null: not yet seen for long enough
    clearing_at INTEGER,            -- not seen since then
    closed_at   INTEGER,
    repeats     INTEGER NOT NULL DEFAULT 0,
    repeated_at INTEGER,
    acked_at    INTEGER,
    acked_by    TEXT,
    CHECK (
        since BETWEEN -2208988800000000 AND 253402214400000000
        AND seen_at BETWEEN -2208988800000000 AND 253402214400000000
        AND opened_at BETWEEN -2208988800000000 AND 253402214400000000
        AND clearing_at BETWEEN -2208988800000000 AND 253402214400000000
        AND closed_at BETWEEN -2208988800000000 AND 253402214400000000
        AND repeated_at BETWEEN -2208988800000000 AND 253402214400000000
        AND acked_at BETWEEN -2208988800000000 AND 253402214400000000
    )
) STRICT;
CREATE UNIQUE INDEX alerts_open ON alerts (rule, subject) WHERE closed_at IS NULL;
CREATE INDEX alerts_closed ON alerts (closed_at) WHERE closed_at IS NOT NULL;

-- What is to be said of it, and to whom: written with the alert, sent afterwards.
CREATE TABLE alert_notes (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    alert_id   INTEGER NOT NULL,
    kind       TEXT    NOT NULL,
    place      INTEGER NOT NULL,   -- of repeats, which
    target     TEXT    NOT NULL,   -- a digest of its address
    shown      TEXT    NOT NULL,   -- the address without secrets
    state      TEXT    NOT NULL DEFAULT 'waiting',
    due_at     INTEGER NOT NULL,   -- while it is sent: when it is taken as not sent
    batch      TEXT,               -- the id of the message, the same for every try
    tries      INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    ended_at   INTEGER,
    problem    TEXT,
    UNIQUE (alert_id, kind, place, target),
    CHECK (
        due_at BETWEEN -2208988800000000 AND 253402214400000000
        AND created_at BETWEEN -2208988800000000 AND 253402214400000000
        AND ended_at BETWEEN -2208988800000000 AND 253402214400000000
    )
) STRICT;
CREATE INDEX alert_notes_due ON alert_notes (due_at) WHERE ended_at IS NULL;

-- What happened, counted: by span (1, 10, 60 and 1440 minutes), task and queue. Not the record, which is runs and slots: a
-- process that is killed loses what it had not yet added. A row without a task and a queue is the fleet's own; one of
-- task and queue * is the sum of all others.
CREATE TABLE stats (
    span   INTEGER NOT NULL,   -- minutes
    at     INTEGER NOT NULL,   -- where they begin
    task   TEXT    NOT NULL,
    queue  TEXT    NOT NULL,
    counts TEXT    NOT NULL,   -- JSON: by what is counted
    waits  TEXT    NOT NULL,   -- JSON: how long jobs waited for a worker, or how late slots were: a histogram
    tooks  TEXT    NOT NULL,   -- JSON: how long runs took: a histogram
    mark   INTEGER,
    PRIMARY KEY (span, at, task, queue),
    CHECK (
        at BETWEEN -2208988800000000 AND 253402214400000000
    )
) STRICT, WITHOUT ROWID;

-- The identity of this database: random, made with its schema. A restored copy keeps it; a clone is given a new one.
CREATE TABLE database_identity (
    one INTEGER PRIMARY KEY DEFAULT 1 CHECK (one = 1),
    id  TEXT    NOT NULL   -- a UUID in its usual form, as on PostgreSQL
) STRICT;
INSERT INTO database_identity (id)
SELECT substr(h, 1, 8) || '-' || substr(h, 9, 4) || '-4' || substr(h, 14, 3) || '-8' || substr(h, 18, 3) || '-' || substr(h, 21, 12)
FROM (SELECT lower(hex(randomblob(16))) AS h);

-- That somebody watches: since when without a break, and last when. And the times in which nothing ran.
CREATE TABLE watch_mark (
    one   INTEGER PRIMARY KEY DEFAULT 1 CHECK (one = 1),
    since INTEGER NOT NULL,
    at    INTEGER NOT NULL,
    CHECK (
        since BETWEEN -2208988800000000 AND 253402214400000000
        AND at BETWEEN -2208988800000000 AND 253402214400000000
    )
) STRICT;

CREATE TABLE gaps (
    began_at INTEGER NOT NULL PRIMARY KEY,
    ended_at INTEGER NOT NULL,
    CHECK (
        began_at BETWEEN -2208988800000000 AND 253402214400000000
        AND ended_at BETWEEN -2208988800000000 AND 253402214400000000
    )
) STRICT;

-- Rows that could not be read, moved here whole: see store/unreadable.py.
CREATE TABLE unreadable_rows (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    kind    TEXT    NOT NULL,
    ref     TEXT    NOT NULL,
    content TEXT    NOT NULL,   -- JSON
    at      INTEGER NOT NULL,
    CHECK (
        at BETWEEN -2208988800000000 AND 253402214400000000
    )
) STRICT;
