-- name: runs
-- The arguments are only there for an edit (8), which keeps the arguments from before.
SELECT job_id, (SELECT name FROM mainspring.tasks WHERE id = task_id) AS task, (SELECT name FROM mainspring.queues WHERE id = queue_id) AS queue,
       failures + 1 AS attempt, verdict, nullif(worker_id, 0) AS worker_id, fence, started_at, finished_at, error AS failure, result,
       CASE WHEN verdict = 8 THEN payload END AS payload, enqueued_at
FROM mainspring.runs WHERE job_id = :job_id
-- A workflow whose steps are all skipped ends at the instant at which its own job began (9).
ORDER BY finished_at, fence, verdict <> 9;

-- name: runs_of
-- The newest runs of each job, without arguments and results.
SELECT job_id, (SELECT name FROM mainspring.tasks WHERE id = task_id) AS task, (SELECT name FROM mainspring.queues WHERE id = queue_id) AS queue,
       failures + 1 AS attempt, verdict, nullif(worker_id, 0) AS worker_id, fence, started_at, finished_at, error AS failure, NULL::bytea AS result,
       NULL::bytea AS payload, enqueued_at
FROM (
    SELECT job_id, finished_at, started_at, enqueued_at, worker_id, queue_id, task_id, fence, failures, verdict, error,
           row_number() OVER (PARTITION BY job_id ORDER BY finished_at DESC, fence DESC, verdict <> 9 DESC) AS place
    FROM mainspring.runs WHERE job_id = ANY (:ids::bigint[])
) numbered
WHERE place <= :most ORDER BY job_id, finished_at, fence, verdict <> 9;

-- name: lately_failed
SELECT job_id, fence, (SELECT name FROM mainspring.queues WHERE id = queue_id) AS queue, (SELECT name FROM mainspring.tasks WHERE id = task_id) AS task,
       failures + 1 AS attempt, verdict, finished_at, coalesce(error ->> 'type', '') AS error, coalesce(substr(error ->> 'message', 1, 200), '') AS message
FROM (SELECT * FROM mainspring.runs ORDER BY job_id DESC LIMIT :among) newest
WHERE verdict IN (1, 2, 4)
ORDER BY finished_at DESC, job_id DESC, fence DESC LIMIT :limit;

-- name: endings
-- If a job has several rows, the caller uses the last. So the row that counts comes last.
SELECT job_id AS id, verdict, result, NULL::jsonb AS failure, NULL::text AS reason, 1 AS place, finished_at
FROM mainspring.runs WHERE job_id = ANY (:ids::bigint[]) AND verdict IN (0, 5)
UNION ALL
SELECT id, 2, NULL, errors -> -1, reason, 2, died_at FROM mainspring.dead_jobs WHERE id = ANY (:ids::bigint[])
ORDER BY place, finished_at;

-- name: run_logs
SELECT worker_id, fence, finished_at, text FROM mainspring.run_logs WHERE job_id = :job_id ORDER BY finished_at, fence;

-- name: progress
-- Only for the claim that the job has now: the progress of an earlier run is out of date.
SELECT p.fraction, p.note, p.at FROM mainspring.progress p
WHERE p.job_id = :job_id
  AND p.fence = (SELECT j.fence FROM mainspring.jobs j WHERE j.id = :job_id AND j.worker_id <> 0);
