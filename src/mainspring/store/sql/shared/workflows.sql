-- name: put_definition
-- A definition that differs in any way is a new version of its name.
INSERT INTO mainspring.definitions (name, version, digest, definition, created_at)
SELECT :name::text, coalesce(max(d.version), 0) + 1, :digest::bytea, :definition::text, :now
FROM mainspring.definitions d WHERE d.name = :name
ON CONFLICT DO NOTHING
RETURNING id;

-- name: definition_id
SELECT id FROM mainspring.definitions WHERE name = :name AND digest = :digest;

-- name: definitions
SELECT id, version, definition FROM mainspring.definitions WHERE id = ANY (:ids::int[]);

-- name: any_endings
SELECT EXISTS (SELECT 1 FROM mainspring.ended_steps) AS there;

-- name: workflows_by_id
SELECT w.*, (SELECT d.version FROM mainspring.definitions d WHERE d.id = w.definition_id) AS version
FROM mainspring.workflows w WHERE w.id = ANY (:ids::bigint[]) ORDER BY w.id;

-- name: lock_workflow
-- SQLite locks nothing here: only one transaction writes at a time.
SELECT id FROM mainspring.workflows WHERE id = :id FOR UPDATE;

-- name: steps_by_id
SELECT * FROM mainspring.workflow_steps WHERE id = ANY (:ids::bigint[]);

-- name: items_of
SELECT * FROM mainspring.workflow_steps WHERE workflow_id = :workflow_id AND place = :place AND item IS NOT NULL ORDER BY item;

-- name: live_steps
SELECT * FROM mainspring.workflow_steps WHERE workflow_id = :workflow_id AND state = 1;

-- name: add_order
INSERT INTO mainspring.workflow_orders (workflow_id, at, action, author, note)
VALUES (:workflow_id, :now, :action, :author, :note);

-- name: pause_workflow
UPDATE mainspring.workflows SET paused_at = :now
WHERE id = :id AND state = 0 AND stopping IS NULL AND paused_at IS NULL RETURNING id;

-- name: resume_workflow
UPDATE mainspring.workflows SET paused_at = NULL WHERE id = :id AND paused_at IS NOT NULL RETURNING id;

-- name: stop_workflow
UPDATE mainspring.workflows SET stopping = :stopping, paused_at = NULL
WHERE id = :id AND state = 0 AND (stopping IS NULL OR stopping <> 'killed') RETURNING id;

-- name: steps_of
-- The steps of every node, and a bounded number of items.
SELECT * FROM mainspring.workflow_steps
WHERE workflow_id = :workflow_id AND (:place::int IS NULL OR place = :place) AND (item IS NULL OR (item >= :first AND item < :first + :most))
ORDER BY place, item NULLS FIRST;

-- name: step_counts
-- The number of items of each map, by state.
SELECT place, state, count(*)::int AS steps FROM mainspring.workflow_steps
WHERE workflow_id = :workflow_id AND item IS NOT NULL GROUP BY place, state ORDER BY place, state;

-- name: list_workflows
SELECT w.*, (SELECT d.version FROM mainspring.definitions d WHERE d.id = w.definition_id) AS version
FROM mainspring.workflows w
WHERE (:name::text IS NULL OR w.name = :name) AND (:state::smallint IS NULL OR w.state = :state)
  AND w.id < coalesce(:before::bigint, 9223372036854775807)
ORDER BY w.id DESC LIMIT :limit;

-- name: revivable
-- Jobs whose arguments are on record.
SELECT id FROM mainspring.dead_jobs WHERE id = ANY (:ids::bigint[])
UNION SELECT job_id FROM mainspring.runs WHERE job_id = ANY (:ids::bigint[]) AND verdict = 5 AND payload IS NOT NULL;

-- name: renumber_step
UPDATE mainspring.workflow_steps SET id = :new_id WHERE id = :id;

-- name: put_step_ids
UPDATE mainspring.workflows SET step_ids = :step_ids::bigint[] WHERE id = :id;

-- name: last_fences
-- How often each job was claimed, so that a job that is made again continues this count.
SELECT job_id, max(fence) AS fence FROM mainspring.runs WHERE job_id = ANY (:ids::bigint[]) GROUP BY job_id;

-- name: forget_checkpoints
DELETE FROM mainspring.steps WHERE job_id = ANY (:job_ids::bigint[]);

-- name: drop_items
DELETE FROM mainspring.workflow_steps WHERE workflow_id = :workflow_id AND place = ANY (:places::int[]) AND item IS NOT NULL;

-- name: old_workflows
SELECT id FROM mainspring.workflows WHERE ended_at < :before::timestamptz ORDER BY ended_at LIMIT :limit;

-- name: lost_items
-- For each map, its first items that failed or were cancelled.
SELECT * FROM (
    SELECT *, row_number() OVER (PARTITION BY place ORDER BY item) AS nth
    FROM mainspring.workflow_steps WHERE workflow_id = :workflow_id AND item IS NOT NULL AND state IN (3, 4)
) numbered
WHERE nth <= :most ORDER BY place, item;

-- name: fork_root
-- A new job with the queue and arguments of the job whose workflow is forked. The new job belongs to no schedule.
WITH told AS (
    SELECT queue_id, task_id, priority, max_attempts, payload, 0 AS place, :now AS at FROM mainspring.jobs WHERE id = :source_id
    UNION ALL
    SELECT queue_id, task_id, priority, max_attempts, payload, 1, died_at FROM mainspring.dead_jobs WHERE id = :source_id
    UNION ALL
    SELECT queue_id, task_id, priority, max_attempts, payload, 2, finished_at FROM mainspring.runs WHERE job_id = :source_id AND payload IS NOT NULL
)
INSERT INTO mainspring.jobs (id, run_at, due_at, enqueued_at, queue_id, task_id, priority, max_attempts, payload)
SELECT :id, timestamptz '9997-01-01 00:00:00+00', :now, :now, queue_id, task_id,
       priority, max_attempts, payload
FROM told ORDER BY place, at DESC LIMIT 1
RETURNING id;

-- name: nudge
INSERT INTO mainspring.ended_steps (workflow_id, job_id) SELECT w.id, 0 FROM unnest(:ids::bigint[]) AS w (id);
