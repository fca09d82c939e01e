-- name: reserve_ids
-- Ids are taken before the insert, in blocks: an insert whose answer was lost can be looked up.
SELECT array_agg(nextval('mainspring.job_ids')) AS ids FROM generate_series(1, :count);

-- name: insert_jobs
INSERT INTO mainspring.jobs (id, queue_id, task_id, priority, run_at, enqueued_at, max_attempts, payload)
SELECT n.id, n.queue_id, n.task_id, n.priority,
       coalesce(n.run_at, coalesce(:at::timestamptz, now()) + n.delay), coalesce(:at::timestamptz, now()),
       n.max_attempts, n.payload
FROM unnest(:ids::bigint[], :queue_ids::int[], :task_ids::int[], :priorities::smallint[], :run_ats::timestamptz[],
            :delays::interval[], :max_attempts::smallint[], :payloads::bytea[])
  AS n (id, queue_id, task_id, priority, run_at, delay, max_attempts, payload);

-- name: known_ids
-- Wherever they now stand: a job that was inserted may have run and gone before anybody asks.
SELECT id FROM mainspring.jobs WHERE id = ANY (:ids::bigint[])
UNION SELECT id FROM mainspring.dead_jobs WHERE id = ANY (:ids::bigint[])
UNION SELECT job_id FROM mainspring.runs WHERE job_id = ANY (:ids::bigint[]);

-- name: claim_jobs
-- KEY SHARE on our own row excludes the reaper: either it sees our claims or we see its verdict.
-- The array fences the subquery: it runs once, and the update is a TID scan.
WITH me AS MATERIALIZED (
    SELECT id FROM mainspring.members
    WHERE id = :worker_id AND NOT dead AND lease_until > coalesce(:at::timestamptz, now())
    FOR KEY SHARE
)
UPDATE mainspring.jobs
SET worker_id = :worker_id, fence = fence + 1, claimed_at = coalesce(:at::timestamptz, now())
WHERE ctid = ANY (ARRAY(
    SELECT due.ctid
    FROM (
        SELECT l.queue_id, l.priority, coalesce(h.run_at, '-infinity') AS after_run_at, coalesce(h.id, 0) AS after_id
        FROM unnest(:queue_ids::int[]) WITH ORDINALITY AS q (queue_id, place)
        JOIN mainspring.lanes l USING (queue_id)
        LEFT JOIN unnest(:hint_queue_ids::int[], :hint_priorities::smallint[], :hint_run_ats::timestamptz[], :hint_ids::bigint[])
            AS h (queue_id, priority, run_at, id) USING (queue_id, priority)
        WHERE EXISTS (SELECT 1 FROM me)
        ORDER BY l.priority DESC, q.place
    ) lane
    CROSS JOIN LATERAL (
        SELECT j.ctid FROM mainspring.jobs j
        WHERE j.queue_id = lane.queue_id AND j.priority = lane.priority
          AND (j.run_at, j.id + 0) > (lane.after_run_at, lane.after_id)
          AND j.run_at <= coalesce(:at::timestamptz, now())
          AND j.worker_id = 0 AND j.task_id = ANY (:task_ids::int[])
        ORDER BY j.run_at, j.id + 0
        LIMIT :limit
        FOR UPDATE SKIP LOCKED
    ) due
    LIMIT :limit
))
RETURNING id, fence, queue_id, task_id, priority, payload, failures, max_attempts, run_at, enqueued_at, schedule_id, slot_at, crashes;

-- name: held_jobs
-- What we hold was due before our lease ends, so each lane's scan stops there. The fences keep the
-- planner from starting at the jobs.
WITH me AS MATERIALIZED (
    SELECT lease_until FROM mainspring.members WHERE id = :worker_id
), held AS MATERIALIZED (
    SELECT j.* FROM mainspring.lanes l
    CROSS JOIN LATERAL (
        SELECT * FROM mainspring.jobs
        WHERE queue_id = l.queue_id AND priority = l.priority AND run_at <= (SELECT lease_until FROM me)
          AND worker_id = :worker_id
        OFFSET 0
    ) j
)
SELECT * FROM held ORDER BY id;

-- The settling statements find their jobs by `id = ANY`, never by a join: a join's plan, made while
-- the queue was empty, walks the whole queue for every batch once it is not. The ids come sorted, so
-- width_bucket tells a job's place in the other arrays.

