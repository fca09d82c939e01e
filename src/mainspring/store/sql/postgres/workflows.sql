-- name: start_workflows
-- A workflow that exists already was started by an earlier claim of its job.
INSERT INTO mainspring.workflows (id, name, definition_id, started_at, parent_id, forked_from, params, step_ids, nodes_left)
SELECT n.id, n.name, n.definition_id, coalesce(:at::timestamptz, now()), n.parent_id, n.forked_from, n.params,
       string_to_array(btrim(n.step_ids, '[]'), ',')::bigint[], n.nodes_left
FROM unnest(:id::bigint[], :name::text[], :definition_id::int[], :parent_id::bigint[], :forked_from::bigint[], :params::bytea[],
            :step_ids::text[], :nodes_left::int[])
  AS n (id, name, definition_id, parent_id, forked_from, params, step_ids, nodes_left)
ON CONFLICT DO NOTHING
RETURNING id;

-- name: insert_steps
INSERT INTO mainspring.workflow_steps (id, workflow_id, place, item, state, waits, items_failed, fence, cause, result, error, ended_at)
SELECT * FROM unnest(:id::bigint[], :workflow_id::bigint[], :place::int[], :item::int[], :state::smallint[], :waits::int[], :failed::int[],
                     :fence::int[], :cause::text[], :result::bytea[], :error::jsonb[], :ended_at::timestamptz[]);

-- name: take_endings
-- The oldest endings, of workflows that no other transaction has locked: endings of locked workflows wait for the next pass.
-- Endings of workflows that are not on record are taken too, because no other statement removes them.
WITH oldest AS MATERIALIZED (
    SELECT id, workflow_id FROM mainspring.ended_steps ORDER BY id LIMIT :limit
), ours AS MATERIALIZED (
    SELECT w.id FROM mainspring.workflows w
    WHERE w.id = ANY (ARRAY(SELECT DISTINCT workflow_id FROM oldest))
    ORDER BY w.id FOR UPDATE SKIP LOCKED
)
DELETE FROM mainspring.ended_steps
WHERE id = ANY (ARRAY(SELECT o.id FROM oldest o WHERE (o.workflow_id IN (SELECT id FROM ours)) IS TRUE
                      OR (SELECT w.id FROM mainspring.workflows w WHERE w.id = o.workflow_id) IS NULL))
RETURNING id, workflow_id, job_id;

-- name: final_runs
-- The final run of each job. If several runs ended the job, as after a retry, the newest.
SELECT DISTINCT ON (job_id) job_id, verdict, result FROM (
    SELECT job_id, verdict, result, finished_at, fence FROM mainspring.runs
    WHERE job_id = ANY (:ids::bigint[]) AND verdict IN (0, 2, 5, 7)
    UNION ALL
    SELECT id, 2, NULL, died_at, fence FROM mainspring.dead_jobs WHERE id = ANY (:ids::bigint[])
) told
ORDER BY job_id, fence DESC, finished_at DESC;

-- name: put_steps
UPDATE mainspring.workflow_steps
SET state = (:state::smallint[])[width_bucket(id, :id::bigint[])], fence = (:fence::int[])[width_bucket(id, :id::bigint[])],
    waits = (:waits::int[])[width_bucket(id, :id::bigint[])],
    items_failed = (:failed::int[])[width_bucket(id, :id::bigint[])], cause = (:cause::text[])[width_bucket(id, :id::bigint[])],
    result = (:result::bytea[])[width_bucket(id, :id::bigint[])], error = (:error::jsonb[])[width_bucket(id, :id::bigint[])],
    ended_at = (:ended_at::timestamptz[])[width_bucket(id, :id::bigint[])]
WHERE id = ANY (:id::bigint[]);

-- name: put_workflows
UPDATE mainspring.workflows
SET state = (:state::smallint[])[width_bucket(id, :id::bigint[])], nodes_left = (:nodes_left::int[])[width_bucket(id, :id::bigint[])],
    nodes_failed = (:nodes_failed::int[])[width_bucket(id, :id::bigint[])], stopping = (:stopping::text[])[width_bucket(id, :id::bigint[])],
    paused_at = (:paused_at::timestamptz[])[width_bucket(id, :id::bigint[])], ended_at = (:ended_at::timestamptz[])[width_bucket(id, :id::bigint[])]
WHERE id = ANY (:id::bigint[]);

-- name: finish_roots
-- The jobs of workflows that have ended. A workflow that failed (verdict 2) leaves a dead letter. The arguments of each job
-- are always kept: a retry makes the job again.
WITH ended AS (
    DELETE FROM mainspring.jobs WHERE id = ANY (:id::bigint[])
    RETURNING *, width_bucket(id, :id::bigint[]) AS place
), buried AS (
    INSERT INTO mainspring.dead_jobs (id, run_at, enqueued_at, died_at, schedule_id, slot_at, queue_id, task_id, fence, priority,
                                      max_attempts, failures, crashes, reason, payload, errors, expires_at, limit_set_id, workflow_id, trace)
    SELECT id, coalesce(due_at, run_at), enqueued_at, coalesce(:at::timestamptz, now()), schedule_id, slot_at, queue_id, task_id, fence, priority,
           max_attempts, failures + 1, crashes, 'failed', payload,
           coalesce(errors, '[]') || ((:error::jsonb[])[place]
               || jsonb_build_object('attempt', failures + 1, 'at', coalesce(:at::timestamptz, now()))),
           expires_at, limit_set_id, coalesce(workflow_id, id), trace
    FROM ended WHERE (:verdict::smallint[])[place] = 2
)
INSERT INTO mainspring.runs (job_id, finished_at, started_at, enqueued_at, run_at, worker_id, schedule_id, slot_at, queue_id,
                             task_id, fence, priority, max_attempts, failures, crashes, verdict, payload, result, error)
