-- The facts for alerts, the overview and `status`. Every statement reads a bounded number of rows. It looks for each
-- schedule, task, queue or process separately, by an index: so many rows of one do not hide another. It answers one row
-- more than the caller names, so that the caller knows that there are more.

-- name: watch_scheduled
-- A spec stays on record when its schedules are deleted. So each spec is checked for a schedule that uses it. The first
-- such spec ends the search.
SELECT EXISTS (
    SELECT 1 FROM (SELECT spec_id FROM mainspring.schedules WHERE paused_at IS NULL OFFSET 0) s
    WHERE (SELECT p.next_at FROM mainspring.specs p WHERE p.id = s.spec_id) IS NOT NULL
) AS scheduled,
least((
    SELECT p.next_at FROM mainspring.specs p
    WHERE p.next_at <= coalesce(:at::timestamptz, now())
      AND (SELECT s.id FROM mainspring.schedules s WHERE s.spec_id = p.id AND s.paused_at IS NULL LIMIT 1) IS NOT NULL
    ORDER BY p.next_at LIMIT 1
), (SELECT slot_at FROM mainspring.firings ORDER BY slot_at LIMIT 1)) AS behind_since;

-- name: watch_overdue
-- A few schedules of each burst, so that other schedules are named too.
SELECT s.name AS schedule, d.slot_at, s.expect_start_within
FROM (
    (SELECT id AS spec_id, next_at AS slot_at, 0::bigint AS last_id, 9223372036854775807 AS until_id FROM mainspring.specs
     WHERE next_at <= coalesce(:at::timestamptz, now()) ORDER BY next_at LIMIT :scanned)
    UNION ALL
    (SELECT spec_id, slot_at, last_id, until_id FROM mainspring.firings ORDER BY slot_at LIMIT :scanned)
) d
CROSS JOIN LATERAL (
    SELECT name, expect_start_within FROM mainspring.schedules
    WHERE spec_id = d.spec_id AND id + 0 > d.last_id AND id + 0 <= d.until_id AND active_from < d.slot_at AND paused_at IS NULL
      AND d.slot_at <= coalesce(:at::timestamptz, now()) - least(:missed_after::interval, expect_start_within)
    ORDER BY id + 0 LIMIT :burst
) s
ORDER BY d.slot_at LIMIT :most + 1;

-- name: watch_dropped
-- From schedule to schedule, with one look-up each. So a schedule that drops many slots does not hide another schedule.
WITH RECURSIVE losing (id) AS (
    (SELECT l.schedule_id FROM mainspring.slots l WHERE l.disposition = 1 AND l.reason IN ('too_late', 'breaker') ORDER BY l.schedule_id LIMIT 1)
    UNION ALL
    (SELECT n.schedule_id FROM losing CROSS JOIN LATERAL (
         SELECT l.schedule_id FROM mainspring.slots l
         WHERE l.disposition = 1 AND l.reason IN ('too_late', 'breaker') AND l.schedule_id > losing.id ORDER BY l.schedule_id LIMIT 1
     ) n)
)
SELECT name AS schedule, since, until, dropped_at, breaker
FROM (SELECT id FROM losing LIMIT :scanned) some_losing
CROSS JOIN LATERAL (
    SELECT (SELECT s.name FROM mainspring.schedules s WHERE s.id = some_losing.id) AS name,
           min(coalesce(l.since, l.slot_at)) AS since, max(l.slot_at) AS until, min(l.decided_at) AS dropped_at,
           max(l.decided_at) AS newest_at, bool_or(l.reason = 'breaker') AS breaker
    FROM (
        SELECT l.since, l.slot_at, l.decided_at, l.reason FROM mainspring.slots l
        WHERE l.schedule_id = some_losing.id AND l.disposition = 1 AND l.reason IN ('too_late', 'breaker')
          AND l.decided_at > coalesce(:at::timestamptz, now()) - :dropped_window::interval
        ORDER BY l.decided_at DESC LIMIT :most
    ) l
) d
WHERE name IS NOT NULL AND since IS NOT NULL
ORDER BY newest_at DESC LIMIT :most + 1;

