-- The workflow whose step a job is. Null for nearly every job.
ALTER TABLE jobs ADD COLUMN workflow_id INTEGER;
ALTER TABLE dead_jobs ADD COLUMN workflow_id INTEGER;

CREATE TABLE definitions (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    name       TEXT    NOT NULL,
    version    INTEGER NOT NULL,
    digest     BLOB    NOT NULL,      -- SHA-256 of the definition
    definition TEXT    NOT NULL,      -- JSON
    created_at INTEGER NOT NULL,
    UNIQUE (name, version),
    UNIQUE (name, digest)
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
    step_ids      TEXT    NOT NULL                -- JSON: one for each node, in the order of the definition
) STRICT;
CREATE INDEX workflows_ended ON workflows (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX workflows_name ON workflows (name, id);
CREATE INDEX workflows_running ON workflows (id) WHERE state = 0;

CREATE TABLE workflow_steps (
    id           INTEGER NOT NULL PRIMARY KEY,    -- that of its job
    workflow_id  INTEGER NOT NULL,
    ended_at     INTEGER,
    place        INTEGER NOT NULL,                -- of its node in the definition
    item         INTEGER,                         -- of a map
    waits        INTEGER NOT NULL,                -- parents that have not ended; items, once a map is live
    items_failed INTEGER NOT NULL DEFAULT 0,
    fence        INTEGER NOT NULL DEFAULT 0,      -- claims of its job before it was made again
    state        INTEGER NOT NULL DEFAULT 0,
    cause        TEXT,
    result       BLOB,
    error        TEXT                             -- JSON
) STRICT;
CREATE INDEX workflow_steps_place ON workflow_steps (workflow_id, place, item);

CREATE TABLE workflow_acts (
    workflow_id INTEGER NOT NULL,
    at          INTEGER NOT NULL,
    act         TEXT    NOT NULL,
    author      TEXT    NOT NULL,
    note        TEXT
) STRICT;
CREATE INDEX workflow_acts_workflow ON workflow_acts (workflow_id, at);

-- Jobs of workflows that have left the queue, until somebody has dealt with it. Job 0: look at the workflow;
-- the workflow itself: its own job is gone.
CREATE TABLE endings (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    workflow_id INTEGER NOT NULL,
    job_id      INTEGER NOT NULL
) STRICT;

-- However a job ends, its workflow hears of it, in the same transaction. A trigger, so that no statement can
-- forget it; its condition keeps it from jobs that have nothing to do with workflows.
CREATE TRIGGER jobs_ended AFTER DELETE ON jobs
WHEN OLD.workflow_id IS NOT NULL OR OLD.run_at = 253307692800000000
BEGIN
    INSERT INTO endings (workflow_id, job_id) SELECT OLD.workflow_id, OLD.id WHERE OLD.workflow_id IS NOT NULL;
    INSERT INTO endings (workflow_id, job_id)
    SELECT w.id, w.id FROM workflows w WHERE OLD.run_at = 253307692800000000 AND w.id = OLD.id AND w.state = 0;
END;
