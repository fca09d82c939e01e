-- What runs say of themselves. Only jobs that use it touch any of this.

-- How far a run is; it counts only while its fence is the job's.
CREATE TABLE progress (
    job_id   INTEGER NOT NULL PRIMARY KEY,
    fence    INTEGER NOT NULL,
    fraction REAL    NOT NULL,
    note     TEXT    NOT NULL,
    at       INTEGER NOT NULL
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

-- For results that are not kept as long as their run. An empty one was dropped.
CREATE INDEX runs_results ON runs (finished_at) WHERE result <> X'';