SELECT id, coalesce(:at::timestamptz, now()), (:started_at::timestamptz[])[place], enqueued_at, coalesce(due_at, run_at), 0, schedule_id, slot_at,
       queue_id, task_id, fence, priority, max_attempts, failures, crashes, (:verdict::smallint[])[place],
       payload, (:result::bytea[])[place],
       CASE WHEN (:error::jsonb[])[place] IS NOT NULL
            THEN (:error::jsonb[])[place] || jsonb_build_object('attempt', failures + 1, 'at', coalesce(:at::timestamptz, now())) END
FROM ended
RETURNING job_id;

-- name: orders
SELECT workflow_id, at, action, author, note FROM mainspring.workflow_orders WHERE workflow_id = :workflow_id ORDER BY at, ctid;

-- name: revive_dead
-- Retried steps go on with their old errors, with their edited arguments, and with all attempts restored.
WITH back AS (
    DELETE FROM mainspring.dead_jobs WHERE id = ANY (:ids::bigint[]) RETURNING *
)
INSERT INTO mainspring.jobs (id, run_at, enqueued_at, schedule_id, slot_at, queue_id, task_id, fence, priority, max_attempts, payload, errors,
                             limit_set_id, due_at, workflow_id, trace)
SELECT id, CASE WHEN limit_set_id IS NULL THEN coalesce(:at::timestamptz, now()) ELSE timestamptz '9998-01-01 00:00:00+00' END, enqueued_at,
       schedule_id, slot_at, queue_id, task_id, fence, priority, max_attempts, payload, errors, limit_set_id,
       CASE WHEN limit_set_id IS NOT NULL THEN coalesce(:at::timestamptz, now()) END, workflow_id, trace
FROM back
RETURNING id;

-- name: revive_cancelled
-- Cancelled jobs, as they were when they were cancelled, but without limits, which are not on record. The fence is higher
-- than that of the last claim, which may have come after the cancel.
INSERT INTO mainspring.jobs (id, run_at, enqueued_at, schedule_id, slot_at, queue_id, task_id, fence, priority, max_attempts, payload, workflow_id)
SELECT DISTINCT ON (job_id) job_id, coalesce(:at::timestamptz, now()), enqueued_at, schedule_id, slot_at, queue_id, task_id,
       (SELECT max(f.fence) FROM mainspring.runs f WHERE f.job_id = r.job_id), priority,
       max_attempts, payload, (SELECT s.workflow_id FROM mainspring.workflow_steps s WHERE s.id = job_id)
FROM mainspring.runs r WHERE job_id = ANY (:ids::bigint[]) AND verdict = 5 AND payload IS NOT NULL
ORDER BY job_id, finished_at DESC
ON CONFLICT DO NOTHING
RETURNING id;

-- name: revive_root
-- The workflow's own job, from its dead letter or else from the run that ended it. `parent` is the workflow of which it is a
-- step. The fence increases, so that the next run that ends the job is known to be newer.
WITH letter AS (
    DELETE FROM mainspring.dead_jobs WHERE id = :id RETURNING *
), told AS (
    SELECT enqueued_at, run_at, schedule_id, slot_at, queue_id, task_id, fence, priority, max_attempts, payload, trace, 0 AS place, died_at AS at FROM letter
    UNION ALL
    SELECT enqueued_at, run_at, schedule_id, slot_at, queue_id, task_id, fence, priority, max_attempts, payload, NULL, 1, finished_at
    FROM mainspring.runs WHERE job_id = :id AND payload IS NOT NULL
)
INSERT INTO mainspring.jobs (id, run_at, due_at, enqueued_at, schedule_id, slot_at, queue_id, task_id, fence, priority, max_attempts, payload,
                             workflow_id, trace)
SELECT :id, timestamptz '9997-01-01 00:00:00+00', run_at, enqueued_at, schedule_id, slot_at, queue_id, task_id, fence + 1, priority, max_attempts,
       payload, :parent_id::bigint, trace
FROM told ORDER BY place, at DESC LIMIT 1
ON CONFLICT DO NOTHING
RETURNING id;

-- name: prune_workflows
WITH gone AS (
    DELETE FROM mainspring.workflows WHERE id = ANY (:ids::bigint[]) RETURNING id
), steps AS (
    DELETE FROM mainspring.workflow_steps WHERE workflow_id = ANY (:ids::bigint[])
), audit_log AS (
    DELETE FROM mainspring.workflow_orders WHERE workflow_id = ANY (:ids::bigint[])
)
SELECT id FROM gone;