-- name: watch_expecting
-- Live jobs of schedules that have an expected start or end: for each schedule, the oldest job that has not started and the
-- oldest job that has not ended.
SELECT s.name AS schedule, s.expect_start_within, s.expect_finish_by, j.slot_at, j.id AS job_id,
       (SELECT name FROM mainspring.queues WHERE id = j.queue_id) AS queue, j.due_at, j.claimed, j.begun
FROM (
    SELECT id, name, expect_start_within, expect_finish_by FROM mainspring.schedules
    WHERE expect_start_within IS NOT NULL OR expect_finish_by IS NOT NULL
    ORDER BY id OFFSET 0
) s
CROSS JOIN LATERAL (
    SELECT slot_at, id, queue_id,
           CASE WHEN run_at < timestamptz '9997-01-01 00:00:00+00' THEN run_at ELSE due_at END AS due_at,
           worker_id <> 0 OR run_at = timestamptz '9997-01-01 00:00:00+00' AS claimed, fence > 0 AS begun
    FROM (
        (SELECT * FROM mainspring.jobs
         WHERE schedule_id = s.id AND slot_at IS NOT NULL AND backfill_id IS NULL
           AND fence = 0 AND slot_at + s.expect_start_within <= coalesce(:at::timestamptz, now())
         ORDER BY slot_at LIMIT 1)
        UNION
        (SELECT * FROM mainspring.jobs
         WHERE schedule_id = s.id AND slot_at IS NOT NULL AND backfill_id IS NULL
           AND slot_at + s.expect_finish_by <= coalesce(:at::timestamptz, now())
         ORDER BY slot_at LIMIT 1)
    ) o
) j
ORDER BY j.slot_at LIMIT 2 * :most + 1;

-- name: watch_stale
-- For each schedule with live jobs, the oldest job of a slot that no worker has ever claimed.
WITH RECURSIVE live (schedule_id, place) AS (
    SELECT 0::bigint, 0
    UNION ALL
    SELECT (SELECT j.schedule_id FROM mainspring.jobs j WHERE j.schedule_id > l.schedule_id ORDER BY j.schedule_id LIMIT 1),
           l.place + 1
    FROM live l WHERE l.schedule_id IS NOT NULL AND l.place <= :scanned
)
SELECT (SELECT name FROM mainspring.schedules s WHERE s.id = l.schedule_id) AS schedule, j.slot_at, j.id AS job_id,
       (SELECT name FROM mainspring.queues WHERE id = j.queue_id) AS queue, j.run_at AS due_at
FROM live l
CROSS JOIN LATERAL (
    SELECT slot_at, id, queue_id, run_at FROM (
        SELECT slot_at, id, queue_id, run_at FROM mainspring.jobs
        WHERE schedule_id = l.schedule_id AND slot_at IS NOT NULL AND backfill_id IS NULL AND fence = 0 AND worker_id = 0
          AND run_at <= coalesce(:at::timestamptz, now()) - :late_after::interval
        LIMIT 1000
    ) o ORDER BY slot_at LIMIT 1
) j
ORDER BY j.slot_at LIMIT :most + 1;

-- name: watch_waiting
-- For each priority level, the oldest job of each task that is among the oldest jobs of that level.
SELECT (SELECT name FROM mainspring.queues WHERE id = l.queue_id) AS queue, (SELECT name FROM mainspring.tasks WHERE id = j.task_id) AS task,
       j.id AS job_id, j.run_at AS due_at
