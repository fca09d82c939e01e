-- name: cancel_jobs
WITH gone AS (
    DELETE FROM mainspring.jobs WHERE id = ANY (:ids::bigint[]) RETURNING *
), noted AS (
    INSERT INTO mainspring.runs (job_id, finished_at, started_at, enqueued_at, run_at, worker_id, schedule_id, slot_at, queue_id,
                                 task_id, fence, priority, max_attempts, failures, crashes, verdict, payload)
    SELECT id, coalesce(:at::timestamptz, now()), CASE WHEN worker_id <> 0 THEN claimed_at END, enqueued_at, coalesce(due_at, run_at), worker_id,
           schedule_id, slot_at, queue_id, task_id, fence, priority, max_attempts, failures, crashes, 5, payload
    FROM gone
)
SELECT id, CASE WHEN worker_id <> 0 OR run_at = timestamptz '9997-01-01 00:00:00+00' THEN 'running'
                WHEN coalesce(due_at, run_at) > coalesce(:at::timestamptz, now()) THEN 'delayed' ELSE 'ready' END AS was
FROM gone;

-- name: run_jobs_now
WITH named AS MATERIALIZED (
    SELECT id, worker_id, run_at FROM mainspring.jobs WHERE id = ANY (:ids::bigint[]) FOR UPDATE
)
UPDATE mainspring.jobs
SET run_at = CASE WHEN limit_set_id IS NULL THEN coalesce(:at::timestamptz, now()) ELSE timestamptz '9998-01-01 00:00:00+00' END,
    due_at = CASE WHEN limit_set_id IS NOT NULL THEN coalesce(:at::timestamptz, now()) END
WHERE id = ANY (ARRAY(SELECT id FROM named WHERE worker_id = 0 AND run_at > coalesce(:at::timestamptz, now())
                                           AND run_at <> timestamptz '9997-01-01 00:00:00+00'))
RETURNING id;

-- name: reschedule_jobs
WITH named AS MATERIALIZED (
    SELECT id, worker_id, run_at, expires_at FROM mainspring.jobs WHERE id = ANY (:ids::bigint[]) ORDER BY id FOR UPDATE
)
UPDATE mainspring.jobs
SET run_at = CASE WHEN limit_set_id IS NULL THEN :run_at::timestamptz ELSE timestamptz '9998-01-01 00:00:00+00' END,
    due_at = CASE WHEN limit_set_id IS NOT NULL THEN :run_at::timestamptz END
WHERE id = ANY (ARRAY(SELECT id FROM named WHERE worker_id = 0 AND run_at <> timestamptz '9997-01-01 00:00:00+00'
                                           AND (expires_at > :run_at::timestamptz) IS NOT FALSE))
RETURNING id;

-- name: edit_job
-- A job that has passed its limits keeps its places, unless the edit changes its limits.
WITH named AS MATERIALIZED (
    SELECT id, run_at, due_at, CASE WHEN :keep_limit_set::boolean THEN limit_set_id ELSE :limit_set_id::int END AS limit_set_id,
           coalesce(due_at, run_at) AS due
    FROM mainspring.jobs
    WHERE id = :id AND worker_id = 0 AND fence = :fence AND payload = :expected AND workflow_id IS NULL
      AND run_at <> timestamptz '9997-01-01 00:00:00+00' AND (failures < :max_attempts::smallint) IS NOT FALSE
    FOR UPDATE
)
UPDATE mainspring.jobs j
SET payload = coalesce(:payload::bytea, j.payload), priority = coalesce(:priority::smallint, j.priority),
    queue_id = coalesce((SELECT q.id FROM mainspring.queues q WHERE q.name = :queue::text), j.queue_id),
    max_attempts = coalesce(:max_attempts::smallint, j.max_attempts), limit_set_id = n.limit_set_id,
    run_at = CASE WHEN n.limit_set_id IS NULL THEN n.due
                  WHEN n.limit_set_id IS NOT DISTINCT FROM j.limit_set_id THEN j.run_at
                  ELSE timestamptz '9998-01-01 00:00:00+00' END,
    due_at = CASE WHEN n.limit_set_id IS NULL THEN NULL
                  WHEN n.limit_set_id IS NOT DISTINCT FROM j.limit_set_id THEN j.due_at
                  ELSE n.due END,
    expires_at = CASE WHEN :keep_deadline::boolean THEN j.expires_at
                      ELSE coalesce(:expires_at::timestamptz, n.due + :expires::interval) END
