-- Pages look at a bounded number of rows in the order of one index; what they look for is sought among those. The last
-- row they look at comes along, whatever it is (`place`): the next page goes on there.

-- name: live_page
SELECT * FROM (
    SELECT *, row_number() OVER (ORDER BY id DESC) AS place,
           (:states::text[] IS NULL OR state = ANY (:states)) AND (:task_id::int IS NULL OR task_id = :task_id)
           AND (:queue_id::int IS NULL OR queue_id = :queue_id)
           AND (:since::timestamptz IS NULL OR enqueued_at >= :since) AND (:until::timestamptz IS NULL OR enqueued_at < :until) AS fits
    FROM (
        SELECT *, CASE WHEN worker_id <> 0 OR run_at = timestamptz '9997-01-01 00:00:00+00' THEN 'running' WHEN run_at > coalesce(:at::timestamptz, now()) THEN 'delayed' ELSE 'ready' END AS state
        FROM mainspring.jobs WHERE id < :before ORDER BY id DESC LIMIT :look
    ) looked
) numbered
WHERE fits OR place = :look ORDER BY id DESC LIMIT :limit;

-- name: live_of_schedule
-- All of them: schedules have few at a time.
WITH own AS MATERIALIZED (
    SELECT id FROM mainspring.jobs WHERE schedule_id = :schedule_id LIMIT :look
)
SELECT *, CASE WHEN worker_id <> 0 OR run_at = timestamptz '9997-01-01 00:00:00+00' THEN 'running' WHEN run_at > coalesce(:at::timestamptz, now()) THEN 'delayed' ELSE 'ready' END AS state
FROM mainspring.jobs WHERE id = ANY (ARRAY(SELECT id FROM own WHERE id < :before ORDER BY id DESC LIMIT :look)) ORDER BY id DESC;

-- name: running_ids
-- No index knows who has been claimed, for that would end HOT claims. But claims begin at the head of each lane, so
-- those that run are found there; `full` tells of a lane that goes on beyond what was looked at. What a member last said
-- that it holds makes up for those who stand behind many that nobody serves.
WITH lane AS MATERIALIZED (
    SELECT l.queue_id, l.priority, greatest(200, 10000 / greatest((SELECT count(*) FROM mainspring.lanes), 1)) AS most
    FROM mainspring.lanes l WHERE :queue_id::int IS NULL OR l.queue_id = :queue_id
), head AS MATERIALIZED (
    SELECT j.id, j.worker_id, j.place = lane.most AS last FROM lane CROSS JOIN LATERAL (
        SELECT id, worker_id, row_number() OVER (ORDER BY run_at, newest) AS place FROM (
            SELECT j.id, j.worker_id, j.run_at, j.id + 0 AS newest FROM mainspring.jobs j
            WHERE j.queue_id = lane.queue_id AND j.priority = lane.priority AND j.run_at <= coalesce(:at::timestamptz, now())
            ORDER BY j.run_at, newest LIMIT lane.most
        ) first
    ) j
), parked AS MATERIALIZED (
    SELECT j.id FROM lane CROSS JOIN LATERAL (
        SELECT j.id FROM mainspring.jobs j
        WHERE j.queue_id = lane.queue_id AND j.priority = lane.priority AND j.run_at = timestamptz '9997-01-01 00:00:00+00'
          AND j.id + 0 < :before
        ORDER BY j.run_at DESC, j.id + 0 DESC LIMIT :limit
    ) j
)
SELECT array_agg(id) AS ids, (SELECT coalesce(bool_or(last), false) FROM head) AS is_full FROM (
    SELECT id FROM head WHERE worker_id <> 0
    UNION SELECT id FROM parked
    UNION SELECT unnest(holding) FROM mainspring.members WHERE NOT dead
) running;

-- name: dead_page
SELECT * FROM (
    SELECT *, row_number() OVER (ORDER BY id DESC) AS place,
           (:task_id::int IS NULL OR task_id = :task_id) AND (:queue_id::int IS NULL OR queue_id = :queue_id)
           AND (:schedule_id::bigint IS NULL OR schedule_id = :schedule_id)
           AND (:since::timestamptz IS NULL OR died_at >= :since) AND (:until::timestamptz IS NULL OR died_at < :until) AS fits
    FROM (SELECT * FROM mainspring.dead_jobs WHERE id < :before ORDER BY id DESC LIMIT :look) looked
) numbered
WHERE fits OR place = :look ORDER BY id DESC LIMIT :limit;

