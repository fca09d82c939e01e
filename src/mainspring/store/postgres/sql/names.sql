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

-- name: add_lanes
INSERT INTO mainspring.lanes (queue_id, priority)
SELECT * FROM unnest(:queue_ids::int[], :priorities::smallint[]) ON CONFLICT DO NOTHING;