FROM named n WHERE j.id = n.id
RETURNING j.id;

-- name: drop_limit_holders
DELETE FROM mainspring.limit_holders p
WHERE p.job_id = :id
  AND (SELECT p.limit_key_id = ANY (string_to_array(l.limit_keys, ',')::int[]) AND j.run_at < timestamptz '9998-01-01 00:00:00+00'
       FROM mainspring.jobs j JOIN mainspring.limit_sets l ON l.id = j.limit_set_id WHERE j.id = p.job_id) IS NOT TRUE;

-- name: expire_jobs
-- Only jobs that no worker holds. If a job runs past its deadline, its worker ends the run; or the worker dies, the reaper
-- gives the job back, and this statement finds it.
WITH late AS MATERIALIZED (
    SELECT id FROM mainspring.jobs
    WHERE expires_at <= coalesce(:at::timestamptz, now()) AND worker_id = 0
    ORDER BY expires_at LIMIT :limit FOR UPDATE SKIP LOCKED
), ended AS (
    DELETE FROM mainspring.jobs WHERE id = ANY (ARRAY(SELECT id FROM late))
    RETURNING *, :error::jsonb || jsonb_build_object('attempt', failures + 1, 'at', coalesce(:at::timestamptz, now())) AS error
), buried AS (
    INSERT INTO mainspring.dead_jobs (id, run_at, enqueued_at, died_at, schedule_id, slot_at, queue_id, task_id, fence, priority,
                                      max_attempts, failures, crashes, reason, payload, errors, expires_at, limit_set_id, workflow_id, trace)
    SELECT id, coalesce(due_at, run_at), enqueued_at, coalesce(:at::timestamptz, now()), schedule_id, slot_at, queue_id, task_id, fence, priority,
           max_attempts, failures, crashes, 'expired', payload, coalesce(errors, '[]') || error, expires_at, limit_set_id,
           CASE WHEN run_at = timestamptz '9997-01-01 00:00:00+00' THEN coalesce(workflow_id, id) ELSE workflow_id END, trace
    FROM ended
)
INSERT INTO mainspring.runs (job_id, finished_at, enqueued_at, run_at, worker_id, schedule_id, slot_at, queue_id,
                             task_id, fence, priority, max_attempts, failures, crashes, verdict, error)
SELECT id, coalesce(:at::timestamptz, now()), enqueued_at, run_at, 0, schedule_id, slot_at, queue_id,
       task_id, fence, priority, max_attempts, failures, crashes, 2, error
FROM ended
RETURNING job_id AS id;

-- name: running
-- No index has the worker of a job, because such an index would prevent HOT updates. But claims take jobs from the head of
-- each priority level.
SELECT j.id, (SELECT name FROM mainspring.tasks WHERE id = j.task_id) AS task,
       (SELECT name FROM mainspring.queues WHERE id = j.queue_id) AS queue,
       j.failures, j.max_attempts, j.worker_id, j.claimed_at, p.fraction, p.note
FROM (
    SELECT held.* FROM mainspring.priority_levels l
    CROSS JOIN LATERAL (
        SELECT head.id, head.queue_id, head.task_id, head.failures, head.max_attempts, head.worker_id, head.claimed_at, head.fence
        FROM (
            SELECT * FROM mainspring.jobs
            WHERE queue_id = l.queue_id AND priority = l.priority
            ORDER BY run_at, id + 0
            LIMIT :look
        ) head
        WHERE head.worker_id <> 0
    ) held
    ORDER BY held.claimed_at, held.id
    LIMIT :limit
) j
LEFT JOIN LATERAL (
    SELECT fraction, note FROM mainspring.progress WHERE job_id = j.id AND fence = j.fence LIMIT 1
) p ON true
ORDER BY j.claimed_at, j.id;

