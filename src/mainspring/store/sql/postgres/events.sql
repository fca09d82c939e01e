-- A sender of an event and a job that begins to wait take locks in one order: events by job and name, then jobs by id,
-- then waits.

-- name: add_events
-- The rows that a sender and a job that begins to wait both lock. The parameters are sorted.
INSERT INTO mainspring.events (job_id, name)
SELECT n.job_id, n.name FROM unnest(:job_ids::bigint[], :names::text[]) AS n (job_id, name)
ON CONFLICT DO NOTHING;

-- name: meet_events
-- Jobs that begin to wait do not block each other. They block a sender only. The answer has each row as it is when it is
-- locked.
SELECT e.job_id, e.name, e.sent_at IS NOT NULL AS sent
FROM unnest(:job_ids::bigint[], :names::text[]) AS n (job_id, name)
CROSS JOIN LATERAL (
    SELECT * FROM mainspring.events m WHERE m.job_id = n.job_id AND m.name = n.name FOR SHARE
) e;

-- name: put_waits
INSERT INTO mainspring.event_waits (job_id, name, fence)
SELECT n.job_id, n.name, n.fence FROM unnest(:job_ids::bigint[], :names::text[], :fences::int[]) AS n (job_id, name, fence)
ORDER BY n.job_id
ON CONFLICT (job_id) DO UPDATE SET name = excluded.name, fence = excluded.fence;

-- name: wake_jobs
-- Only jobs that still wait. A job with limits waits for its limits next.
UPDATE mainspring.jobs
SET run_at = CASE WHEN limit_set_id IS NULL THEN least(run_at, coalesce(:at::timestamptz, now())) ELSE run_at END,
    due_at = CASE WHEN due_at IS NOT NULL THEN least(due_at, coalesce(:at::timestamptz, now())) END
WHERE id = ANY (:job_id::bigint[]) AND worker_id = 0 AND fence = (:fence::int[])[width_bucket(id, :job_id::bigint[])]
RETURNING id;

-- name: drop_waits
DELETE FROM mainspring.event_waits
WHERE job_id = ANY (:job_id::bigint[]) AND fence = (:fence::int[])[width_bucket(job_id, :job_id::bigint[])]
RETURNING job_id;

-- name: prune_common_events
-- Old events for all jobs; and rows without an event for which no job waits: the next sender or waiting job makes them
-- again.
DELETE FROM mainspring.events
WHERE ctid = ANY (ARRAY(
    SELECT e.ctid FROM mainspring.events e
    WHERE e.job_id = 0
      AND (e.sent_at < :before::timestamptz
           OR (e.sent_at IS NULL AND (SELECT w.job_id FROM mainspring.event_waits w WHERE w.name = e.name LIMIT 1) IS NULL))
    LIMIT :limit FOR UPDATE SKIP LOCKED
))
RETURNING job_id;
