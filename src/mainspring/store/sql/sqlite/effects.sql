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

-- name: steps
-- All of one job.
SELECT name, value, done_at FROM steps WHERE job_id = :job_id;

-- name: old_steps
-- The jobs of a page of steps that are old enough to go.
SELECT DISTINCT job_id FROM (SELECT job_id FROM steps WHERE job_id > :after AND done_at < :before ORDER BY job_id LIMIT :limit)
ORDER BY job_id;

-- name: prune_steps
-- Those of jobs that nobody knows any more.
DELETE FROM steps WHERE job_id IN (SELECT value FROM json_each(:job_ids))
  AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.id = steps.job_id)
  AND NOT EXISTS (SELECT 1 FROM dead_jobs d WHERE d.id = steps.job_id)
  AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.job_id = steps.job_id);
