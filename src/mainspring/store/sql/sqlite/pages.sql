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