-- Of history only the days that count are looked at: the bounds inside are those of days, which are partitions.

-- name: ended_page
SELECT * FROM (
    SELECT *, row_number() OVER (ORDER BY job_id DESC) AS place,
           verdict = ANY (:verdicts::smallint[]) AND (:task_id::int IS NULL OR task_id = :task_id)
           AND (:queue_id::int IS NULL OR queue_id = :queue_id)
           AND (:since::timestamptz IS NULL OR finished_at >= :since) AND (:until::timestamptz IS NULL OR finished_at < :until) AS fits
    FROM (
        SELECT * FROM mainspring.runs
        WHERE job_id < :before AND finished_at >= coalesce(date_trunc('day', :since::timestamptz, 'UTC'), '-infinity')
          AND finished_at < coalesce(date_trunc('day', :until::timestamptz, 'UTC') + interval '24 hours', 'infinity')
        ORDER BY job_id DESC LIMIT :look
    ) looked
) numbered
WHERE fits OR place = :look ORDER BY job_id DESC LIMIT :limit;

-- name: ended_of_task
SELECT * FROM (
    SELECT *, row_number() OVER (ORDER BY newest DESC) AS place,
           verdict = ANY (:verdicts::smallint[]) AND (:queue_id::int IS NULL OR queue_id = :queue_id)
           AND (:since::timestamptz IS NULL OR finished_at >= :since) AND (:until::timestamptz IS NULL OR finished_at < :until) AS fits
    FROM (
        SELECT *, job_id + 0 AS newest FROM mainspring.runs
        WHERE task_id = :task_id AND job_id + 0 < :before AND finished_at >= coalesce(date_trunc('day', :since::timestamptz, 'UTC'), '-infinity')
          AND finished_at < coalesce(date_trunc('day', :until::timestamptz, 'UTC') + interval '24 hours', 'infinity')
        ORDER BY newest DESC LIMIT :look
    ) looked
) numbered
WHERE fits OR place = :look ORDER BY newest DESC LIMIT :limit;

-- name: ended_of_schedule
SELECT * FROM (
    SELECT *, row_number() OVER (ORDER BY newest DESC) AS place,
           verdict = ANY (:verdicts::smallint[]) AND (:task_id::int IS NULL OR task_id = :task_id)
           AND (:queue_id::int IS NULL OR queue_id = :queue_id)
           AND (:since::timestamptz IS NULL OR finished_at >= :since) AND (:until::timestamptz IS NULL OR finished_at < :until) AS fits
    FROM (
        SELECT *, job_id + 0 AS newest FROM mainspring.runs
        WHERE schedule_id = :schedule_id AND job_id + 0 < :before AND finished_at >= coalesce(date_trunc('day', :since::timestamptz, 'UTC'), '-infinity')
          AND finished_at < coalesce(date_trunc('day', :until::timestamptz, 'UTC') + interval '24 hours', 'infinity')
        ORDER BY newest DESC LIMIT :look
    ) looked
) numbered
WHERE fits OR place = :look ORDER BY newest DESC LIMIT :limit;

-- name: ended_unusually
-- Of one verdict that is not success.
SELECT * FROM (
    SELECT *, row_number() OVER (ORDER BY newest DESC) AS place,
           (:task_id::int IS NULL OR task_id = :task_id) AND (:queue_id::int IS NULL OR queue_id = :queue_id)
           AND (:since::timestamptz IS NULL OR finished_at >= :since) AND (:until::timestamptz IS NULL OR finished_at < :until) AS fits
    FROM (
        SELECT *, job_id + 0 AS newest FROM mainspring.runs
        WHERE verdict <> 0 AND verdict = :verdict AND job_id + 0 < :before AND finished_at >= coalesce(date_trunc('day', :since::timestamptz, 'UTC'), '-infinity')
          AND finished_at < coalesce(date_trunc('day', :until::timestamptz, 'UTC') + interval '24 hours', 'infinity')
        ORDER BY newest DESC LIMIT :look
    ) looked
) numbered
WHERE fits OR place = :look ORDER BY newest DESC LIMIT :limit;

