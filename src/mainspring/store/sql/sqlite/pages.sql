-- Pages look at a bounded number of rows in the order of one index; what they look for is sought among those. The last
-- row they look at comes along, whatever it is (`place`): the next page goes on there.

-- name: live_page
SELECT * FROM (
    SELECT *, row_number() OVER (ORDER BY id DESC) AS place,
           (:states IS NULL OR state IN (SELECT value FROM json_each(:states))) AND (:task IS NULL OR task = :task)
           AND (:queue IS NULL OR queue = :queue)
           AND (:since IS NULL OR enqueued_at >= :since) AND (:until IS NULL OR enqueued_at < :until) AS fits
    FROM (
        SELECT *, CASE WHEN worker_id <> 0 OR run_at = 253307692800000000 THEN 'running' WHEN run_at > :now THEN 'delayed' ELSE 'ready' END AS state
        FROM jobs WHERE id < :before ORDER BY id DESC LIMIT :look
    )
)
WHERE fits OR place = :look ORDER BY id DESC LIMIT :limit;

-- name: live_of_schedule
SELECT *, CASE WHEN worker_id <> 0 OR run_at = 253307692800000000 THEN 'running' WHEN run_at > :now THEN 'delayed' ELSE 'ready' END AS state
FROM jobs WHERE schedule_id = :schedule_id AND id < :before ORDER BY id DESC LIMIT :look;

-- name: running_ids
SELECT id FROM jobs WHERE worker_id <> 0
UNION SELECT id FROM (SELECT id FROM workflows WHERE state = 0 AND id < :before ORDER BY id DESC LIMIT :look);

-- name: dead_page
SELECT * FROM (
    SELECT *, row_number() OVER (ORDER BY id DESC) AS place,
           (:task IS NULL OR task = :task) AND (:queue IS NULL OR queue = :queue)
           AND (:schedule_id IS NULL OR schedule_id = :schedule_id)
           AND (:since IS NULL OR died_at >= :since) AND (:until IS NULL OR died_at < :until) AS fits
    FROM (SELECT * FROM dead_jobs WHERE id < :before ORDER BY id DESC LIMIT :look)
)
WHERE fits OR place = :look ORDER BY id DESC LIMIT :limit;

-- name: ended_page
SELECT * FROM (
    SELECT *, row_number() OVER (ORDER BY job_id DESC) AS place,
           verdict IN (SELECT value FROM json_each(:verdicts)) AND (:task IS NULL OR task = :task)
           AND (:queue IS NULL OR queue = :queue) AND (:schedule_id IS NULL OR schedule_id = :schedule_id)
           AND (:since IS NULL OR finished_at >= :since) AND (:until IS NULL OR finished_at < :until) AS fits
    FROM (SELECT * FROM runs WHERE job_id < :before ORDER BY job_id DESC LIMIT :look)
)
WHERE fits OR place = :look ORDER BY job_id DESC LIMIT :limit;

-- name: schedules_page
SELECT s.*, s.name AS schedule, p.trigger, p.next_at, page.fits, page.place = :look AS is_last,
       l.slot_at, l.disposition, l.reason, l.since, l.job_id, l.decided_at, l.blocker, l.note
FROM (
    SELECT id, name, fits, place FROM (
        SELECT id, name, row_number() OVER (ORDER BY name) AS place,
               (:text IS NULL OR instr(lower(name), lower(:text)) > 0 OR instr(lower(task), lower(:text)) > 0)
               AND (:task IS NULL OR task = :task) AND (:queue IS NULL OR queue = :queue)
               AND CASE :only
                   WHEN 'paused' THEN paused_at IS NOT NULL
                   WHEN 'edited' THEN edited
                   WHEN 'overdue' THEN spec_id IN (SELECT id FROM specs WHERE next_at <= :now - :late)
                   WHEN 'ended' THEN spec_id IN (SELECT id FROM specs WHERE next_at IS NULL)
                   ELSE 1 END AS fits
        FROM (SELECT id, name, task, queue, spec_id, paused_at, edited FROM schedules WHERE name > :after ORDER BY name LIMIT :look)
    )
    WHERE fits OR place = :look ORDER BY name LIMIT :limit
) page
JOIN schedules s ON s.id = page.id JOIN specs p ON p.id = s.spec_id
LEFT JOIN slots l ON l.schedule_id = s.id AND l.slot_at = (SELECT max(slot_at) FROM slots WHERE schedule_id = s.id)
ORDER BY s.name;

-- name: schedule_counts
SELECT count(*) AS total, count(*) FILTER (WHERE paused_at IS NOT NULL) AS paused, count(*) FILTER (WHERE edited) AS edited,
       count(*) FILTER (WHERE spec_id IN (SELECT id FROM specs WHERE next_at <= :now - :late)) AS overdue,
       count(*) FILTER (WHERE spec_id IN (SELECT id FROM specs WHERE next_at IS NULL)) AS ended,
       (SELECT min(next_at) FROM specs WHERE next_at <= :now) AS oldest_due_at
FROM (SELECT spec_id, paused_at, edited FROM schedules ORDER BY name LIMIT :look);
