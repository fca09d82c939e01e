-- name: dead_job
SELECT * FROM mainspring.dead_jobs WHERE id = :id;

-- name: ended_job
-- The run that ended it: succeeded, cancelled or discarded. The newest, should an operator have replayed it.
SELECT * FROM mainspring.runs WHERE job_id = :id AND verdict IN (0, 5, 7) ORDER BY finished_at DESC, fence DESC LIMIT 1;

-- name: live_job
SELECT *, CASE WHEN worker_id <> 0 OR run_at = timestamptz '9997-01-01 00:00:00+00' THEN 'running' WHEN run_at > :now THEN 'delayed' ELSE 'ready' END AS state
FROM mainspring.jobs WHERE id = :id;

-- name: standings
SELECT id, CASE WHEN worker_id <> 0 OR run_at = timestamptz '9997-01-01 00:00:00+00' THEN 'running' WHEN run_at > :now THEN 'delayed' ELSE 'ready' END AS state,
       coalesce(due_at, run_at) AS run_at, enqueued_at, worker_id, claimed_at, failures, max_attempts
FROM mainspring.jobs WHERE id = ANY (:ids::bigint[]);
