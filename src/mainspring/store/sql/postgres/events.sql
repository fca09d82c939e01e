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

-- name: send_event
-- No row: it was sent before.
INSERT INTO mainspring.events AS e (job_id, name, payload, sent_at)
VALUES (:job_id, :name, :payload, coalesce(:at::timestamptz, now()))
ON CONFLICT (job_id, name) DO UPDATE SET payload = excluded.payload, sent_at = excluded.sent_at WHERE e.sent_at IS NULL
RETURNING e.job_id;

-- name: own_wait
-- IS TRUE keeps the planner from the index of all that wait for the name.
SELECT job_id, fence FROM mainspring.event_waits WHERE job_id = :job_id AND (name = :name) IS TRUE;

-- name: wake_jobs
-- Those that still wait. One with limits comes before its gates.
UPDATE mainspring.jobs
SET run_at = CASE WHEN line_id IS NULL THEN least(run_at, coalesce(:at::timestamptz, now())) ELSE run_at END,
    due_at = CASE WHEN due_at IS NOT NULL THEN least(due_at, coalesce(:at::timestamptz, now())) END
WHERE id = ANY (:ids::bigint[]) AND worker_id = 0 AND fence = (:fences::int[])[width_bucket(id, :ids::bigint[])]
RETURNING id;

-- name: drop_waits
DELETE FROM mainspring.event_waits
WHERE job_id = ANY (:ids::bigint[]) AND fence = (:fences::int[])[width_bucket(job_id, :ids::bigint[])]
RETURNING job_id;

-- name: event
-- A job's own goes before everybody's.
SELECT payload FROM mainspring.events WHERE job_id IN (:job_id::bigint, 0) AND name = :name AND sent_at IS NOT NULL
ORDER BY job_id DESC LIMIT 1;

-- name: old_events
-- The jobs of a page of their own events that are old enough to go.
SELECT DISTINCT job_id FROM (
    SELECT job_id FROM mainspring.events
    WHERE job_id > :after AND (sent_at IS NULL OR sent_at < :before::timestamptz) ORDER BY job_id LIMIT :limit
) page
ORDER BY job_id;

-- name: prune_events
-- Those of jobs that nobody knows any more. `known` is what `known_ids` says of them.
DELETE FROM mainspring.events WHERE job_id = ANY (:job_ids::bigint[]) AND job_id <> ALL (:known::bigint[]) RETURNING job_id;

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
