-- name: put_waits
INSERT INTO event_waits (job_id, name, fence) VALUES (:job_id, :name, :fence)
ON CONFLICT (job_id) DO UPDATE SET name = excluded.name, fence = excluded.fence;

-- name: wake_jobs
-- Only jobs that still wait. A job with limits waits for its limits next.
UPDATE jobs SET run_at = CASE WHEN limit_set_id IS NULL THEN min(run_at, :now) ELSE run_at END, due_at = min(due_at, :now)
WHERE id = :job_id AND worker_id = 0 AND fence = :fence;

-- name: drop_waits
DELETE FROM event_waits WHERE job_id = :job_id AND fence = :fence;

-- name: prune_common_events
-- Old events for all jobs.
DELETE FROM events WHERE (job_id, name) IN (SELECT job_id, name FROM events WHERE job_id = 0 AND sent_at < :before LIMIT :limit)
RETURNING job_id;
