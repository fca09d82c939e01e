-- name: put_jobs
-- In the caller's own transaction, one at a time. SQLite gives the key, so no read is necessary before the transaction
-- has the write lock.
INSERT INTO jobs (queue, task, priority, run_at, enqueued_at, max_attempts, payload, trace)
VALUES (:queue, :task, :priority, :run_at, :now, :max_attempts, :payload, :trace)
RETURNING id;

-- name: database_list
-- The file of a connection.
PRAGMA database_list;

-- name: no_autocheckpoint
PRAGMA wal_autocheckpoint = 0;
