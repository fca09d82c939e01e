-- What happened, counted: by span (1, 10, 60 and 1440 minutes), task and queue. Not the record, which is runs and slots: a
-- process that is killed loses what it had not yet added. A row without a task and a queue is the fleet's own; one of
-- task and queue * is the sum of all others.
CREATE TABLE stats (
    span   INTEGER NOT NULL,      -- minutes
    at     INTEGER NOT NULL,      -- where they begin
    task   TEXT    NOT NULL,
    queue  TEXT    NOT NULL,
    counts TEXT    NOT NULL,      -- JSON: by what is counted
    waits  TEXT    NOT NULL,      -- JSON: how long jobs waited for a worker, or how late slots were: a histogram
    tooks  TEXT    NOT NULL,      -- JSON: how long runs took: a histogram
    mark   INTEGER,
    PRIMARY KEY (span, at, task, queue)
) STRICT, WITHOUT ROWID;

-- What each process had in hand when it last said that it lives, and how far its clock is from the database's.
ALTER TABLE members ADD COLUMN skew INTEGER;
ALTER TABLE members ADD COLUMN holding TEXT NOT NULL DEFAULT '[]';

CREATE INDEX unique_keys_name ON unique_keys (name);
