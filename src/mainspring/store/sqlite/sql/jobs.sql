-- name: reserve_ids
-- The highest id ever given. Only one transaction writes at a time, so the ids after it are ours.
SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'jobs'), 0) AS id;

-- name: add_lanes
INSERT INTO lanes (queue, priority) VALUES (:queue, :priority) ON CONFLICT DO NOTHING;

-- name: insert_jobs
-- By position: the driver binds a tuple a row a fifth faster than a dict.
INSERT INTO jobs (id, queue, task, priority, run_at, enqueued_at, max_attempts, payload) VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- name: claim_lanes
-- None at all for a worker whose lease has ended.
SELECT l.queue, l.priority FROM json_each(:queues) q JOIN lanes l ON l.queue = q.value
WHERE EXISTS (SELECT 1 FROM members WHERE id = :worker_id AND NOT dead AND lease_until > :now)
ORDER BY l.priority DESC, q.key;

-- name: claim_jobs
UPDATE jobs SET worker_id = :worker_id, fence = fence + 1, claimed_at = :now
WHERE id IN (
    SELECT id FROM jobs INDEXED BY jobs_ready
    WHERE worker_id = 0 AND queue = :queue AND priority = :priority AND run_at <= :now
      AND task IN (SELECT value FROM json_each(:tasks))
    ORDER BY run_at, id
    LIMIT :limit
)
RETURNING id, fence, queue, task, payload, failures, max_attempts, run_at, enqueued_at, schedule_id, slot_at, crashes;

-- name: held_jobs
SELECT id, fence, queue, task, payload, failures, max_attempts, run_at, enqueued_at, schedule_id, slot_at, crashes
FROM jobs WHERE worker_id <> 0 AND worker_id = :worker_id
ORDER BY id;

-- name: standing_claims
-- Which of the [job, worker, fence] named still are the job's claim. The transaction has the write
-- lock, so what stands here stands until it commits.
SELECT j.id, j.failures, j.errors FROM json_each(:claims) c
CROSS JOIN jobs j ON j.id = json_extract(c.value, '$[0]')
WHERE j.worker_id = json_extract(c.value, '$[1]') AND j.fence = json_extract(c.value, '$[2]');

-- name: note_run
-- The job must still be as it was during the run. Only verdicts that end it keep its payload.
INSERT INTO runs (job_id, finished_at, started_at, enqueued_at, run_at, worker_id, schedule_id, slot_at, queue,
                  task, fence, priority, max_attempts, failures, crashes, verdict, payload, result, error)
SELECT id, :now, :started_at, enqueued_at, run_at, worker_id, schedule_id, slot_at, queue,
       task, fence, priority, max_attempts, failures, crashes, :verdict, CASE WHEN :verdict = 0 THEN payload END, :result, :error
FROM jobs WHERE id = :id;

-- name: remove_jobs
DELETE FROM jobs WHERE id IN (SELECT value FROM json_each(:ids));

-- name: settle_succeeded
-- The hot path, for [job, worker, fence, took] without a result: one statement for the whole batch
-- takes two thirds of the time of one a job. JSON cannot carry the bytes of a result.
INSERT INTO runs (job_id, finished_at, started_at, enqueued_at, run_at, worker_id, schedule_id, slot_at, queue,
                  task, fence, priority, max_attempts, failures, crashes, verdict, payload)
SELECT j.id, :now, :now - json_extract(c.value, '$[3]'), j.enqueued_at, j.run_at, j.worker_id, j.schedule_id, j.slot_at, j.queue,
       j.task, j.fence, j.priority, j.max_attempts, j.failures, j.crashes, 0, j.payload
FROM json_each(:claims) c CROSS JOIN jobs j ON j.id = json_extract(c.value, '$[0]')
WHERE j.worker_id = json_extract(c.value, '$[1]') AND j.fence = json_extract(c.value, '$[2]')
RETURNING job_id;

-- name: settle_dead
INSERT INTO dead_jobs (id, run_at, enqueued_at, died_at, schedule_id, slot_at, queue, task, fence, priority,
                       max_attempts, failures, crashes, reason, payload, errors)
SELECT id, run_at, enqueued_at, :now, schedule_id, slot_at, queue, task, fence, priority,
       max_attempts, failures + 1, crashes, 'failed', payload, :errors
FROM jobs WHERE id = :id;

-- name: settle_failed
UPDATE jobs SET worker_id = 0, failures = failures + 1, run_at = :run_at, errors = :errors WHERE id = :id;

-- name: settle_released
UPDATE jobs SET worker_id = 0, run_at = coalesce(:run_at, run_at) WHERE id = :id;

-- name: recorded_runs
-- Not what the reaper or a cancel wrote under the same claim: that was no settlement.
SELECT DISTINCT r.job_id FROM json_each(:claims) c
CROSS JOIN runs r ON r.job_id = json_extract(c.value, '$[0]')
WHERE r.verdict < 4 AND r.worker_id = json_extract(c.value, '$[1]') AND r.fence = json_extract(c.value, '$[2]');

-- name: cancel_jobs
INSERT INTO runs (job_id, finished_at, started_at, enqueued_at, run_at, worker_id, schedule_id, slot_at, queue,
                  task, fence, priority, max_attempts, failures, crashes, verdict, payload)
SELECT id, :now, CASE WHEN worker_id <> 0 THEN claimed_at END, enqueued_at, run_at, worker_id, schedule_id, slot_at, queue,
       task, fence, priority, max_attempts, failures, crashes, 5, payload
FROM jobs WHERE id IN (SELECT value FROM json_each(:ids))
RETURNING job_id AS id, worker_id <> 0 AS running, run_at > :now AS delayed;

-- name: hasten_jobs
UPDATE jobs SET run_at = :now
WHERE id IN (SELECT value FROM json_each(:ids)) AND worker_id = 0 AND run_at > :now
RETURNING id;

-- name: replay_dead
INSERT INTO jobs (id, run_at, enqueued_at, schedule_id, slot_at, queue, task, fence, priority, max_attempts, payload, errors)
SELECT id, :now, enqueued_at, schedule_id, slot_at, queue, task, fence, priority, max_attempts, payload, errors
FROM dead_jobs WHERE id IN (SELECT value FROM json_each(:ids))
RETURNING id;

-- name: purge_dead
DELETE FROM dead_jobs WHERE id IN (SELECT value FROM json_each(:ids)) RETURNING id;

-- name: prune_runs
DELETE FROM runs WHERE rowid IN (SELECT rowid FROM runs WHERE finished_at < :before LIMIT :limit);

-- name: prune_slots
DELETE FROM slots WHERE (schedule_id, slot_at) IN (SELECT schedule_id, slot_at FROM slots WHERE slot_at < :before LIMIT :limit);