FROM mainspring.priority_levels l
CROSS JOIN LATERAL (
    SELECT DISTINCT ON (task_id) task_id, id, run_at FROM (
        SELECT id, task_id, run_at FROM mainspring.jobs
        WHERE queue_id = l.queue_id AND priority = l.priority AND run_at <= coalesce(:at::timestamptz, now()) AND worker_id = 0
        ORDER BY run_at, id + 0 LIMIT 100
    ) o ORDER BY task_id, run_at, id
) j
ORDER BY j.run_at, j.id LIMIT 10 * :most + 1;

-- name: watch_died
SELECT t.name AS task, c.jobs, c.since, d.id AS job_id, d.died_at, d.reason,
       (SELECT name FROM mainspring.schedules s WHERE s.id = d.schedule_id) AS schedule
FROM mainspring.tasks t
CROSS JOIN LATERAL (
    SELECT id, died_at, reason, schedule_id FROM mainspring.dead_jobs
    WHERE task_id = t.id AND died_at > coalesce(:at::timestamptz, now()) - :failed_window::interval
    ORDER BY died_at DESC LIMIT 1
) d
CROSS JOIN LATERAL (
    SELECT count(*)::int AS jobs, min(died_at) AS since FROM (
        SELECT died_at FROM mainspring.dead_jobs
        WHERE task_id = t.id AND died_at > coalesce(:at::timestamptz, now()) - :failed_window::interval
        ORDER BY died_at LIMIT :counted
    ) o
) c
ORDER BY d.died_at DESC, d.id DESC LIMIT :most + 1;

-- name: watch_retrying
-- Tasks that have failed since the last minutes in which at least as many runs succeeded as failed. A task whose last
-- minutes had successes and no failures is left out. Older times come from rows of ten minutes.
SELECT task, sum(bad)::int AS failed, sum(good)::int AS succeeded, min(at) FILTER (WHERE bad > 0) AS since
FROM (
    SELECT *, max(at) FILTER (WHERE good > 0 AND good >= bad) OVER (PARTITION BY task) AS good_at
    FROM (
        SELECT task, at, sum(counts[2] + counts[3] + counts[5]) AS bad, sum(counts[1] + counts[8] + counts[10]) AS good
        FROM mainspring.stats, date_bin('10 minutes', coalesce(:at::timestamptz, now()) - interval '10 minutes',
                                        timestamptz '2000-01-01 00:00:00+00') AS w (fine)
        WHERE task NOT IN ('', '*', '(other)')
          AND (span = 10 AND at >= coalesce(:at::timestamptz, now()) - interval '3 hours' AND at < w.fine
               OR span = 1 AND at >= w.fine)
        GROUP BY task, at
    ) b
) t
WHERE good_at IS NULL OR at > good_at
GROUP BY task
HAVING sum(bad) > 0 AND max(at) FILTER (WHERE bad > 0) > coalesce(:at::timestamptz, now()) - interval '75 minutes'
   AND NOT (coalesce(max(at) FILTER (WHERE good > 0) >= max(at) FILTER (WHERE bad > 0), false)
            AND max(at) FILTER (WHERE bad > 0) <= coalesce(:at::timestamptz, now()) - interval '2 minutes')
ORDER BY since LIMIT :most + 1;

-- name: watch_streaks
-- The newest slots of these schedules that made a job, and the state of that job.
SELECT (SELECT name FROM mainspring.schedules s WHERE s.id = w.schedule_id) AS schedule, l.slot_at,
       (SELECT d.id FROM mainspring.dead_jobs d WHERE d.id = l.job_id) IS NOT NULL AS dead,
       (SELECT j.id FROM mainspring.jobs j WHERE j.id = l.job_id) IS NOT NULL AS live
FROM unnest(:schedule_ids::bigint[]) AS w (schedule_id)
CROSS JOIN LATERAL (
    SELECT slot_at, job_id FROM mainspring.slots
    WHERE schedule_id = w.schedule_id AND job_id IS NOT NULL ORDER BY slot_at DESC LIMIT :streak
) l
ORDER BY w.schedule_id, l.slot_at DESC;
