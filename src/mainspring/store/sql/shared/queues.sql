-- name: pause_queue
INSERT INTO mainspring.queue_pauses (queue, paused_at, paused_by, note)
VALUES (:queue, :now, :author, :note)
ON CONFLICT DO NOTHING
RETURNING queue;

-- name: resume_queue
DELETE FROM mainspring.queue_pauses WHERE queue = :queue RETURNING queue;

-- name: queue_pauses
SELECT queue, paused_at, paused_by, note FROM mainspring.queue_pauses ORDER BY queue;

-- name: mark_priority_levels
UPDATE mainspring.priority_levels SET paused = :paused
WHERE queue_id = (SELECT id FROM mainspring.queues WHERE name = :queue);

-- name: lock_priority_levels
-- The pause must include a priority level that another transaction makes at this moment.
LOCK TABLE mainspring.priority_levels IN SHARE ROW EXCLUSIVE MODE;

-- name: depth
SELECT (SELECT name FROM mainspring.queues WHERE id = queue_id) AS queue, (SELECT name FROM mainspring.tasks WHERE id = task_id) AS task,
       count(*) FILTER (WHERE worker_id = 0 AND run_at <= :now)::int AS ready,
       count(*) FILTER (WHERE worker_id = 0 AND run_at > :now AND run_at <> timestamptz '9997-01-01 00:00:00+00')::int AS delayed,
       count(*) FILTER (WHERE worker_id <> 0 OR run_at = timestamptz '9997-01-01 00:00:00+00')::int AS running,
       min(run_at) FILTER (WHERE worker_id = 0 AND run_at <= :now) AS oldest_ready_at, false AS about
FROM mainspring.jobs GROUP BY queue_id, task_id;
