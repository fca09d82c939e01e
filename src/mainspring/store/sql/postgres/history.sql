-- name: job_states
-- The last word wins: a job that was replayed after it had been cancelled is what it is now.
SELECT DISTINCT ON (id) id, state FROM (
    SELECT id, CASE WHEN worker_id <> 0 OR run_at = timestamptz '9997-01-01 00:00:00+00' THEN 'running' WHEN run_at > coalesce(:at::timestamptz, now()) THEN 'delayed' ELSE 'ready' END
               AS state, 0 AS place, now() AS finished_at
    FROM mainspring.jobs WHERE id = ANY (:ids::bigint[])
    UNION ALL
    SELECT id, 'dead', 1, died_at FROM mainspring.dead_jobs WHERE id = ANY (:ids::bigint[])
    UNION ALL
    SELECT job_id, CASE verdict WHEN 0 THEN 'succeeded' WHEN 7 THEN 'discarded' ELSE 'cancelled' END, 2, finished_at
    FROM mainspring.runs WHERE job_id = ANY (:ids::bigint[]) AND verdict IN (0, 5, 7)
) known
ORDER BY id, place, finished_at DESC;

-- name: dead_jobs
SELECT * FROM mainspring.dead_jobs
WHERE (:ids::bigint[] IS NULL OR id = ANY (:ids)) AND (:task_id::int IS NULL OR task_id = :task_id)
  AND (:queue_id::int IS NULL OR queue_id = :queue_id) AND id < coalesce(:before::bigint, 9223372036854775807)
  AND (:reason::text IS NULL OR reason = :reason)
  AND (:died_from::timestamptz IS NULL OR died_at >= :died_from) AND (:died_before::timestamptz IS NULL OR died_at < :died_before)
  AND (:error::text IS NULL OR errors -> -1 ->> 'type' = :error OR right(errors -> -1 ->> 'type', length(:error) + 1) = '.' || :error)
  AND (:text::text IS NULL OR strpos(errors -> -1 ->> 'message', :text) > 0)
ORDER BY id DESC LIMIT :limit;

-- name: count_dead
SELECT count(*)::int AS letters FROM (
    SELECT 1 FROM mainspring.dead_jobs
    WHERE (:ids::bigint[] IS NULL OR id = ANY (:ids)) AND (:task_id::int IS NULL OR task_id = :task_id)
  AND (:queue_id::int IS NULL OR queue_id = :queue_id) AND (:before::bigint IS NULL OR id < :before)
  AND (:reason::text IS NULL OR reason = :reason)
  AND (:died_from::timestamptz IS NULL OR died_at >= :died_from) AND (:died_before::timestamptz IS NULL OR died_at < :died_before)
  AND (:error::text IS NULL OR errors -> -1 ->> 'type' = :error OR right(errors -> -1 ->> 'type', length(:error) + 1) = '.' || :error)
  AND (:text::text IS NULL OR strpos(errors -> -1 ->> 'message', :text) > 0)
    LIMIT :limit
) AS counted;

-- name: dead_groups
SELECT task_id, min(queue_id) AS queue_id, error, line, count(*)::int AS letters, max(died_at) AS newest_at, max(id) AS newest_id
FROM mainspring.dead_jobs
WHERE (:ids::bigint[] IS NULL OR id = ANY (:ids)) AND (:task_id::int IS NULL OR task_id = :task_id)
  AND (:queue_id::int IS NULL OR queue_id = :queue_id) AND (:before::bigint IS NULL OR id < :before)
  AND (:reason::text IS NULL OR reason = :reason)
  AND (:died_from::timestamptz IS NULL OR died_at >= :died_from) AND (:died_before::timestamptz IS NULL OR died_at < :died_before)
  AND (:error::text IS NULL OR errors -> -1 ->> 'type' = :error OR right(errors -> -1 ->> 'type', length(:error) + 1) = '.' || :error)
  AND (:text::text IS NULL OR strpos(errors -> -1 ->> 'message', :text) > 0)
GROUP BY task_id, error, line
ORDER BY letters DESC, newest_id DESC LIMIT :limit;

