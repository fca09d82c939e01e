-- name: put_jobs
-- In the caller's own transaction. Nothing is written into a schema that is older than this code.
SELECT n.place, mainspring.put_job(n.task, n.payload, n.queue, n.priority, n.run_at, n.delay, n.max_attempts, :at::timestamptz, n.trace) AS id
FROM unnest(:tasks::text[], :payloads::bytea[], :queues::text[], :priorities::int[], :run_ats::timestamptz[], :delays::interval[],
            :max_attempts::int[], :traces::text[])
  WITH ORDINALITY AS n (task, payload, queue, priority, run_at, delay, max_attempts, trace, place)
WHERE (SELECT max(version) FROM mainspring.migrations) >= :version::int;

-- name: steps
-- All of one job, and the moment; one row of nothing else where there is none.
SELECT coalesce(:at::timestamptz, now()) AS now, s.name, s.value, s.done_at
FROM (SELECT 1) AS one LEFT JOIN mainspring.steps s ON s.job_id = :job_id;

-- name: old_steps
-- The jobs of a page of steps that are old enough to go.
SELECT DISTINCT job_id FROM (
    SELECT job_id FROM mainspring.steps WHERE job_id > :after AND done_at < :before::timestamptz ORDER BY job_id LIMIT :limit
) page
ORDER BY job_id;

-- name: prune_steps
-- Those of jobs that nobody knows any more. `known` is what `known_ids` says of them.
DELETE FROM mainspring.steps WHERE job_id = ANY (:job_ids::bigint[]) AND job_id <> ALL (:known::bigint[]) RETURNING job_id;
