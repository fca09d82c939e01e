-- Whoever sends and whoever begins to wait takes locks in one order: events by job and name, then jobs by id, then waits.

-- name: add_events
-- Where those who begin to wait meet those who send. They come sorted.
INSERT INTO mainspring.events (job_id, name)
SELECT n.job_id, n.name FROM unnest(:job_ids::bigint[], :names::text[]) AS n (job_id, name)
ON CONFLICT DO NOTHING;

-- name: meet_events
-- Those who wait do not keep one another waiting, only those who send. A row is as it is once it is locked.
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
-- Those that still wait. One with limits comes before its limit keys.
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
-- Everybody's, by age; and meeting places where nobody waits: whoever comes next makes them anew.
DELETE FROM mainspring.events
WHERE ctid = ANY (ARRAY(
    SELECT e.ctid FROM mainspring.events e
    WHERE e.job_id = 0
      AND (e.sent_at < :before::timestamptz
           OR (e.sent_at IS NULL AND (SELECT w.job_id FROM mainspring.event_waits w WHERE w.name = e.name LIMIT 1) IS NULL))
    LIMIT :limit FOR UPDATE SKIP LOCKED
))
RETURNING job_id;
