-- name: reserve_ids
-- The highest id ever given. Only one transaction writes at a time, so no other transaction takes the ids after it.
SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'jobs'), 0) AS id;

-- name: add_priority_levels
INSERT INTO priority_levels (queue, priority, paused)
VALUES (:queue, :priority, EXISTS (SELECT 1 FROM queue_pauses p WHERE p.queue = :queue)) ON CONFLICT DO NOTHING;

-- name: insert_jobs
-- Parameters by position: the driver binds a tuple a fifth faster than a dict.
INSERT INTO jobs (id, queue, task, priority, run_at, enqueued_at, max_attempts, payload) VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- name: insert_limited_jobs
-- Jobs with limits, a deadline or a trace. Jobs with limits wait for their limits at a moment where no claim looks.
INSERT INTO jobs (id, queue, task, priority, run_at, enqueued_at, max_attempts, payload, expires_at, limit_set_id, due_at, trace)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: insert_workflow_jobs
-- Jobs of steps, with limits or without. A job that is made again after a retry continues the count of its claims. The
-- trace is that of the workflow's own job, which is in the queue until the last step has ended.
INSERT INTO jobs (id, queue, task, priority, run_at, enqueued_at, max_attempts, payload, expires_at, limit_set_id, due_at, workflow_id, fence, trace)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, (SELECT root.trace FROM jobs root WHERE root.id = ?12));

-- name: lock_keys
INSERT INTO unique_keys (key, name, job_id) VALUES (:key, :name, :job_id)
ON CONFLICT (key) DO UPDATE SET key = excluded.key
RETURNING job_id, until;

-- name: live_holders
SELECT id, worker_id <> 0 AS running FROM jobs WHERE id IN (SELECT value FROM json_each(:ids));

-- name: take_keys
UPDATE unique_keys SET job_id = :job_id, until = :until WHERE key = :key;

-- name: replace_job
UPDATE jobs SET payload = :payload, priority = :priority, queue = :queue, max_attempts = :max_attempts, trace = :trace,
    run_at = CASE WHEN limit_set_id IS NULL THEN :run_at ELSE 253339228800000000 END, due_at = CASE WHEN limit_set_id IS NOT NULL THEN :run_at END
WHERE id = :id AND worker_id = 0;

-- name: claim_priority_levels
-- No row for a worker whose lease has ended.
SELECT l.queue, l.priority FROM json_each(:queues) q JOIN priority_levels l ON l.queue = q.value AND NOT l.paused
WHERE EXISTS (SELECT 1 FROM processes WHERE id = :worker_id AND NOT dead AND lease_until > :now)
ORDER BY l.priority DESC, q.key;

-- name: claim_jobs
UPDATE jobs SET worker_id = :worker_id, fence = fence + 1, claimed_at = :now
WHERE id IN (
    SELECT id FROM jobs INDEXED BY jobs_ready
    WHERE worker_id = 0 AND queue = :queue AND priority = :priority AND run_at <= :now
      AND task IN (SELECT value FROM json_each(:tasks)) AND orphan IS NULL
    ORDER BY run_at, id
    LIMIT :limit
)
RETURNING id, fence, queue, task, payload, failures, max_attempts, run_at, enqueued_at, schedule_id, slot_at, limit_set_id, crashes,
          expires_at - :now, workflow_id, trace, :now - run_at, previous_at;

-- name: orphans_due
-- Every worker asks this from time to time. The index is nearly always empty.
SELECT id FROM jobs INDEXED BY jobs_orphans
WHERE orphan IS NOT NULL AND worker_id = 0 AND run_at <= :now
  AND queue IN (SELECT value FROM json_each(:queues)) AND task IN (SELECT value FROM json_each(:tasks))
LIMIT 1;

-- name: claim_orphans
-- Jobs with fewer crashes come first. So after the next death of a worker other jobs are first.
UPDATE jobs SET worker_id = :worker_id, fence = fence + 1, claimed_at = :now
WHERE id IN (
    SELECT id FROM jobs INDEXED BY jobs_orphans
    WHERE orphan IS NOT NULL AND worker_id = 0 AND queue = :queue AND priority = :priority
      AND crashes BETWEEN :least AND :most AND run_at <= :now AND task IN (SELECT value FROM json_each(:tasks))
    ORDER BY crashes, run_at, id
    LIMIT :limit
)
RETURNING id, fence, queue, task, payload, failures, max_attempts, run_at, enqueued_at, schedule_id, slot_at, limit_set_id, crashes,
          expires_at - :now, workflow_id, trace, :now - run_at, previous_at;

-- name: begin_orphan
-- From now on it is on record that the run of this claim has begun: if the worker dies, the job gets a crash.
UPDATE jobs SET orphan = fence WHERE id = :id AND worker_id = :worker_id AND fence = :fence;

-- name: held_jobs
SELECT id, fence, queue, task, payload, failures, max_attempts, run_at, enqueued_at, schedule_id, slot_at, limit_set_id, crashes,
       expires_at - :now, workflow_id, trace, claimed_at - run_at, previous_at, orphan IS NOT NULL AS orphan
FROM jobs WHERE worker_id <> 0 AND worker_id = :worker_id
ORDER BY id;

