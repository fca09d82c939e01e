-- name: all_gates
SELECT id FROM mainspring.gates WHERE (:name::text IS NULL OR name = :name) AND (:key::text IS NULL OR key = :key)
  AND (name, key) > (:after_name, :after_key)
ORDER BY name, key LIMIT :limit;

-- name: gates_of_job
SELECT l.gates FROM mainspring.jobs j JOIN mainspring.lines l ON l.id = j.line_id WHERE j.id = :id;

-- name: pause_queue
INSERT INTO mainspring.queue_pauses (queue, paused_at, paused_by, note)
VALUES (:queue, :now, :author, :note)
ON CONFLICT DO NOTHING
RETURNING queue;

-- name: resume_queue
DELETE FROM mainspring.queue_pauses WHERE queue = :queue RETURNING queue;

-- name: queue_pauses
SELECT queue, paused_at, paused_by, note FROM mainspring.queue_pauses ORDER BY queue;

-- name: mark_lanes
UPDATE mainspring.lanes SET paused = :paused
WHERE queue_id = (SELECT id FROM mainspring.queues WHERE name = :queue);
