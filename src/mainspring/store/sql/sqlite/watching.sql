-- The facts for alerts, the overview and `status`. Every statement reads a bounded number of rows. It looks for each
-- schedule, task, queue or process separately, by an index: so many rows of one do not hide another. It answers one row
-- more than the caller names, so that the caller knows that there are more.

-- name: watch_scheduled
-- A spec stays on record when its schedules are deleted. So each spec is checked for a schedule that uses it. The first
-- such spec ends the search.
SELECT EXISTS (
    SELECT 1 FROM schedules s WHERE s.paused_at IS NULL
      AND (SELECT p.next_at FROM specs p WHERE p.id = s.spec_id) IS NOT NULL
) AS scheduled,
(
    SELECT min(at) FROM (
        SELECT * FROM (
            SELECT p.next_at AS at FROM specs p
            WHERE p.next_at <= :now AND EXISTS (SELECT 1 FROM schedules s WHERE s.spec_id = p.id AND s.paused_at IS NULL)
            ORDER BY p.next_at LIMIT 1
        )
        UNION ALL SELECT min(slot_at) FROM firings
    )
) AS behind_since;

-- name: watch_overdue
-- A few schedules of each burst, so that other schedules are named too.
SELECT s.name AS schedule, d.slot_at, s.expect_start_within
FROM (
    SELECT * FROM (SELECT id AS spec_id, next_at AS slot_at, 0 AS last_id FROM specs WHERE next_at <= :now ORDER BY next_at LIMIT :scanned)
    UNION ALL
    SELECT * FROM (SELECT spec_id, slot_at, last_id FROM firings ORDER BY slot_at LIMIT :scanned)
) d
CROSS JOIN schedules s ON s.id IN (
    SELECT o.id FROM schedules o
    WHERE o.spec_id = d.spec_id AND o.id > d.last_id AND o.active_from < d.slot_at AND o.paused_at IS NULL
      AND d.slot_at <= :now - min(:missed_after, coalesce(o.expect_start_within, :missed_after))
    ORDER BY o.id LIMIT :burst
)
ORDER BY d.slot_at LIMIT :most + 1;

-- name: watch_dropped
-- From schedule to schedule, with one look-up each. So a schedule that drops many slots does not hide another schedule.
WITH RECURSIVE losing (id) AS (
    SELECT min(schedule_id) FROM slots WHERE disposition = 1 AND reason IN ('too_late', 'breaker')
    UNION ALL
    SELECT (SELECT min(l.schedule_id) FROM slots l WHERE l.disposition = 1 AND l.reason IN ('too_late', 'breaker') AND l.schedule_id > losing.id)
    FROM losing WHERE losing.id IS NOT NULL LIMIT :scanned
)
SELECT s.name AS schedule, min(coalesce(l.since, l.slot_at)) AS since, max(l.slot_at) AS until, min(l.decided_at) AS dropped_at, max(l.reason = 'breaker') AS breaker
FROM losing
CROSS JOIN schedules s ON s.id = losing.id
CROSS JOIN slots l ON l.schedule_id = s.id AND l.slot_at IN (
    SELECT n.slot_at FROM slots n
    WHERE n.schedule_id = s.id AND n.disposition = 1 AND n.reason IN ('too_late', 'breaker') AND n.decided_at > :now - :dropped_window
    ORDER BY n.decided_at DESC LIMIT :most
)
GROUP BY s.id ORDER BY max(l.decided_at) DESC LIMIT :most + 1;

-- name: watch_expecting
-- Live jobs of schedules that have an expected start or end: for each schedule, the oldest job that has not started and the
-- oldest job that has not ended.
SELECT s.name AS schedule, s.expect_start_within, s.expect_finish_by, j.slot_at, j.id AS job_id, j.queue,
       CASE WHEN j.run_at < 253307692800000000 THEN j.run_at ELSE j.due_at END AS due_at,
       j.worker_id <> 0 OR j.run_at = 253307692800000000 AS claimed, j.fence > 0 AS begun
FROM schedules s
CROSS JOIN jobs j ON j.id IN (
    SELECT id FROM (
        SELECT o.id FROM jobs o
        WHERE o.schedule_id = s.id AND o.slot_at IS NOT NULL AND o.backfill_id IS NULL
          AND o.fence = 0 AND o.slot_at + s.expect_start_within <= :now
        ORDER BY o.slot_at LIMIT 1
    )
    UNION
    SELECT id FROM (
        SELECT o.id FROM jobs o
        WHERE o.schedule_id = s.id AND o.slot_at IS NOT NULL AND o.backfill_id IS NULL
          AND o.slot_at + s.expect_finish_by <= :now
        ORDER BY o.slot_at LIMIT 1
    )
)
WHERE s.expect_start_within IS NOT NULL OR s.expect_finish_by IS NOT NULL
ORDER BY j.slot_at LIMIT 2 * :most + 1;