-- name: live_page
-- The names of the queues and tasks of the page are read once, not for each row.
WITH page AS MATERIALIZED (
    SELECT * FROM (
        SELECT *, row_number() OVER (ORDER BY id DESC) AS place,
               (:states::text[] IS NULL OR state = ANY (:states))
               AND (:task::text IS NULL OR task_id = (SELECT id FROM mainspring.tasks WHERE name = :task))
               AND (:queue::text IS NULL OR queue_id = (SELECT id FROM mainspring.queues WHERE name = :queue))
               AND (:since::timestamptz IS NULL OR enqueued_at >= :since) AND (:until::timestamptz IS NULL OR enqueued_at < :until) AS fits
        FROM (
            SELECT *, CASE WHEN worker_id <> 0 OR run_at = timestamptz '9997-01-01 00:00:00+00' THEN 'running' WHEN run_at > coalesce(:at::timestamptz, now()) THEN 'delayed' ELSE 'ready' END AS state
            FROM mainspring.jobs WHERE id < :before ORDER BY id DESC LIMIT :look
        ) looked
    ) numbered
    WHERE fits OR place = :look ORDER BY id DESC LIMIT :limit
), task AS MATERIALIZED (
    SELECT id, name FROM mainspring.tasks WHERE id = ANY (ARRAY(SELECT DISTINCT task_id FROM page))
), queue AS MATERIALIZED (
    SELECT id, name FROM mainspring.queues WHERE id = ANY (ARRAY(SELECT DISTINCT queue_id FROM page))
)
SELECT *, id AS job_id, (SELECT t.name FROM task t WHERE t.id = task_id) AS task, (SELECT q.name FROM queue q WHERE q.id = queue_id) AS queue
FROM page ORDER BY id DESC;

-- name: live_of_schedule
-- All live jobs: a schedule has few at a time.
WITH own AS MATERIALIZED (
    SELECT id FROM mainspring.jobs WHERE schedule_id = :schedule_id LIMIT :look
)
SELECT *, (SELECT name FROM mainspring.tasks WHERE id = task_id) AS task, (SELECT name FROM mainspring.queues WHERE id = queue_id) AS queue,
       CASE WHEN worker_id <> 0 OR run_at = timestamptz '9997-01-01 00:00:00+00' THEN 'running' WHEN run_at > coalesce(:at::timestamptz, now()) THEN 'delayed' ELSE 'ready' END AS state
FROM mainspring.jobs WHERE id = ANY (ARRAY(SELECT id FROM own WHERE id < :before ORDER BY id DESC LIMIT :look)) ORDER BY id DESC;

-- name: running_ids
-- No index has the claimed jobs, because such an index would prevent HOT claims. But claims begin at the head of each
-- priority level, so jobs that run are found there. A running job may come after many jobs that no worker can run. Such a
-- job is found in the last heartbeat of its process.
WITH lane AS MATERIALIZED (
    SELECT l.queue_id, l.priority, greatest(200, 10000 / greatest((SELECT count(*) FROM mainspring.priority_levels), 1)) AS most
    FROM mainspring.priority_levels l WHERE :queue::text IS NULL OR l.queue_id = (SELECT id FROM mainspring.queues WHERE name = :queue)
), head AS MATERIALIZED (
    SELECT j.id, j.worker_id FROM lane CROSS JOIN LATERAL (
        SELECT id, worker_id FROM (
            SELECT j.id, j.worker_id, j.run_at, j.id + 0 AS newest FROM mainspring.jobs j
            WHERE j.queue_id = lane.queue_id AND j.priority = lane.priority AND j.run_at <= coalesce(:at::timestamptz, now())
            ORDER BY j.run_at, newest LIMIT lane.most
        ) first
    ) j
), parked AS MATERIALIZED (
    SELECT j.id FROM lane CROSS JOIN LATERAL (
        SELECT j.id FROM mainspring.jobs j
        WHERE j.queue_id = lane.queue_id AND j.priority = lane.priority AND j.run_at = timestamptz '9997-01-01 00:00:00+00'
          AND j.id + 0 < :before
        ORDER BY j.run_at DESC, j.id + 0 DESC LIMIT :limit
    ) j
)
SELECT id FROM (
    SELECT id FROM head WHERE worker_id <> 0
    UNION SELECT id FROM parked
    UNION SELECT unnest(holding) FROM mainspring.processes WHERE NOT dead
) running;

-- name: ended_page
SELECT *, (SELECT name FROM mainspring.tasks WHERE id = task_id) AS task, (SELECT name FROM mainspring.queues WHERE id = queue_id) AS queue
FROM (
    SELECT *, row_number() OVER (ORDER BY job_id DESC) AS place,
           verdict = ANY (:verdicts::smallint[]) AND (:task::text IS NULL OR task_id = (SELECT id FROM mainspring.tasks WHERE name = :task))
           AND (:queue::text IS NULL OR queue_id = (SELECT id FROM mainspring.queues WHERE name = :queue))
           AND (:since::timestamptz IS NULL OR finished_at >= :since) AND (:until::timestamptz IS NULL OR finished_at < :until) AS fits
    FROM (
        SELECT * FROM mainspring.runs
        WHERE job_id < :before AND finished_at >= coalesce(date_trunc('day', :since::timestamptz, 'UTC'), '-infinity')
          AND finished_at < coalesce(date_trunc('day', :until::timestamptz, 'UTC') + interval '24 hours', 'infinity')
        ORDER BY job_id DESC LIMIT :look
    ) looked
) numbered
WHERE fits OR place = :look ORDER BY job_id DESC LIMIT :limit;