-- name: standing_claims
-- Those of the [job, worker, fence] that are still the claim of their job. The transaction has the write lock, so the
-- answer stays true until the transaction commits.
SELECT j.id, j.worker_id, j.fence, j.failures, j.errors FROM json_each(:claims) c
CROSS JOIN jobs j ON j.id = json_extract(c.value, '$[0]')
WHERE j.worker_id = json_extract(c.value, '$[1]') AND j.fence = json_extract(c.value, '$[2]');

-- name: note_run
-- The job must still be as it was during the run. The run keeps the payload only where the verdict ends the job without a
-- dead letter.
INSERT INTO runs (job_id, finished_at, started_at, enqueued_at, run_at, worker_id, schedule_id, slot_at, queue,
                  task, fence, priority, max_attempts, failures, crashes, verdict, payload, result, error)
SELECT id, :now, :started_at, enqueued_at, run_at, worker_id, schedule_id, slot_at, queue,
       task, fence, priority, max_attempts, failures, crashes + (:verdict = 4), :verdict,
       CASE WHEN :verdict IN (0, 7) THEN payload END, :result, :error
FROM jobs WHERE id = :id;

-- name: remove_jobs
DELETE FROM jobs WHERE id IN (SELECT value FROM json_each(:ids));

-- name: settle_succeeded
-- The hot path, for [job, worker, fence, took] without a result. One statement for the whole batch takes two thirds of the
-- time of one statement for each job. JSON cannot contain the bytes of a result.
INSERT INTO runs (job_id, finished_at, started_at, enqueued_at, run_at, worker_id, schedule_id, slot_at, queue,
                  task, fence, priority, max_attempts, failures, crashes, verdict, payload)
SELECT j.id, :now, :now - json_extract(c.value, '$[3]'), j.enqueued_at, j.run_at, j.worker_id, j.schedule_id, j.slot_at, j.queue,
       j.task, j.fence, j.priority, j.max_attempts, j.failures, j.crashes, 0, j.payload
FROM json_each(:claims) c CROSS JOIN jobs j ON j.id = json_extract(c.value, '$[0]')
WHERE j.worker_id = json_extract(c.value, '$[1]') AND j.fence = json_extract(c.value, '$[2]')
RETURNING job_id;

-- name: settle_dead
-- The cause is a failure, which is counted unless the handler never ran, or a crash.
INSERT INTO dead_jobs (id, run_at, enqueued_at, died_at, schedule_id, slot_at, queue, task, fence, priority,
                       max_attempts, failures, crashes, reason, payload, errors, expires_at, limit_set_id, workflow_id, trace)
SELECT id, run_at, enqueued_at, :now, schedule_id, slot_at, queue, task, fence, priority,
       max_attempts, failures + :failed, crashes + :crashed, :reason, payload, :errors, expires_at, limit_set_id, workflow_id, trace
FROM jobs WHERE id = :id;

-- name: settle_failed
-- A failure or a crash that is not the last. Each is counted in its own column.
UPDATE jobs SET worker_id = 0, failures = failures + :failed, crashes = crashes + :crashed, errors = :errors,
                orphan = CASE WHEN :crashed THEN coalesce(orphan, 0) ELSE orphan END,
                run_at = CASE WHEN limit_set_id IS NULL THEN :run_at ELSE 253339228800000000 END, due_at = CASE WHEN limit_set_id IS NOT NULL THEN :run_at END
WHERE id = :id;

-- name: settle_released
-- Given back or snoozed.
UPDATE jobs SET worker_id = 0, run_at = CASE WHEN :run_at IS NULL THEN run_at WHEN limit_set_id IS NULL THEN :run_at ELSE 253339228800000000 END,
                due_at = CASE WHEN limit_set_id IS NOT NULL THEN :run_at END
WHERE id = :id;

-- name: settle_started
-- The workflow's own job stays in the queue, at a moment where no claim looks, until the workflow has ended. A job without a
-- trace takes the trace of its run. Its steps continue this trace.
UPDATE jobs SET worker_id = 0, due_at = run_at, run_at = 253307692800000000,
    trace = coalesce(trace, (SELECT t.value FROM json_each(:traces) t WHERE t.key = CAST(jobs.id AS TEXT)))
WHERE id IN (SELECT value FROM json_each(:ids))
RETURNING id, workflow_id;

-- name: recorded_runs
-- Without rows that the reaper or a cancel wrote under the same claim, because these are no settlements. A crash that a
-- worker reports has an error. A crash that the reaper writes has none.
SELECT DISTINCT r.job_id FROM json_each(:claims) c
CROSS JOIN runs r ON r.job_id = json_extract(c.value, '$[0]')
WHERE (r.verdict NOT IN (4, 5) OR (r.verdict = 4 AND r.error IS NOT NULL)) AND r.worker_id = json_extract(c.value, '$[1]') AND r.fence = json_extract(c.value, '$[2]');

-- name: whereabouts
SELECT c.value AS id, j.id IS NOT NULL AS live, m.name AS holder
FROM json_each(:job_ids) c
LEFT JOIN jobs j ON j.id = c.value
LEFT JOIN processes m ON m.id = j.worker_id AND j.worker_id <> 0
ORDER BY c.key;
