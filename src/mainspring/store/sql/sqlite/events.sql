-- name: put_waits
INSERT INTO event_waits (job_id, name, fence) VALUES (:job_id, :name, :fence)
ON CONFLICT (job_id) DO UPDATE SET name = excluded.name, fence = excluded.fence;

-- name: send_event
-- No row: it was sent before.
INSERT INTO events (job_id, name, payload, sent_at) VALUES (:job_id, :name, :payload, :now) ON CONFLICT DO NOTHING
RETURNING job_id;

-- name: own_wait
SELECT job_id, fence FROM event_waits WHERE job_id = :job_id AND +name = :name;

-- name: wake_jobs
-- Those that still wait. One with limits comes before its gates.
UPDATE jobs SET run_at = CASE WHEN line_id IS NULL THEN min(run_at, :now) ELSE run_at END, due_at = min(due_at, :now)
WHERE id = :job_id AND worker_id = 0 AND fence = :fence;

-- name: drop_waits
DELETE FROM event_waits WHERE job_id = :job_id AND fence = :fence;

-- name: event
-- A job's own goes before everybody's.
SELECT payload FROM events WHERE job_id IN (:job_id, 0) AND name = :name ORDER BY job_id DESC LIMIT 1;

-- name: old_events
-- The jobs of a page of their own events that are old enough to go.
SELECT DISTINCT job_id FROM (SELECT job_id FROM events WHERE job_id > :after AND sent_at < :before ORDER BY job_id LIMIT :limit)
ORDER BY job_id;

-- name: prune_events
-- Those of jobs that nobody knows any more.
DELETE FROM events WHERE job_id IN (SELECT value FROM json_each(:job_ids))
  AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.id = events.job_id)
  AND NOT EXISTS (SELECT 1 FROM dead_jobs d WHERE d.id = events.job_id)
  AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.job_id = events.job_id);

-- name: prune_common_events
-- Everybody's, by age.
DELETE FROM events WHERE (job_id, name) IN (SELECT job_id, name FROM events WHERE job_id = 0 AND sent_at < :before LIMIT :limit);