-- name: settle_succeeded
WITH ended AS (
    DELETE FROM mainspring.jobs
    WHERE id = ANY (:job_ids::bigint[]) AND worker_id = :worker_id
      AND fence = (:fences::int[])[width_bucket(id, :job_ids::bigint[])]
    RETURNING *, width_bucket(id, :job_ids::bigint[]) AS place
)
INSERT INTO mainspring.runs (job_id, finished_at, started_at, enqueued_at, run_at, worker_id, schedule_id, slot_at, queue_id,
                             task_id, fence, priority, max_attempts, failures, crashes, verdict, payload, result)
SELECT id, coalesce(:at::timestamptz, now()), coalesce(:at::timestamptz, now()) - (:tooks::interval[])[place], enqueued_at,
       run_at, worker_id, schedule_id, slot_at, queue_id, task_id, fence, priority, max_attempts, failures, crashes, 0, payload,
       (:results::bytea[])[place]
FROM ended
RETURNING job_id;

-- name: settle_dead
WITH ended AS (
    DELETE FROM mainspring.jobs
    WHERE id = ANY (:job_ids::bigint[]) AND worker_id = :worker_id
      AND fence = (:fences::int[])[width_bucket(id, :job_ids::bigint[])]
    RETURNING *, width_bucket(id, :job_ids::bigint[]) AS place,
        (:errors::jsonb[])[width_bucket(id, :job_ids::bigint[])]
            || jsonb_build_object('attempt', failures + 1, 'at', coalesce(:at::timestamptz, now())) AS error
), buried AS (
    INSERT INTO mainspring.dead_jobs (id, run_at, enqueued_at, died_at, schedule_id, slot_at, queue_id, task_id, fence, priority,
                                      max_attempts, failures, crashes, reason, payload, errors)
    SELECT id, run_at, enqueued_at, coalesce(:at::timestamptz, now()), schedule_id, slot_at, queue_id, task_id, fence, priority,
           max_attempts, failures + 1, crashes, 'failed', payload, coalesce(errors, '[]') || error
    FROM ended
)
INSERT INTO mainspring.runs (job_id, finished_at, started_at, enqueued_at, run_at, worker_id, schedule_id, slot_at, queue_id,
                             task_id, fence, priority, max_attempts, failures, crashes, verdict, error)
SELECT id, coalesce(:at::timestamptz, now()), coalesce(:at::timestamptz, now()) - (:tooks::interval[])[place], enqueued_at,
       run_at, worker_id, schedule_id, slot_at, queue_id, task_id, fence, priority, max_attempts, failures, crashes, 2, error
FROM ended
RETURNING job_id;

-- name: settle_failed
WITH ended AS MATERIALIZED (
    SELECT *, width_bucket(id, :job_ids::bigint[]) AS place,
        (:errors::jsonb[])[width_bucket(id, :job_ids::bigint[])]
            || jsonb_build_object('attempt', failures + 1, 'at', coalesce(:at::timestamptz, now())) AS error
    FROM mainspring.jobs
    WHERE id = ANY (:job_ids::bigint[]) AND worker_id = :worker_id
      AND fence = (:fences::int[])[width_bucket(id, :job_ids::bigint[])]
    FOR UPDATE
), again AS (
    UPDATE mainspring.jobs
    SET worker_id = 0, failures = failures + 1,
        run_at = coalesce(:at::timestamptz, now()) + (:delays::interval[])[width_bucket(id, :job_ids::bigint[])],
        errors = coalesce(errors, '[]') || ((:errors::jsonb[])[width_bucket(id, :job_ids::bigint[])]
            || jsonb_build_object('attempt', failures + 1, 'at', coalesce(:at::timestamptz, now())))
    WHERE id = ANY (ARRAY(SELECT id FROM ended))
)
INSERT INTO mainspring.runs (job_id, finished_at, started_at, enqueued_at, run_at, worker_id, schedule_id, slot_at, queue_id,
                             task_id, fence, priority, max_attempts, failures, crashes, verdict, error)
SELECT id, coalesce(:at::timestamptz, now()), coalesce(:at::timestamptz, now()) - (:tooks::interval[])[place], enqueued_at,
       run_at, worker_id, schedule_id, slot_at, queue_id, task_id, fence, priority, max_attempts, failures, crashes, 1, error
FROM ended
RETURNING job_id;

