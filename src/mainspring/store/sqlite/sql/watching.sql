-- What operators should know of first. Every statement is bounded: it looks at the few oldest or newest of a
-- kind, by index, however many there are.

-- name: watch_scheduled
-- A spec outlives its schedules, so the next few are asked whether anybody's slots they are.
SELECT EXISTS (
    SELECT 1 FROM (SELECT id FROM specs WHERE next_at IS NOT NULL ORDER BY next_at LIMIT 1000) p
    WHERE EXISTS (SELECT 1 FROM schedules s WHERE s.spec_id = p.id AND s.paused_at IS NULL)
) AS scheduled,
(
    SELECT min(at) FROM (
        SELECT min(p.next_at) AS at FROM (SELECT id, next_at FROM specs WHERE next_at <= :now ORDER BY next_at LIMIT 1000) p
        WHERE EXISTS (SELECT 1 FROM schedules s WHERE s.spec_id = p.id AND s.paused_at IS NULL)
        UNION ALL SELECT min(slot_at) FROM fires
    )
) AS behind_since;

-- name: watch_overdue
SELECT s.name, d.slot_at, s.expect_start_within
FROM (
    SELECT * FROM (SELECT id AS spec_id, next_at AS slot_at, 0 AS last_id FROM specs WHERE next_at <= :now ORDER BY next_at LIMIT :most)
    UNION ALL
    SELECT * FROM (SELECT spec_id, slot_at, last_id FROM fires ORDER BY slot_at LIMIT :most)
) d
CROSS JOIN schedules s ON s.spec_id = d.spec_id AND s.id > d.last_id
WHERE s.active_from < d.slot_at AND s.paused_at IS NULL
  AND d.slot_at <= :now - min(:missed_after, coalesce(s.expect_start_within, :missed_after))
ORDER BY d.slot_at LIMIT :most;

-- name: watch_expecting
-- Live jobs of schedules that say how soon they should start or end: a look-up for each of those.
SELECT s.name, s.expect_start_within, s.expect_finish_by, j.slot_at, j.id, j.queue,
       CASE WHEN j.run_at < 253307692800000000 THEN j.run_at ELSE j.due_at END AS due_at,
       j.worker_id <> 0 OR j.run_at = 253307692800000000 AS claimed, j.fence > 0 AS begun
FROM schedules s
CROSS JOIN jobs j ON j.schedule_id = s.id
WHERE (s.expect_start_within IS NOT NULL OR s.expect_finish_by IS NOT NULL)
  AND j.slot_at IS NOT NULL AND j.backfill_id IS NULL
  AND ((j.fence = 0 AND j.slot_at + s.expect_start_within <= :now) OR j.slot_at + s.expect_finish_by <= :now)
ORDER BY s.id LIMIT :most;

-- name: watch_stale
-- Jobs of slots that nobody ever took, among the oldest of each lane.
SELECT s.name, j.slot_at, j.id, j.queue, j.run_at AS due_at
FROM (SELECT queue, priority FROM lanes) l
CROSS JOIN jobs j ON j.id IN (
    SELECT o.id FROM jobs o
    WHERE o.queue = l.queue AND o.priority = l.priority AND o.run_at <= :now - :late_after AND o.worker_id = 0
    ORDER BY o.run_at, o.id LIMIT :most
)
CROSS JOIN schedules s ON s.id = j.schedule_id
WHERE j.slot_at IS NOT NULL AND j.backfill_id IS NULL AND j.fence = 0
LIMIT :most;

-- name: watch_waiting
SELECT l.queue, j.task, j.id, j.run_at AS due_at
FROM (SELECT queue, priority FROM lanes) l
CROSS JOIN jobs j ON j.id = (
    SELECT o.id FROM jobs o
    WHERE o.queue = l.queue AND o.priority = l.priority AND o.run_at <= :now AND o.worker_id = 0
    ORDER BY o.run_at, o.id LIMIT 1
)
ORDER BY j.run_at LIMIT :most;

-- name: watch_lost
SELECT role, name, lost_at FROM lost_members WHERE lost_at > :now - :lost_window ORDER BY lost_at DESC LIMIT :most;

-- name: watch_died
SELECT d.id, d.task, d.died_at, d.reason, d.schedule_id, (SELECT name FROM schedules s WHERE s.id = d.schedule_id) AS schedule
FROM (SELECT id, task, died_at, reason, schedule_id FROM dead_jobs ORDER BY died_at DESC LIMIT :most) d
ORDER BY d.died_at DESC, d.id DESC;

-- name: watch_grown
SELECT count(*) AS grown FROM (SELECT 1 FROM dead_jobs WHERE died_at > :now - :dead_window LIMIT 10000);

-- name: watch_streaks
-- The newest slots of these schedules that made a job, and what became of it.
SELECT s.name, l.slot_at,
       EXISTS (SELECT 1 FROM dead_jobs d WHERE d.id = l.job_id) AS dead,
       EXISTS (SELECT 1 FROM jobs j WHERE j.id = l.job_id) AS live
FROM json_each(:schedule_ids) w
CROSS JOIN schedules s ON s.id = w.value
CROSS JOIN slots l ON l.schedule_id = s.id AND l.slot_at IN (
    SELECT n.slot_at FROM slots n WHERE n.schedule_id = s.id AND n.job_id IS NOT NULL ORDER BY n.slot_at DESC LIMIT :streak
)
ORDER BY s.id, l.slot_at DESC;