-- name: ended_of_task
SELECT *, (SELECT name FROM mainspring.tasks WHERE id = task_id) AS task, (SELECT name FROM mainspring.queues WHERE id = queue_id) AS queue
FROM (
    SELECT *, row_number() OVER (ORDER BY newest DESC) AS place,
           verdict = ANY (:verdicts::smallint[]) AND (:queue::text IS NULL OR queue_id = (SELECT id FROM mainspring.queues WHERE name = :queue))
           AND (:since::timestamptz IS NULL OR finished_at >= :since) AND (:until::timestamptz IS NULL OR finished_at < :until) AS fits
    FROM (
        SELECT *, job_id + 0 AS newest FROM mainspring.runs
        WHERE task_id = (SELECT id FROM mainspring.tasks WHERE name = :task) AND job_id + 0 < :before AND finished_at >= coalesce(date_trunc('day', :since::timestamptz, 'UTC'), '-infinity')
          AND finished_at < coalesce(date_trunc('day', :until::timestamptz, 'UTC') + interval '24 hours', 'infinity')
        ORDER BY newest DESC LIMIT :look
    ) looked
) numbered
WHERE fits OR place = :look ORDER BY newest DESC LIMIT :limit;

-- name: ended_of_schedule
SELECT *, (SELECT name FROM mainspring.tasks WHERE id = task_id) AS task, (SELECT name FROM mainspring.queues WHERE id = queue_id) AS queue
FROM (
    SELECT *, row_number() OVER (ORDER BY newest DESC) AS place,
           verdict = ANY (:verdicts::smallint[]) AND (:task::text IS NULL OR task_id = (SELECT id FROM mainspring.tasks WHERE name = :task))
           AND (:queue::text IS NULL OR queue_id = (SELECT id FROM mainspring.queues WHERE name = :queue))
           AND (:since::timestamptz IS NULL OR finished_at >= :since) AND (:until::timestamptz IS NULL OR finished_at < :until) AS fits
    FROM (
        SELECT *, job_id + 0 AS newest FROM mainspring.runs
        WHERE schedule_id = :schedule_id AND job_id + 0 < :before AND finished_at >= coalesce(date_trunc('day', :since::timestamptz, 'UTC'), '-infinity')
          AND finished_at < coalesce(date_trunc('day', :until::timestamptz, 'UTC') + interval '24 hours', 'infinity')
        ORDER BY newest DESC LIMIT :look
    ) looked
) numbered
WHERE fits OR place = :look ORDER BY newest DESC LIMIT :limit;

-- name: ended_unusually
-- Runs with one verdict that is not success.
SELECT *, (SELECT name FROM mainspring.tasks WHERE id = task_id) AS task, (SELECT name FROM mainspring.queues WHERE id = queue_id) AS queue
FROM (
    SELECT *, row_number() OVER (ORDER BY newest DESC) AS place,
           (:task::text IS NULL OR task_id = (SELECT id FROM mainspring.tasks WHERE name = :task)) AND (:queue::text IS NULL OR queue_id = (SELECT id FROM mainspring.queues WHERE name = :queue))
           AND (:since::timestamptz IS NULL OR finished_at >= :since) AND (:until::timestamptz IS NULL OR finished_at < :until) AS fits
    FROM (
        SELECT *, job_id + 0 AS newest FROM mainspring.runs
        WHERE verdict <> 0 AND verdict = :verdict AND job_id + 0 < :before AND finished_at >= coalesce(date_trunc('day', :since::timestamptz, 'UTC'), '-infinity')
          AND finished_at < coalesce(date_trunc('day', :until::timestamptz, 'UTC') + interval '24 hours', 'infinity')
        ORDER BY newest DESC LIMIT :look
    ) looked
) numbered
WHERE fits OR place = :look ORDER BY newest DESC LIMIT :limit;
