-- What operators should know of first. Every statement is bounded: it looks at the few oldest or newest of a
-- kind, by index, however many there are.

-- name: watch_scheduled
-- A spec outlives its schedules, so the next few are asked whether anybody's slots they are.
SELECT EXISTS (
    SELECT 1 FROM (
        SELECT id FROM mainspring.specs WHERE next_at IS NOT NULL ORDER BY next_at LIMIT 1000
    ) p
    WHERE (SELECT s.id FROM mainspring.schedules s WHERE s.spec_id = p.id AND s.paused_at IS NULL LIMIT 1) IS NOT NULL
) AS scheduled,
least((
    SELECT p.next_at FROM (
        SELECT id, next_at FROM mainspring.specs WHERE next_at <= coalesce(:at::timestamptz, now()) ORDER BY next_at LIMIT 1000
    ) p
    WHERE (SELECT s.id FROM mainspring.schedules s WHERE s.spec_id = p.id AND s.paused_at IS NULL LIMIT 1) IS NOT NULL
    ORDER BY p.next_at LIMIT 1
), (SELECT slot_at FROM mainspring.fires ORDER BY slot_at LIMIT 1)) AS behind_since;

-- name: watch_overdue
SELECT s.name, d.slot_at, s.expect_start_within
FROM (
    (SELECT id AS spec_id, next_at AS slot_at, 0::bigint AS last_id, 9223372036854775807 AS until_id FROM mainspring.specs
     WHERE next_at <= coalesce(:at::timestamptz, now()) ORDER BY next_at LIMIT :most)
    UNION ALL
    (SELECT spec_id, slot_at, last_id, until_id FROM mainspring.fires ORDER BY slot_at LIMIT :most)
) d
CROSS JOIN LATERAL (
    SELECT name, expect_start_within FROM mainspring.schedules
    WHERE spec_id = d.spec_id AND id + 0 > d.last_id AND id + 0 <= d.until_id AND active_from < d.slot_at AND paused_at IS NULL
      AND d.slot_at <= coalesce(:at::timestamptz, now()) - least(:missed_after::interval, expect_start_within)
    ORDER BY id + 0 LIMIT :most
) s
ORDER BY d.slot_at LIMIT :most;

-- name: watch_expecting
-- Live jobs of schedules that say how soon they should start or end: a look-up for each of those.
SELECT s.name, s.expect_start_within, s.expect_finish_by, j.slot_at, j.id, j.queue_id, j.due_at, j.claimed, j.begun
FROM (
    SELECT id, name, expect_start_within, expect_finish_by FROM mainspring.schedules
    WHERE expect_start_within IS NOT NULL OR expect_finish_by IS NOT NULL
    ORDER BY id OFFSET 0
) s
CROSS JOIN LATERAL (
    SELECT slot_at, id, queue_id,
           CASE WHEN run_at < timestamptz '9997-01-01 00:00:00+00' THEN run_at ELSE due_at END AS due_at,
           worker_id <> 0 OR run_at = timestamptz '9997-01-01 00:00:00+00' AS claimed, fence > 0 AS begun
    FROM mainspring.jobs
    WHERE schedule_id = s.id AND slot_at IS NOT NULL AND backfill_id IS NULL
      AND ((fence = 0 AND slot_at + s.expect_start_within <= coalesce(:at::timestamptz, now()))
           OR slot_at + s.expect_finish_by <= coalesce(:at::timestamptz, now()))
    ORDER BY slot_at LIMIT 2
) j
LIMIT :most;

-- name: watch_stale
-- Jobs of slots that nobody ever took, among the oldest of each lane.
SELECT (SELECT name FROM mainspring.schedules s WHERE s.id = j.schedule_id) AS name, j.slot_at, j.id, j.queue_id, j.run_at AS due_at
FROM mainspring.lanes l
CROSS JOIN LATERAL (
    SELECT * FROM mainspring.jobs
    WHERE queue_id = l.queue_id AND priority = l.priority AND run_at <= coalesce(:at::timestamptz, now()) - :late_after::interval
      AND worker_id = 0
    ORDER BY run_at, id + 0 LIMIT :most
) j
WHERE j.schedule_id IS NOT NULL AND j.slot_at IS NOT NULL AND j.backfill_id IS NULL AND j.fence = 0
LIMIT :most;

-- name: watch_waiting
SELECT l.queue_id, j.task_id, j.id, j.run_at AS due_at
FROM mainspring.lanes l
CROSS JOIN LATERAL (
    SELECT id, task_id, run_at FROM mainspring.jobs
    WHERE queue_id = l.queue_id AND priority = l.priority AND run_at <= coalesce(:at::timestamptz, now()) AND worker_id = 0
    ORDER BY run_at, id + 0 LIMIT 1
) j
ORDER BY j.run_at LIMIT :most;

-- name: watch_lost
SELECT role, name, lost_at FROM mainspring.lost_members
WHERE lost_at > coalesce(:at::timestamptz, now()) - :lost_window::interval
ORDER BY lost_at DESC LIMIT :most;

-- name: watch_died
SELECT d.id, d.task_id, d.died_at, d.reason, d.schedule_id,
       (SELECT name FROM mainspring.schedules s WHERE s.id = d.schedule_id) AS schedule
FROM (SELECT id, task_id, died_at, reason, schedule_id FROM mainspring.dead_jobs ORDER BY died_at DESC LIMIT :most) d
ORDER BY d.died_at DESC, d.id DESC;

-- name: watch_grown
SELECT count(*)::int AS grown FROM (
    SELECT 1 FROM mainspring.dead_jobs WHERE died_at > coalesce(:at::timestamptz, now()) - :dead_window::interval LIMIT 10000
) d;

-- name: watch_streaks
-- The newest slots of these schedules that made a job, and what became of it.
SELECT (SELECT name FROM mainspring.schedules s WHERE s.id = w.schedule_id) AS name, l.slot_at,
       (SELECT d.id FROM mainspring.dead_jobs d WHERE d.id = l.job_id) IS NOT NULL AS dead,
       (SELECT j.id FROM mainspring.jobs j WHERE j.id = l.job_id) IS NOT NULL AS live
FROM unnest(:schedule_ids::bigint[]) AS w (schedule_id)
CROSS JOIN LATERAL (
    SELECT slot_at, job_id FROM mainspring.slots
    WHERE schedule_id = w.schedule_id AND job_id IS NOT NULL ORDER BY slot_at DESC LIMIT :streak
) l
ORDER BY w.schedule_id, l.slot_at DESC;
