-- name: end_processes
UPDATE processes SET lease_until = :now + min(lease, :longest)
-- No renewal writes such a late end: a clock was set, or an operator changed the row. A minute more is allowed, as on
-- PostgreSQL.
WHERE NOT dead AND lease_until > :now + min(lease, :longest) + 60000000;
INSERT INTO lost_processes (id, role, name, lost_at)
SELECT id, role, name, :now FROM processes
-- part: ended
WHERE NOT dead AND lease_until <= :now
  AND (:since IS NULL OR (:last + :gap >= :now AND :since + min(lease, :longest) <= :now))
-- end
ON CONFLICT DO NOTHING;
UPDATE processes SET dead = 1
-- use: ended
RETURNING name;

-- name: reap_jobs
-- A crash is counted if it is on record that the run had begun. An orphaned job whose run had not begun gets no row here.
INSERT INTO runs (job_id, finished_at, started_at, enqueued_at, run_at, worker_id, schedule_id, slot_at, queue,
                  task, fence, priority, max_attempts, failures, crashes, verdict)
SELECT id, :now, claimed_at, enqueued_at, run_at, worker_id, schedule_id, slot_at, queue,
       task, fence, priority, max_attempts, failures, crashes + (orphan IS fence), 4
FROM jobs
-- part: lost
WHERE id IN (
    SELECT id FROM jobs WHERE worker_id <> 0 AND worker_id IN (SELECT id FROM processes WHERE dead) ORDER BY id LIMIT :limit
)
-- end
  AND (orphan IS NULL OR orphan = fence);
INSERT INTO dead_jobs (id, run_at, enqueued_at, died_at, schedule_id, slot_at, queue, task, fence, priority,
                       max_attempts, failures, crashes, reason, payload, errors, expires_at, limit_set_id, workflow_id, trace)
SELECT id, run_at, enqueued_at, :now, schedule_id, slot_at, queue, task, fence, priority,
       max_attempts, failures, crashes + 1, 'crashed', payload,
       json_insert(coalesce(errors, '[]'), '$[#]', json_set(json(:error), '$.attempt', failures + 1, '$.at',
           strftime('%Y-%m-%dT%H:%M:%S', :now / 1000000, 'unixepoch') || printf('.%06dZ', :now % 1000000))),
       expires_at, limit_set_id, workflow_id, trace
FROM jobs
-- use: lost
  AND orphan IS fence AND crashes + 1 >= :crashes_allowed;
-- For a job that is not an orphaned job, the store does not know whether its run had begun: the job becomes an orphaned
-- job.
UPDATE jobs SET worker_id = 0, crashes = crashes + (orphan IS fence), orphan = coalesce(orphan, 0)
-- use: lost
  AND NOT (orphan IS fence AND crashes + 1 >= :crashes_allowed)
RETURNING id, 0 AS buried;
DELETE FROM jobs
WHERE worker_id <> 0 AND worker_id IN (SELECT id FROM processes WHERE dead)
  AND orphan IS fence AND crashes + 1 >= :crashes_allowed AND EXISTS (SELECT 1 FROM dead_jobs d WHERE d.id = jobs.id)
RETURNING id, 1 AS buried;

-- name: forget_processes
DELETE FROM processes
WHERE dead AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.worker_id <> 0 AND jobs.worker_id = processes.id);

-- name: mark_orphans_dead
INSERT INTO processes (id, role, name, queues, tasks, version, tzdata, started_at, lease_until, dead)
SELECT DISTINCT worker_id, 'worker', 'unknown', '[]', '[]', '', '', :now, :now, 1
FROM jobs WHERE worker_id <> 0 AND worker_id NOT IN (SELECT id FROM processes)
RETURNING id;
