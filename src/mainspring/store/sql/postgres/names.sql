-- name: add_queues
INSERT INTO mainspring.queues (name) SELECT unnest(:names::text[]) ON CONFLICT DO NOTHING;

-- name: queues
SELECT id, name FROM mainspring.queues WHERE name = ANY (:names::text[]);

-- name: add_tasks
INSERT INTO mainspring.tasks (name) SELECT unnest(:names::text[]) ON CONFLICT DO NOTHING;

-- name: tasks
SELECT id, name FROM mainspring.tasks WHERE name = ANY (:names::text[]);

-- name: all_names
SELECT 'queue' AS kind, id, name FROM mainspring.queues
UNION ALL SELECT 'task', id, name FROM mainspring.tasks;

-- name: add_priority_levels
-- A priority level of a paused queue is paused.
INSERT INTO mainspring.priority_levels (queue_id, priority, paused)
SELECT n.queue_id, n.priority,
       (SELECT p.queue FROM mainspring.queue_pauses p
        WHERE p.queue = (SELECT q.name FROM mainspring.queues q WHERE q.id = n.queue_id)) IS NOT NULL
FROM unnest(:queue_ids::int[], :priorities::smallint[]) AS n (queue_id, priority) ON CONFLICT DO NOTHING;
