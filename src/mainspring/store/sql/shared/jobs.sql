-- name: live_job
SELECT *, (SELECT name FROM mainspring.tasks WHERE id = task_id) AS task, (SELECT name FROM mainspring.queues WHERE id = queue_id) AS queue,
       CASE WHEN worker_id <> 0 OR run_at = timestamptz '9997-01-01 00:00:00+00' THEN 'running' WHEN run_at > :now THEN 'delayed' ELSE 'ready' END AS state
FROM mainspring.jobs WHERE id = :id;

-- name: live_by_id
SELECT *, (SELECT name FROM mainspring.tasks WHERE id = task_id) AS task, (SELECT name FROM mainspring.queues WHERE id = queue_id) AS queue,
       CASE WHEN worker_id <> 0 OR run_at = timestamptz '9997-01-01 00:00:00+00' THEN 'running' WHEN run_at > :now THEN 'delayed' ELSE 'ready' END AS state
FROM mainspring.jobs WHERE id = ANY (:ids::bigint[]) ORDER BY id DESC;

-- name: ended_job
-- The run that ended the job: succeeded, cancelled or discarded. If an operator has replayed the job, the newest such run.
SELECT *, (SELECT name FROM mainspring.tasks WHERE id = task_id) AS task, (SELECT name FROM mainspring.queues WHERE id = queue_id) AS queue
FROM mainspring.runs WHERE job_id = :id AND verdict IN (0, 5, 7) ORDER BY finished_at DESC, fence DESC LIMIT 1;

-- name: job_states
-- If a job has several rows, the row that counts comes last.
SELECT id, state FROM (
    SELECT job_id AS id, CASE verdict WHEN 0 THEN 'succeeded' WHEN 7 THEN 'discarded' ELSE 'cancelled' END AS state, 0 AS place, finished_at
    FROM mainspring.runs WHERE job_id = ANY (:ids::bigint[]) AND verdict IN (0, 5, 7)
    UNION ALL
    SELECT id, 'dead', 1, died_at FROM mainspring.dead_jobs WHERE id = ANY (:ids::bigint[])
    UNION ALL
    SELECT id, CASE WHEN worker_id <> 0 OR run_at = timestamptz '9997-01-01 00:00:00+00' THEN 'running' WHEN run_at > :now THEN 'delayed' ELSE 'ready' END, 2, enqueued_at
    FROM mainspring.jobs WHERE id = ANY (:ids::bigint[])
) known
ORDER BY place, finished_at;

-- name: standings
SELECT id, CASE WHEN worker_id <> 0 OR run_at = timestamptz '9997-01-01 00:00:00+00' THEN 'running' WHEN run_at > :now THEN 'delayed' ELSE 'ready' END AS state,
       coalesce(due_at, run_at) AS run_at, enqueued_at, worker_id, claimed_at, failures, max_attempts
FROM mainspring.jobs WHERE id = ANY (:ids::bigint[]);

-- name: holding
SELECT holding FROM mainspring.processes WHERE id = :id;

-- name: jobs_of_key
SELECT job_id FROM mainspring.unique_keys WHERE name = :name ORDER BY job_id DESC LIMIT :limit;

-- name: schedule_ids
-- Also deleted schedules of that name.
SELECT id FROM mainspring.schedules WHERE name = :name UNION SELECT schedule_id FROM mainspring.schedule_versions WHERE name = :name
ORDER BY id DESC LIMIT :limit;

-- A page reads a bounded number of rows in the order of one index, and looks for its matches among these rows. The answer
-- includes the last row that was read, also if it is no match (`place`): the next page goes on from there.

-- name: dead_page
SELECT *, id AS job_id, (SELECT name FROM mainspring.tasks WHERE id = task_id) AS task, (SELECT name FROM mainspring.queues WHERE id = queue_id) AS queue
FROM (
    SELECT *, row_number() OVER (ORDER BY id DESC) AS place,
           (:task::text IS NULL OR task_id = (SELECT id FROM mainspring.tasks WHERE name = :task))
           AND (:queue::text IS NULL OR queue_id = (SELECT id FROM mainspring.queues WHERE name = :queue))
           AND (:schedule_id::bigint IS NULL OR schedule_id = :schedule_id)
           AND (:since::timestamptz IS NULL OR died_at >= :since) AND (:until::timestamptz IS NULL OR died_at < :until) AS fits
    FROM (SELECT * FROM mainspring.dead_jobs WHERE id < :before ORDER BY id DESC LIMIT :look) looked
) numbered
WHERE fits OR place = :look ORDER BY id DESC LIMIT :limit;

-- name: known_ids
-- Live, dead or finished: a job that was inserted may have ended before the caller asks.
SELECT id FROM mainspring.jobs WHERE id = ANY (:ids::bigint[])
UNION SELECT id FROM mainspring.dead_jobs WHERE id = ANY (:ids::bigint[])
UNION SELECT job_id FROM mainspring.runs WHERE job_id = ANY (:ids::bigint[]);
