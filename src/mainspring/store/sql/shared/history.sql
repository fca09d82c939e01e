-- name: dead_job
SELECT * FROM mainspring.dead_jobs WHERE id = :id;

-- name: ended_job
-- The run that ended it: succeeded, cancelled or discarded. The newest, should an operator have replayed it.
SELECT * FROM mainspring.runs WHERE job_id = :id AND verdict IN (0, 5, 7) ORDER BY finished_at DESC, fence DESC LIMIT 1;

-- name: schedules
SELECT s.*, p.trigger, p.next_at FROM mainspring.schedules s JOIN mainspring.specs p ON p.id = s.spec_id
WHERE :names::text[] IS NULL OR s.name = ANY (:names) ORDER BY s.name;

-- name: schedule_names
SELECT name FROM mainspring.schedules UNION SELECT name FROM mainspring.schedule_versions ORDER BY name;

-- name: versions
SELECT version, change, changed_at, author, note, definition FROM mainspring.schedule_versions
WHERE name = :name ORDER BY schedule_id, version;

-- name: slots
SELECT :schedule::text AS schedule, l.slot_at, l.disposition, l.reason, l.since, l.job_id, l.decided_at, l.blocker, l.note
FROM mainspring.slots l
WHERE l.schedule_id IN (SELECT id FROM mainspring.schedules WHERE name = :schedule
                        UNION SELECT schedule_id FROM mainspring.schedule_versions WHERE name = :schedule)
  AND (:before::timestamptz IS NULL OR l.slot_at < :before) AND (:start::timestamptz IS NULL OR l.slot_at >= :start)
ORDER BY l.slot_at DESC, l.schedule_id DESC LIMIT :limit;

-- name: live_job
SELECT *, CASE WHEN worker_id <> 0 OR run_at = timestamptz '9997-01-01 00:00:00+00' THEN 'running' WHEN run_at > :now THEN 'delayed' ELSE 'ready' END AS state
FROM mainspring.jobs WHERE id = :id;

-- name: standings
SELECT id, CASE WHEN worker_id <> 0 OR run_at = timestamptz '9997-01-01 00:00:00+00' THEN 'running' WHEN run_at > :now THEN 'delayed' ELSE 'ready' END AS state,
       coalesce(due_at, run_at) AS run_at, enqueued_at, worker_id, claimed_at, failures, max_attempts
FROM mainspring.jobs WHERE id = ANY (:ids::bigint[]);