-- name: watch_stale
-- For each schedule with live jobs, the oldest job of a slot that no worker has ever claimed.
WITH RECURSIVE live (schedule_id, place) AS (
    SELECT min(schedule_id), 1 FROM jobs WHERE schedule_id IS NOT NULL
    UNION ALL
    SELECT (SELECT min(j.schedule_id) FROM jobs j WHERE j.schedule_id > l.schedule_id), l.place + 1
    FROM live l WHERE l.schedule_id IS NOT NULL AND l.place <= :scanned
)
SELECT s.name AS schedule, j.slot_at, j.id AS job_id, j.queue, j.run_at AS due_at
FROM live l
CROSS JOIN jobs j ON j.id = (
    SELECT id FROM (
        SELECT o.id, o.slot_at FROM jobs o
        WHERE o.schedule_id = l.schedule_id AND o.slot_at IS NOT NULL AND o.backfill_id IS NULL AND o.fence = 0
          AND o.worker_id = 0 AND o.run_at <= :now - :late_after
        LIMIT 1000
    ) ORDER BY slot_at LIMIT 1
)
CROSS JOIN schedules s ON s.id = l.schedule_id
ORDER BY j.slot_at LIMIT :most + 1;

-- name: watch_waiting
-- For each priority level, the oldest job of each task that is among the oldest jobs of that level.
SELECT l.queue, j.task, j.id AS job_id, j.run_at AS due_at
FROM (SELECT queue, priority FROM priority_levels) l
CROSS JOIN jobs j ON j.id IN (
    SELECT id FROM (
        SELECT id, row_number() OVER (PARTITION BY task ORDER BY run_at, id) AS place FROM (
            SELECT o.id, o.task, o.run_at FROM jobs o
            WHERE o.queue = l.queue AND o.priority = l.priority AND o.run_at <= :now AND o.worker_id = 0
            ORDER BY o.run_at, o.id LIMIT 100
        )
    ) WHERE place = 1
)
ORDER BY j.run_at, j.id LIMIT 10 * :most + 1;

-- name: watch_died
WITH RECURSIVE tasks (task) AS (
    SELECT min(task) FROM dead_jobs
    UNION ALL
    SELECT (SELECT min(d.task) FROM dead_jobs d WHERE d.task > t.task) FROM tasks t WHERE t.task IS NOT NULL
)
SELECT t.task,
       (SELECT count(*) FROM (SELECT 1 FROM dead_jobs o WHERE o.task = t.task AND o.died_at > :now - :failed_window LIMIT :counted)) AS jobs,
       (SELECT min(o.died_at) FROM dead_jobs o WHERE o.task = t.task AND o.died_at > :now - :failed_window) AS since,
       d.id AS job_id, d.died_at, d.reason, (SELECT name FROM schedules s WHERE s.id = d.schedule_id) AS schedule
FROM tasks t
CROSS JOIN dead_jobs d ON d.id = (
    SELECT o.id FROM dead_jobs o WHERE o.task = t.task AND o.died_at > :now - :failed_window ORDER BY o.died_at DESC LIMIT 1
)
ORDER BY d.died_at DESC, d.id DESC LIMIT :most + 1;

-- name: watch_retrying
-- Tasks that have failed since the last minutes in which at least as many runs succeeded as failed. A task whose last
-- minutes had successes and no failures is left out. Older times come from rows of ten minutes. The numbers are the places
-- of the counters.
SELECT task, sum(bad) AS failed, sum(good) AS succeeded, min(at) FILTER (WHERE bad > 0) AS since
FROM (
    SELECT *, max(at) FILTER (WHERE good > 0 AND good >= bad) OVER (PARTITION BY task) AS good_at
    FROM (
        SELECT task, at, sum(json_extract(counts, '$[1]') + json_extract(counts, '$[2]') + json_extract(counts, '$[4]')) AS bad,
               sum(json_extract(counts, '$[0]') + json_extract(counts, '$[7]') + json_extract(counts, '$[9]')) AS good
        FROM (SELECT :now - 600000000 - (:now - 600000000 - 946684800000000) % 600000000 AS fine) w
        CROSS JOIN stats
        WHERE task NOT IN ('', '*', '(other)')
          AND (span = 10 AND at >= :now - 10800000000 AND at < w.fine OR span = 1 AND at >= w.fine)
        GROUP BY task, at
    )
)
WHERE good_at IS NULL OR at > good_at
GROUP BY task
HAVING sum(bad) > 0 AND max(at) FILTER (WHERE bad > 0) > :now - 4500000000
   AND NOT (coalesce(max(at) FILTER (WHERE good > 0) >= max(at) FILTER (WHERE bad > 0), 0)
            AND max(at) FILTER (WHERE bad > 0) <= :now - 120000000)
ORDER BY since LIMIT :most + 1;

-- name: watch_streaks
-- The newest slots of these schedules that made a job, and the state of that job.
SELECT s.name AS schedule, l.slot_at,
       EXISTS (SELECT 1 FROM dead_jobs d WHERE d.id = l.job_id) AS dead,
       EXISTS (SELECT 1 FROM jobs j WHERE j.id = l.job_id) AS live
FROM json_each(:schedule_ids) w
CROSS JOIN schedules s ON s.id = w.value
CROSS JOIN slots l ON l.schedule_id = s.id AND l.slot_at IN (
    SELECT n.slot_at FROM slots n WHERE n.schedule_id = s.id AND n.job_id IS NOT NULL ORDER BY n.slot_at DESC LIMIT :streak
)
ORDER BY s.id, l.slot_at DESC;
