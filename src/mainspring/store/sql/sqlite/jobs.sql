-- name: cancel_jobs
INSERT INTO runs (job_id, finished_at, started_at, enqueued_at, run_at, worker_id, schedule_id, slot_at, queue,
                  task, fence, priority, max_attempts, failures, crashes, verdict, payload)
SELECT id, :now, CASE WHEN worker_id <> 0 THEN claimed_at END, enqueued_at, coalesce(due_at, run_at), worker_id, schedule_id, slot_at, queue,
       task, fence, priority, max_attempts, failures, crashes, 5, payload
FROM jobs WHERE id IN (SELECT value FROM json_each(:ids));
DELETE FROM jobs WHERE id IN (SELECT value FROM json_each(:ids))
RETURNING id, CASE WHEN worker_id <> 0 OR run_at = 253307692800000000 THEN 'running'
                   WHEN coalesce(due_at, run_at) > :now THEN 'delayed' ELSE 'ready' END AS was;

-- name: run_jobs_now
UPDATE jobs SET run_at = CASE WHEN limit_set_id IS NULL THEN :now ELSE 253339228800000000 END, due_at = CASE WHEN limit_set_id IS NOT NULL THEN :now END
WHERE id IN (SELECT value FROM json_each(:ids)) AND worker_id = 0 AND run_at > :now AND run_at <> 253307692800000000
RETURNING id;

-- name: reschedule_jobs
UPDATE jobs SET run_at = CASE WHEN limit_set_id IS NULL THEN :run_at ELSE 253339228800000000 END, due_at = CASE WHEN limit_set_id IS NOT NULL THEN :run_at END
WHERE id IN (SELECT value FROM json_each(:ids)) AND worker_id = 0 AND run_at <> 253307692800000000
  AND (expires_at > :run_at) IS NOT FALSE
RETURNING id;

-- name: edit_job
-- A job that has passed its limits keeps its places, unless the edit changes its limits.
UPDATE jobs
SET payload = coalesce(:payload, payload), priority = coalesce(:priority, priority), queue = coalesce(:queue, queue),
    max_attempts = coalesce(:max_attempts, max_attempts), limit_set_id = CASE WHEN :keep_limit_set THEN limit_set_id ELSE :limit_set_id END,
    run_at = CASE WHEN :keep_limit_set OR limit_set_id IS :limit_set_id THEN run_at
                  WHEN :limit_set_id IS NULL THEN coalesce(due_at, run_at)
                  ELSE 253339228800000000 END,
    due_at = CASE WHEN :keep_limit_set OR limit_set_id IS :limit_set_id THEN due_at
                  WHEN :limit_set_id IS NOT NULL THEN coalesce(due_at, run_at) END,
    expires_at = CASE WHEN :keep_deadline THEN expires_at ELSE coalesce(:expires_at, coalesce(due_at, run_at) + :expires) END
WHERE id = :id AND worker_id = 0 AND fence = :fence AND payload = :expected AND workflow_id IS NULL
  AND run_at <> 253307692800000000 AND (failures < :max_attempts) IS NOT FALSE
RETURNING id;

-- name: drop_limit_holders
DELETE FROM limit_holders
WHERE job_id = :id AND NOT EXISTS (
    SELECT 1 FROM jobs j JOIN limit_sets l ON l.id = j.limit_set_id
    WHERE j.id = limit_holders.job_id AND j.run_at < 253339228800000000
      AND ',' || l.limit_keys || ',' LIKE '%,' || limit_holders.limit_key_id || ',%'
);

-- name: expire_jobs
-- Only jobs that no worker holds. If a job runs past its deadline, its worker ends the run; or the worker dies, the reaper
-- gives the job back, and this statement finds it.
INSERT INTO dead_jobs (id, run_at, enqueued_at, died_at, schedule_id, slot_at, queue, task, fence, priority,
                       max_attempts, failures, crashes, reason, payload, errors, expires_at, limit_set_id, workflow_id, trace)
SELECT id, coalesce(due_at, run_at), enqueued_at, :now, schedule_id, slot_at, queue, task, fence, priority,
       max_attempts, failures, crashes, 'expired', payload,
       json_insert(coalesce(errors, '[]'), '$[#]', json_set(json(:error), '$.attempt', failures + 1, '$.at',
           strftime('%Y-%m-%dT%H:%M:%S', :now / 1000000, 'unixepoch') || printf('.%06dZ', :now % 1000000))),
       expires_at, limit_set_id, CASE WHEN run_at = 253307692800000000 THEN coalesce(workflow_id, id) ELSE workflow_id END, trace
