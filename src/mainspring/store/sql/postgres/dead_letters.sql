-- name: dead_groups
SELECT (SELECT name FROM mainspring.tasks WHERE id = task_id) AS task, error, line, count(*) AS count,
       max(died_at) AS newest_at, max(id) AS newest_id
FROM mainspring.dead_jobs
WHERE (:ids::bigint[] IS NULL OR id = ANY (:ids))
  AND (:task::text IS NULL OR task_id = (SELECT id FROM mainspring.tasks WHERE name = :task))
  AND (:queue::text IS NULL OR queue_id = (SELECT id FROM mainspring.queues WHERE name = :queue))
  AND (:before::bigint IS NULL OR id < :before)
  AND (:reason::text IS NULL OR reason = :reason)
  AND (:died_from::timestamptz IS NULL OR died_at >= :died_from) AND (:died_before::timestamptz IS NULL OR died_at < :died_before)
  AND (:error::text IS NULL OR errors -> -1 ->> 'type' = :error OR right(errors -> -1 ->> 'type', length(:error) + 1) = '.' || :error)
  AND (:text::text IS NULL OR strpos(errors -> -1 ->> 'message', :text) > 0)
GROUP BY task_id, error, line
ORDER BY count DESC, newest_id DESC LIMIT :limit;

-- name: edit_dead
-- The old arguments stay on record, with the author of the change.
WITH edited AS (
    UPDATE mainspring.dead_jobs SET payload = :payload WHERE id = :id AND payload = :expected RETURNING *
)
INSERT INTO mainspring.runs (job_id, finished_at, enqueued_at, run_at, worker_id, schedule_id, slot_at, queue_id,
                             task_id, fence, priority, max_attempts, failures, crashes, verdict, payload, error)
SELECT id, coalesce(:at::timestamptz, now()), enqueued_at, run_at, 0, schedule_id, slot_at, queue_id,
       task_id, fence, priority, max_attempts, failures, crashes, 8, :expected::bytea,
       :error::jsonb || jsonb_build_object('attempt', failures + 1, 'at', coalesce(:at::timestamptz, now()))
FROM edited
RETURNING job_id;

-- name: replay_dead
-- The job has no deadline any more, because a replay is a wish that it runs. A job of a workflow is left out: its workflow
-- has gone on without the job.
WITH back AS (
    DELETE FROM mainspring.dead_jobs WHERE id = ANY (:ids::bigint[]) AND workflow_id IS NULL RETURNING *
)
INSERT INTO mainspring.jobs (id, run_at, enqueued_at, schedule_id, slot_at, queue_id, task_id, fence, priority, max_attempts, payload, errors,
                             limit_set_id, due_at, trace)
SELECT id, CASE WHEN limit_set_id IS NULL THEN coalesce(:at::timestamptz, now()) ELSE timestamptz '9998-01-01 00:00:00+00' END, enqueued_at,
       schedule_id, slot_at, queue_id, task_id, fence, priority, max_attempts, payload, errors, limit_set_id,
       CASE WHEN limit_set_id IS NOT NULL THEN coalesce(:at::timestamptz, now()) END, trace
FROM back
RETURNING id;
