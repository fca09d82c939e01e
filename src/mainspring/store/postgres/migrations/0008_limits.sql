-- Limits. Only jobs that have one touch these tables, and only they have a line.
-- A job with limits waits before its gates with run_at = 9998-01-01, out of the way of claims, until a pass lets it
-- through. Its place among the permits is freed by what becomes of its row: nothing is written when it ends.
CREATE TABLE mainspring.gates (
    id          int         GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name        text        NOT NULL,
    key         text        NOT NULL,           -- whose; empty: everybody's
    concurrency int,
    rate        int,
    period      interval,
    burst       int         NOT NULL,
    open_window int,
    tokens      float8      NOT NULL DEFAULT 0,
    refilled_at timestamptz,
    UNIQUE (name, key)
);
-- Jobs that wait for exactly the same gates stand in one line: if its first cannot pass, none of it can.
CREATE TABLE mainspring.lines (
    id    int  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    gates text NOT NULL UNIQUE                  -- ids of gates, sorted, with commas between them
);
CREATE TABLE mainspring.permits (
    gate_id int    NOT NULL,
    job_id  bigint NOT NULL,
    PRIMARY KEY (gate_id, job_id)
);
ALTER TABLE mainspring.jobs ADD COLUMN line_id int, ADD COLUMN due_at timestamptz;
CREATE INDEX jobs_gated ON mainspring.jobs (line_id, priority DESC, due_at, id)
    WHERE run_at = timestamptz '9998-01-01 00:00:00+00';
ALTER TABLE mainspring.dead_jobs ADD COLUMN line_id int;
ALTER TABLE mainspring.schedules ADD COLUMN line_id int;

-- Queues that are paused: claims pass their lanes by.
ALTER TABLE mainspring.lanes ADD COLUMN paused boolean NOT NULL DEFAULT false;
CREATE TABLE mainspring.queue_pauses (
    queue     text        NOT NULL PRIMARY KEY,
    paused_at timestamptz NOT NULL,
    paused_by text        NOT NULL,
    note      text
);
