-- name: start_workflows
-- A workflow that exists already was started by an earlier claim of its job.
INSERT INTO workflows (id, name, definition_id, started_at, parent_id, forked_from, params, step_ids, nodes_left)
VALUES (:id, :name, :definition_id, :now, :parent_id, :forked_from, :params, :step_ids, :nodes_left)
ON CONFLICT DO NOTHING
RETURNING id;

-- name: insert_steps
INSERT INTO workflow_steps (id, workflow_id, place, item, state, waits, items_failed, fence, cause, result, error, ended_at)
VALUES (:id, :workflow_id, :place, :item, :state, :waits, :failed, :fence, :cause, :result, :error, :ended_at);

-- name: take_endings
-- The oldest endings. Only one transaction writes at a time, so no other transaction has locked their workflows.
DELETE FROM ended_steps WHERE id IN (SELECT id FROM ended_steps ORDER BY id LIMIT :limit)
RETURNING id, workflow_id, job_id;

-- name: final_runs
-- The final run of each job comes last. If several runs ended the job, as after a retry, this is the newest.
SELECT job_id, verdict, result, finished_at, fence FROM runs
WHERE job_id IN (SELECT value FROM json_each(:ids)) AND verdict IN (0, 2, 5, 7)
UNION ALL
SELECT id, 2, NULL, died_at, fence FROM dead_jobs WHERE id IN (SELECT value FROM json_each(:ids))
ORDER BY 5, 4;

-- name: put_steps
UPDATE workflow_steps SET state = :state, fence = :fence, waits = :waits, items_failed = :failed, cause = :cause, result = :result,
                          error = :error, ended_at = :ended_at
WHERE id = :id;

-- name: put_workflows
UPDATE workflows SET state = :state, nodes_left = :nodes_left, nodes_failed = :nodes_failed, stopping = :stopping, paused_at = :paused_at,
                     ended_at = :ended_at
WHERE id = :id;

-- name: finish_roots
-- The job of a workflow that has ended. A workflow that failed (verdict 2) leaves a dead letter. The arguments of the job
-- are always kept: a retry makes the job again.
INSERT INTO runs (job_id, finished_at, started_at, enqueued_at, run_at, worker_id, schedule_id, slot_at, queue,
                  task, fence, priority, max_attempts, failures, crashes, verdict, payload, result, error)
SELECT id, :now, :started_at, enqueued_at, coalesce(due_at, run_at), 0, schedule_id, slot_at, queue,
       task, fence, priority, max_attempts, failures, crashes, :verdict, payload, :result,
       CASE WHEN :error IS NOT NULL THEN json_set(json(:error), '$.attempt', failures + 1) END
FROM jobs WHERE id = :id
RETURNING job_id;
INSERT INTO dead_jobs (id, run_at, enqueued_at, died_at, schedule_id, slot_at, queue, task, fence, priority,
                       max_attempts, failures, crashes, reason, payload, errors, expires_at, limit_set_id, workflow_id, trace)
SELECT id, coalesce(due_at, run_at), enqueued_at, :now, schedule_id, slot_at, queue, task, fence, priority,
       max_attempts, failures + 1, crashes, 'failed', payload,
       json_insert(coalesce(errors, '[]'), '$[#]', json_set(json(:error), '$.attempt', failures + 1)), expires_at, limit_set_id,
       coalesce(workflow_id, id), trace
FROM jobs WHERE id = :id AND :verdict = 2;
DELETE FROM jobs WHERE id = :id;

-- name: orders
SELECT workflow_id, at, action, author, note FROM workflow_orders WHERE workflow_id = :workflow_id ORDER BY at, rowid;

-- name: revive_dead
-- Retried steps go on with their old errors, with their edited arguments, and with all attempts restored.
INSERT INTO jobs (id, run_at, enqueued_at, schedule_id, slot_at, queue, task, fence, priority, max_attempts, payload, errors, limit_set_id, due_at,
                  workflow_id, trace)
SELECT id, CASE WHEN limit_set_id IS NULL THEN :now ELSE 253339228800000000 END, enqueued_at, schedule_id, slot_at, queue, task, fence, priority,
       max_attempts, payload, errors, limit_set_id, CASE WHEN limit_set_id IS NOT NULL THEN :now END, workflow_id, trace
FROM dead_jobs WHERE id IN (SELECT value FROM json_each(:ids))
RETURNING id;
DELETE FROM dead_jobs WHERE id IN (SELECT value FROM json_each(:ids));

-- name: revive_cancelled
-- Cancelled jobs, as they were when they were cancelled, but without limits, which are not on record. The fence is higher
-- than that of the last claim, which may have come after the cancel.
INSERT INTO jobs (id, run_at, enqueued_at, schedule_id, slot_at, queue, task, fence, priority, max_attempts, payload, workflow_id)
SELECT r.job_id, :now, r.enqueued_at, r.schedule_id, r.slot_at, r.queue, r.task,
       max(max(r.fence), (SELECT max(f.fence) FROM runs f WHERE f.job_id = r.job_id)), r.priority, r.max_attempts, r.payload,
       (SELECT s.workflow_id FROM workflow_steps s WHERE s.id = r.job_id)
FROM runs r WHERE r.job_id IN (SELECT value FROM json_each(:ids)) AND r.verdict = 5 AND r.payload IS NOT NULL
GROUP BY r.job_id
ON CONFLICT DO NOTHING
RETURNING id;

-- name: revive_root
-- The workflow's own job, from its dead letter or else from the run that ended it. `parent` is the workflow of which it is a
-- step. The fence increases, so that the next run that ends the job is known to be newer.
INSERT INTO jobs (id, run_at, due_at, enqueued_at, schedule_id, slot_at, queue, task, fence, priority, max_attempts, payload, workflow_id, trace)
SELECT :id, 253307692800000000, run_at, enqueued_at, schedule_id, slot_at, queue, task, fence + 1, priority, max_attempts, payload, :parent_id, trace
FROM (
    SELECT enqueued_at, run_at, schedule_id, slot_at, queue, task, fence, priority, max_attempts, payload, trace, 0 AS place, died_at AS at
    FROM dead_jobs WHERE id = :id
    UNION ALL
    SELECT enqueued_at, run_at, schedule_id, slot_at, queue, task, fence, priority, max_attempts, payload, NULL, 1, finished_at
    FROM runs WHERE job_id = :id AND payload IS NOT NULL
)
ORDER BY place, at DESC LIMIT 1
RETURNING id;
DELETE FROM dead_jobs WHERE id = :id;

-- name: prune_workflows
DELETE FROM workflow_steps WHERE workflow_id IN (SELECT value FROM json_each(:ids));
DELETE FROM workflow_orders WHERE workflow_id IN (SELECT value FROM json_each(:ids));
DELETE FROM workflows WHERE id IN (SELECT value FROM json_each(:ids)) RETURNING id;

-- name: bump_ids
-- Ids that are reserved before their jobs are made.
UPDATE sqlite_sequence SET seq = seq + :count WHERE name = 'jobs' RETURNING seq;
