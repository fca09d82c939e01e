-- What runs say of themselves. Only jobs that use it touch any of this.

-- How far a run is; it counts only while its fence is the job's. Written over and over: a HOT update.
CREATE TABLE mainspring.progress (
    job_id   bigint           NOT NULL PRIMARY KEY,
    fence    int              NOT NULL,
    fraction double precision NOT NULL,
    note     text             NOT NULL,
    at       timestamptz      NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

-- Captured lines, kept as long as the run: a partition a day, as the runs have.
CREATE TABLE mainspring.run_logs (
    job_id      bigint      NOT NULL,
    finished_at timestamptz NOT NULL,
    worker_id   bigint      NOT NULL,
    fence       int         NOT NULL,
    text        text        NOT NULL
) PARTITION BY RANGE (finished_at);
CREATE INDEX run_logs_job ON mainspring.run_logs (job_id);
CREATE TABLE mainspring.run_logs_default PARTITION OF mainspring.run_logs DEFAULT;

-- For results that are not kept as long as their run. An empty one was dropped.
CREATE INDEX runs_results ON mainspring.runs (finished_at) WHERE result <> ''::bytea;
