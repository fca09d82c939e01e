-- name: put_jobs
-- In the caller's own transaction, one at a time: the key is given by SQLite, so nothing need be read before
-- the write lock is held.
INSERT INTO jobs (queue, task, priority, run_at, enqueued_at, max_attempts, payload, trace)
VALUES (:queue, :task, :priority, :run_at, :now, :max_attempts, :payload, :trace)
RETURNING id;

-- name: database_list
-- Which file a connection is on.
PRAGMA database_list;

-- name: no_autocheckpoint
PRAGMA wal_autocheckpoint = 0;
