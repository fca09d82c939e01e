-- The workflow whose step a job is. Null for nearly every job, and then it takes no room.
ALTER TABLE mainspring.jobs ADD COLUMN workflow_id bigint;
ALTER TABLE mainspring.dead_jobs ADD COLUMN workflow_id bigint;

CREATE TABLE mainspring.definitions (
    id         int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name       text        NOT NULL,
    version    int         NOT NULL,
    digest     bytea       NOT NULL,      -- SHA-256 of the definition
    definition text        NOT NULL,      -- JSON
    created_at timestamptz NOT NULL,
    UNIQUE (name, version),
    UNIQUE (name, digest)
);

CREATE TABLE mainspring.workflows (
    id            bigint      NOT NULL PRIMARY KEY,   -- that of the job that started it
    started_at    timestamptz NOT NULL,
    ended_at      timestamptz,
    paused_at     timestamptz,
    parent_id     bigint,
    forked_from   bigint,
    definition_id int         NOT NULL,
    nodes_left    int         NOT NULL,
    nodes_failed  int         NOT NULL DEFAULT 0,
    state         smallint    NOT NULL DEFAULT 0,
    name          text        NOT NULL,
    stopping      text,
    params        bytea       NOT NULL,
    step_ids      bigint[]    NOT NULL                -- one for each node, in the order of the definition
) WITH (fillfactor = 70);
CREATE INDEX workflows_ended ON mainspring.workflows (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX workflows_name ON mainspring.workflows (name, id);
CREATE INDEX workflows_running ON mainspring.workflows (id) WHERE state = 0;

CREATE TABLE mainspring.workflow_steps (
    id           bigint      NOT NULL PRIMARY KEY,    -- that of its job
    workflow_id  bigint      NOT NULL,
    ended_at     timestamptz,
    place        int         NOT NULL,                -- of its node in the definition
    item         int,                                 -- of a map
    waits        int         NOT NULL,                -- parents that have not ended; items, once a map is live
    items_failed int         NOT NULL DEFAULT 0,
    fence        int         NOT NULL DEFAULT 0,      -- claims of its job before it was made again
    state        smallint    NOT NULL DEFAULT 0,
    cause        text,
    result       bytea,
    error        jsonb
) WITH (fillfactor = 70);
CREATE INDEX workflow_steps_place ON mainspring.workflow_steps (workflow_id, place, item);

CREATE TABLE mainspring.workflow_acts (
    workflow_id bigint      NOT NULL,
    at          timestamptz NOT NULL,
    act         text        NOT NULL,
    author      text        NOT NULL,
    note        text
);
CREATE INDEX workflow_acts_workflow ON mainspring.workflow_acts (workflow_id, at);

-- Jobs of workflows that have left the queue, until somebody has dealt with it. Job 0: look at the workflow;
-- the workflow itself: its own job is gone.
CREATE TABLE mainspring.endings (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    workflow_id bigint NOT NULL,
    job_id      bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);

-- However a job ends, its workflow hears of it, in the same transaction. A trigger, so that no statement can
-- forget it; its condition keeps it from jobs that have nothing to do with workflows.
CREATE FUNCTION mainspring.note_ending() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.workflow_id IS NOT NULL THEN
        INSERT INTO mainspring.endings (workflow_id, job_id) VALUES (OLD.workflow_id, OLD.id);
    END IF;
    IF OLD.run_at = timestamptz '9997-01-01 00:00:00+00' THEN
        INSERT INTO mainspring.endings (workflow_id, job_id)
        SELECT w.id, w.id FROM mainspring.workflows w WHERE w.id = OLD.id AND w.state = 0;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER jobs_ended AFTER DELETE ON mainspring.jobs FOR EACH ROW
WHEN (OLD.workflow_id IS NOT NULL OR OLD.run_at = timestamptz '9997-01-01 00:00:00+00')
EXECUTE FUNCTION mainspring.note_ending();
