-- name: dead_job
SELECT *, (SELECT name FROM mainspring.tasks WHERE id = task_id) AS task, (SELECT name FROM mainspring.queues WHERE id = queue_id) AS queue
FROM mainspring.dead_jobs WHERE id = :id;

-- name: dead_jobs
SELECT *, (SELECT name FROM mainspring.tasks WHERE id = task_id) AS task, (SELECT name FROM mainspring.queues WHERE id = queue_id) AS queue
FROM mainspring.dead_jobs
-- part: chosen
WHERE (:ids::bigint[] IS NULL OR id = ANY (:ids))
  AND (:task::text IS NULL OR task_id = (SELECT id FROM mainspring.tasks WHERE name = :task))
  AND (:queue::text IS NULL OR queue_id = (SELECT id FROM mainspring.queues WHERE name = :queue))
  AND id < coalesce(:before::bigint, 9223372036854775807)
  AND (:reason::text IS NULL OR reason = :reason)
  AND (:died_from::timestamptz IS NULL OR died_at >= :died_from) AND (:died_before::timestamptz IS NULL OR died_at < :died_before)
  AND (:error::text IS NULL OR errors -> -1 ->> 'type' = :error
       OR substr(errors -> -1 ->> 'type', length(errors -> -1 ->> 'type') - length(:error)) = '.' || :error)
  AND (:text::text IS NULL OR strpos(errors -> -1 ->> 'message', :text) > 0)
-- end
ORDER BY id DESC LIMIT :limit;

-- name: count_dead
SELECT count(*) AS count FROM (
    SELECT 1 FROM mainspring.dead_jobs
-- use: chosen
    LIMIT :limit
) AS counted;

-- name: dead_names
SELECT id AS job_id, (SELECT name FROM mainspring.tasks WHERE id = task_id) AS task, (SELECT name FROM mainspring.queues WHERE id = queue_id) AS queue
FROM mainspring.dead_jobs WHERE id = ANY (:ids::bigint[]) ORDER BY id;

-- name: purge_dead
DELETE FROM mainspring.dead_jobs WHERE id = ANY (:ids::bigint[]) RETURNING id;
