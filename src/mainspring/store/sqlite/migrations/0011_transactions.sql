-- Steps that a job's runs have done, for good: a run that comes after looks here before it acts. `value` is
-- for what a step answered. A row goes when its job has left the queue, the dead letters and history.
CREATE TABLE steps (
    job_id  INTEGER NOT NULL,
    name    TEXT    NOT NULL,
    value   BLOB,
    done_at INTEGER NOT NULL,
    PRIMARY KEY (job_id, name)
) STRICT, WITHOUT ROWID;
