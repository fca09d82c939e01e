-- name: waits
SELECT job_id, fence FROM mainspring.event_waits WHERE name = :name;

-- name: awaited
SELECT w.job_id, w.name FROM mainspring.event_waits w
WHERE w.job_id = ANY (:ids::bigint[])
  AND w.fence = (SELECT j.fence FROM mainspring.jobs j WHERE j.id = w.job_id AND j.worker_id = 0);

-- name: old_waits
-- One page of waits. A wait stays only while its job still waits.
SELECT w.job_id, w.fence,
       (SELECT j.fence FROM mainspring.jobs j WHERE j.id = w.job_id AND j.worker_id = 0) IS NOT DISTINCT FROM w.fence AS stands
FROM mainspring.event_waits w WHERE w.job_id > :after ORDER BY w.job_id LIMIT :limit;

-- name: send_event
-- No row means that the event was sent before.
INSERT INTO mainspring.events AS e (job_id, name, payload, sent_at)
VALUES (:job_id, :name, :payload, :now)
ON CONFLICT (job_id, name) DO UPDATE SET payload = excluded.payload, sent_at = excluded.sent_at WHERE e.sent_at IS NULL
RETURNING job_id;

-- name: own_wait
-- IS TRUE keeps the planner from the index of all jobs that wait for this name.
SELECT job_id, fence FROM mainspring.event_waits WHERE job_id = :job_id AND (name = :name) IS TRUE;

-- name: event
-- An event for this job comes before an event for all jobs.
SELECT payload FROM mainspring.events WHERE job_id IN (:job_id::bigint, 0) AND name = :name AND sent_at IS NOT NULL
ORDER BY job_id DESC LIMIT 1;

-- name: old_events
-- The jobs of one page of old events.
SELECT DISTINCT job_id FROM (
    SELECT job_id FROM mainspring.events
    WHERE job_id > :after AND (sent_at IS NULL OR sent_at < :before::timestamptz) ORDER BY job_id LIMIT :limit
) page
ORDER BY job_id;

-- name: prune_events
-- Of jobs that are not on record any more. `known` is the answer of `known_ids` for these jobs.
DELETE FROM mainspring.events WHERE job_id = ANY (:job_ids::bigint[]) AND job_id <> ALL (:known::bigint[]) RETURNING job_id;