FROM jobs
-- part: late
WHERE id IN (
    SELECT id FROM jobs INDEXED BY jobs_expiring WHERE expires_at <= :now AND worker_id = 0 ORDER BY expires_at, id LIMIT :limit
)
-- end
;
INSERT INTO runs (job_id, finished_at, enqueued_at, run_at, worker_id, schedule_id, slot_at, queue,
                  task, fence, priority, max_attempts, failures, crashes, verdict, error)
SELECT id, :now, enqueued_at, run_at, 0, schedule_id, slot_at, queue,
       task, fence, priority, max_attempts, failures, crashes, 2,
       json_set(json(:error), '$.attempt', failures + 1, '$.at',
           strftime('%Y-%m-%dT%H:%M:%S', :now / 1000000, 'unixepoch') || printf('.%06dZ', :now % 1000000))
FROM jobs
-- use: late
;
DELETE FROM jobs
-- use: late
RETURNING id;

-- name: running
SELECT j.id, j.queue, j.task, j.failures, j.max_attempts, j.worker_id, j.claimed_at, p.fraction, p.note
FROM (SELECT * FROM jobs WHERE worker_id <> 0 ORDER BY claimed_at, id LIMIT :limit) j
LEFT JOIN progress p ON p.job_id = j.id AND p.fence = j.fence
ORDER BY j.claimed_at, j.id;

-- name: live_page
SELECT *, id AS job_id FROM (
    SELECT *, row_number() OVER (ORDER BY id DESC) AS place,
           (:states IS NULL OR state IN (SELECT value FROM json_each(:states)))
           AND (:task IS NULL OR task = :task)
           AND (:queue IS NULL OR queue = :queue)
           AND (:since IS NULL OR enqueued_at >= :since) AND (:until IS NULL OR enqueued_at < :until) AS fits
    FROM (
        SELECT *, CASE WHEN worker_id <> 0 OR run_at = 253307692800000000 THEN 'running' WHEN run_at > :now THEN 'delayed' ELSE 'ready' END AS state
        FROM jobs WHERE id < :before ORDER BY id DESC LIMIT :look
    )
)
WHERE fits OR place = :look ORDER BY id DESC LIMIT :limit;

-- name: live_of_schedule
SELECT *, CASE WHEN worker_id <> 0 OR run_at = 253307692800000000 THEN 'running' WHEN run_at > :now THEN 'delayed' ELSE 'ready' END AS state
FROM jobs WHERE schedule_id = :schedule_id AND id < :before ORDER BY id DESC LIMIT :look;

-- name: running_ids
SELECT id FROM jobs WHERE worker_id <> 0
UNION SELECT id FROM (SELECT id FROM workflows WHERE state = 0 AND id < :before ORDER BY id DESC LIMIT :look);

-- name: ended_page
SELECT * FROM (
    SELECT *, row_number() OVER (ORDER BY job_id DESC) AS place,
           verdict IN (SELECT value FROM json_each(:verdicts))
-- part: ended
           AND (:task IS NULL OR task = :task)
           AND (:queue IS NULL OR queue = :queue)
           AND (:since IS NULL OR finished_at >= :since) AND (:until IS NULL OR finished_at < :until) AS fits
    FROM (SELECT * FROM runs WHERE job_id < :before ORDER BY job_id DESC LIMIT :look)
)
WHERE fits OR place = :look ORDER BY job_id DESC LIMIT :limit;
-- end

-- name: ended_of_task
-- In order of age, as for all jobs: no index has tasks.
SELECT * FROM (
    SELECT *, row_number() OVER (ORDER BY job_id DESC) AS place,
           verdict IN (SELECT value FROM json_each(:verdicts))
-- use: ended

-- name: ended_of_schedule
SELECT * FROM (
    SELECT *, row_number() OVER (ORDER BY job_id DESC) AS place,
           verdict IN (SELECT value FROM json_each(:verdicts)) AND schedule_id = :schedule_id
-- use: ended

-- name: ended_unusually
SELECT * FROM (
    SELECT *, row_number() OVER (ORDER BY job_id DESC) AS place,
           verdict = :verdict
-- use: ended