-- name: settle_released
WITH ended AS MATERIALIZED (
    SELECT *, width_bucket(id, :job_ids::bigint[]) AS place
    FROM mainspring.jobs
    WHERE id = ANY (:job_ids::bigint[]) AND worker_id = :worker_id
      AND fence = (:fences::int[])[width_bucket(id, :job_ids::bigint[])]
    FOR UPDATE
), back AS (
    UPDATE mainspring.jobs
    SET worker_id = 0,
        run_at = CASE WHEN (:delays::interval[])[width_bucket(id, :job_ids::bigint[])] > interval '0'
                      THEN coalesce(:at::timestamptz, now()) + (:delays::interval[])[width_bucket(id, :job_ids::bigint[])]
                      ELSE run_at END
    WHERE id = ANY (ARRAY(SELECT id FROM ended))
), noted AS (
    INSERT INTO mainspring.runs (job_id, finished_at, started_at, enqueued_at, run_at, worker_id, schedule_id, slot_at, queue_id,
                                 task_id, fence, priority, max_attempts, failures, crashes, verdict)
    SELECT id, coalesce(:at::timestamptz, now()), coalesce(:at::timestamptz, now()) - (:tooks::interval[])[place], enqueued_at,
           run_at, worker_id, schedule_id, slot_at, queue_id, task_id, fence, priority, max_attempts, failures, crashes, 3
    FROM ended WHERE (:rans::bool[])[place]
)
SELECT id AS job_id FROM ended;

-- name: recorded_runs
-- Not what the reaper or a cancel wrote under the same claim: that was no settlement.
SELECT job_id FROM mainspring.runs
WHERE verdict < 4 AND job_id = ANY (:job_ids::bigint[]) AND worker_id = :worker_id
  AND fence = (:fences::int[])[width_bucket(job_id, :job_ids::bigint[])];

-- name: cancel_jobs
WITH gone AS (
    DELETE FROM mainspring.jobs WHERE id = ANY (:ids::bigint[]) RETURNING *
), noted AS (
    INSERT INTO mainspring.runs (job_id, finished_at, started_at, enqueued_at, run_at, worker_id, schedule_id, slot_at, queue_id,
                                 task_id, fence, priority, max_attempts, failures, crashes, verdict, payload)
    SELECT id, coalesce(:at::timestamptz, now()), CASE WHEN worker_id <> 0 THEN claimed_at END, enqueued_at, run_at, worker_id,
           schedule_id, slot_at, queue_id, task_id, fence, priority, max_attempts, failures, crashes, 5, payload
    FROM gone
)
SELECT id, worker_id <> 0 AS running, run_at > coalesce(:at::timestamptz, now()) AS delayed FROM gone;

-- name: hasten_jobs
WITH named AS MATERIALIZED (
    SELECT id, worker_id, run_at FROM mainspring.jobs WHERE id = ANY (:ids::bigint[]) FOR UPDATE
)
UPDATE mainspring.jobs SET run_at = coalesce(:at::timestamptz, now())
WHERE id = ANY (ARRAY(SELECT id FROM named WHERE worker_id = 0 AND run_at > coalesce(:at::timestamptz, now())))
RETURNING id, queue_id;

-- name: replay_dead
WITH back AS (
    DELETE FROM mainspring.dead_jobs WHERE id = ANY (:ids::bigint[]) RETURNING *
)
INSERT INTO mainspring.jobs (id, run_at, enqueued_at, schedule_id, slot_at, queue_id, task_id, fence, priority, max_attempts, payload, errors)
SELECT id, coalesce(:at::timestamptz, now()), enqueued_at, schedule_id, slot_at, queue_id, task_id, fence, priority, max_attempts, payload, errors
FROM back
RETURNING id, queue_id;

-- name: purge_dead
DELETE FROM mainspring.dead_jobs WHERE id = ANY (:ids::bigint[]) RETURNING id;

-- name: add_partitions
SELECT mainspring.add_partitions('runs', 'finished_at', (coalesce(:at::timestamptz, now()) AT TIME ZONE 'UTC')::date, 8)
     + mainspring.add_partitions('slots', 'slot_at', (coalesce(:at::timestamptz, now()) AT TIME ZONE 'UTC')::date, 8) AS made;

-- name: drop_partitions
SELECT mainspring.drop_partitions('runs', 'finished_at', date_trunc('day', coalesce(:at::timestamptz, now()) - :keep::interval, 'UTC'))
     + mainspring.drop_partitions('slots', 'slot_at', date_trunc('day', coalesce(:at::timestamptz, now()) - :keep::interval, 'UTC')) AS gone;
