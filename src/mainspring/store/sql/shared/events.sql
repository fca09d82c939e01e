-- name: waits
SELECT job_id, fence FROM mainspring.event_waits WHERE name = :name;

-- name: awaited
SELECT w.job_id, w.name FROM mainspring.event_waits w
WHERE w.job_id = ANY (:ids::bigint[])
  AND w.fence = (SELECT j.fence FROM mainspring.jobs j WHERE j.id = w.job_id AND j.worker_id = 0);

-- name: old_waits
-- A page of waits whose job has been claimed again, or is gone.
SELECT w.job_id, w.fence,
       (SELECT j.fence FROM mainspring.jobs j WHERE j.id = w.job_id AND j.worker_id = 0) IS NOT DISTINCT FROM w.fence AS stands
FROM mainspring.event_waits w WHERE w.job_id > :after ORDER BY w.job_id LIMIT :limit;

-- name: send_event
-- No row: it was sent before.
INSERT INTO mainspring.events AS e (job_id, name, payload, sent_at)
VALUES (:job_id, :name, :payload, :now)
ON CONFLICT (job_id, name) DO UPDATE SET payload = excluded.payload, sent_at = excluded.sent_at WHERE e.sent_at IS NULL
RETURNING job_id;

-- name: own_wait
-- IS TRUE keeps the planner from the index of all that wait for the name.
SELECT job_id, fence FROM mainspring.event_waits WHERE job_id = :job_id AND (name = :name) IS TRUE;

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
