-- name: watch_lost
SELECT role, name, max(lost_at) AS lost_at FROM mainspring.lost_processes
WHERE lost_at > :now - :lost_window::interval
GROUP BY role, name ORDER BY 3 DESC LIMIT :most + 1;

-- name: watch_gaps
SELECT began_at, ended_at FROM mainspring.gaps
WHERE ended_at > :now - :failed_window::interval ORDER BY began_at LIMIT :most;

-- name: watch_grown
SELECT count(*)::int AS grown, min(died_at) AS since FROM (
    SELECT died_at FROM mainspring.dead_jobs WHERE died_at > :now - :dead_window::interval ORDER BY died_at LIMIT :counted
) d;

-- name: watch_failing
-- Schedules with so many dead letters, of which the newest ended job is a dead letter.
WITH RECURSIVE dead (schedule_id, place) AS (
    SELECT 0::bigint, 0
    UNION ALL
    SELECT (SELECT d.schedule_id FROM mainspring.dead_jobs d
            WHERE d.schedule_id > o.schedule_id AND d.slot_at IS NOT NULL ORDER BY d.schedule_id LIMIT 1), o.place + 1
    FROM dead o WHERE o.schedule_id IS NOT NULL AND o.place <= :scanned
)
SELECT d.schedule_id
FROM dead d
WHERE d.schedule_id IS NOT NULL
  AND (SELECT 1 FROM mainspring.dead_jobs j WHERE j.schedule_id = d.schedule_id AND j.slot_at IS NOT NULL
       LIMIT 1 OFFSET :failing - 1) IS NOT NULL
  AND (SELECT (SELECT j.id FROM mainspring.dead_jobs j WHERE j.id = l.job_id)
       FROM (SELECT job_id FROM mainspring.slots WHERE schedule_id = d.schedule_id AND job_id IS NOT NULL
             ORDER BY slot_at DESC LIMIT :streak) l
       WHERE (SELECT j.id FROM mainspring.jobs j WHERE j.id = l.job_id) IS NULL LIMIT 1) IS NOT NULL
ORDER BY d.schedule_id LIMIT :most + 1;
