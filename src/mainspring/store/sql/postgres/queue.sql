-- name: reserve_ids
-- Ids are reserved before the insert, in blocks. So an insert can be looked up when its answer was lost.
SELECT array_agg(nextval('mainspring.job_ids')) AS ids FROM generate_series(1, :count);

-- name: insert_due_job
-- The same as insert_job for a job that is due at once and has no other options, as in most calls.
INSERT INTO mainspring.jobs (id, queue_id, task_id, priority, run_at, enqueued_at, max_attempts, payload)
VALUES (:id, :queue_id, :task_id, :priority, now(), now(), :max_attempts, :payload);

-- name: insert_job
-- The same as insert_jobs for one job: eleven arrays with one element take longer than the insert.
INSERT INTO mainspring.jobs (id, queue_id, task_id, priority, run_at, enqueued_at, max_attempts, payload, expires_at, trace)
VALUES (:id, :queue_id, :task_id, :priority,
        coalesce(:run_at::timestamptz, coalesce(:at::timestamptz, now()) + :delay::interval), coalesce(:at::timestamptz, now()),
        :max_attempts, :payload,
        coalesce(:expires_at::timestamptz,
                 coalesce(:run_at::timestamptz, coalesce(:at::timestamptz, now()) + :delay::interval) + :expires::interval), :trace);

-- name: insert_jobs
-- A deadline that is a length counts from the moment when the job is first due. If no job has a deadline, both arrays are
-- NULL.
INSERT INTO mainspring.jobs (id, queue_id, task_id, priority, run_at, enqueued_at, max_attempts, payload, expires_at, trace)
SELECT n.id, n.queue_id, n.task_id, n.priority,
       coalesce(n.run_at, coalesce(:at::timestamptz, now()) + n.delay), coalesce(:at::timestamptz, now()),
       n.max_attempts, n.payload,
       coalesce(n.expires_at, coalesce(n.run_at, coalesce(:at::timestamptz, now()) + n.delay) + n.expires), n.trace
FROM unnest(:ids::bigint[], :queue_ids::int[], :task_ids::int[], :priorities::smallint[], :run_ats::timestamptz[],
            :delays::interval[], :max_attempts::smallint[], :payloads::bytea[], :expires_ats::timestamptz[], :expires::interval[],
            :traces::text[])
  AS n (id, queue_id, task_id, priority, run_at, delay, max_attempts, payload, expires_at, expires, trace);

-- name: insert_limited_jobs
-- Jobs with limits wait for their limits at a moment where no claim looks.
INSERT INTO mainspring.jobs (id, queue_id, task_id, priority, run_at, enqueued_at, max_attempts, payload, limit_set_id, due_at, expires_at, trace)
SELECT n.id, n.queue_id, n.task_id, n.priority,
       CASE WHEN n.limit_set_id IS NULL THEN coalesce(n.run_at, coalesce(:at::timestamptz, now()) + n.delay)
            ELSE timestamptz '9998-01-01 00:00:00+00' END,
       coalesce(:at::timestamptz, now()), n.max_attempts, n.payload, n.limit_set_id,
       CASE WHEN n.limit_set_id IS NOT NULL THEN coalesce(n.run_at, coalesce(:at::timestamptz, now()) + n.delay) END,
       coalesce(n.expires_at, coalesce(n.run_at, coalesce(:at::timestamptz, now()) + n.delay) + n.expires), n.trace
FROM unnest(:ids::bigint[], :queue_ids::int[], :task_ids::int[], :priorities::smallint[], :run_ats::timestamptz[],
            :delays::interval[], :max_attempts::smallint[], :payloads::bytea[], :limit_set_ids::int[], :expires_ats::timestamptz[], :expires::interval[],
            :traces::text[])
  AS n (id, queue_id, task_id, priority, run_at, delay, max_attempts, payload, limit_set_id, expires_at, expires, trace);

-- name: insert_workflow_jobs
-- Jobs of steps, with limits or without. A job that is made again after a retry continues the count of its claims. The
-- trace is that of the workflow's own job, which is in the queue until the last step has ended.
INSERT INTO mainspring.jobs (id, queue_id, task_id, priority, run_at, enqueued_at, max_attempts, payload, limit_set_id, due_at, expires_at, workflow_id, fence, trace)
SELECT n.id, n.queue_id, n.task_id, n.priority,
       CASE WHEN n.limit_set_id IS NULL THEN coalesce(:at::timestamptz, now()) + n.delay ELSE timestamptz '9998-01-01 00:00:00+00' END,
       coalesce(:at::timestamptz, now()), n.max_attempts, n.payload, n.limit_set_id,
       CASE WHEN n.limit_set_id IS NOT NULL THEN coalesce(:at::timestamptz, now()) + n.delay END,
       coalesce(:at::timestamptz, now()) + n.delay + n.expires, n.workflow_id, n.fence,
       (SELECT root.trace FROM mainspring.jobs root WHERE root.id = n.workflow_id)
FROM unnest(:ids::bigint[], :queue_ids::int[], :task_ids::int[], :priorities::smallint[], :delays::interval[],
            :max_attempts::smallint[], :payloads::bytea[], :limit_set_ids::int[], :expires::interval[], :workflow_ids::bigint[],
            :fences::int[])
  AS n (id, queue_id, task_id, priority, delay, max_attempts, payload, limit_set_id, expires, workflow_id, fence);

-- name: root_traces
-- For jobs of steps that COPY writes.
SELECT id, trace FROM mainspring.jobs WHERE id = ANY (:ids::bigint[]) AND trace IS NOT NULL;

-- name: lock_keys
-- The answer has the holder of each key. The rows stay locked: a second insert with the same key waits here.
INSERT INTO mainspring.unique_keys AS k (key, name, job_id)
SELECT n.key, n.name, n.job_id FROM unnest(:keys::bytea[], :names::text[], :job_ids::bigint[]) AS n (key, name, job_id)
ORDER BY n.key
ON CONFLICT (key) DO UPDATE SET key = excluded.key
RETURNING k.key, k.job_id, k.until;

-- name: live_holders
-- FOR UPDATE: a claim that is under way has ended when this statement answers. So the arguments of a run are not replaced.
SELECT id, worker_id <> 0 AS running FROM mainspring.jobs WHERE id = ANY (:ids::bigint[]) ORDER BY id FOR UPDATE;

-- name: take_keys
UPDATE mainspring.unique_keys
SET job_id = (:job_ids::bigint[])[width_bucket(key, :keys::bytea[])], until = (:untils::timestamptz[])[width_bucket(key, :keys::bytea[])]
WHERE key = ANY (:keys::bytea[]);

-- name: key_holders
SELECT key, job_id FROM mainspring.unique_keys WHERE key = ANY (:keys::bytea[]);

-- name: replace_job
UPDATE mainspring.jobs
SET payload = :payload, priority = :priority, queue_id = :queue_id, max_attempts = :max_attempts, trace = :trace,
    run_at = CASE WHEN limit_set_id IS NULL THEN coalesce(:run_at::timestamptz, coalesce(:at::timestamptz, now()) + :delay::interval)
                  ELSE timestamptz '9998-01-01 00:00:00+00' END,
    due_at = CASE WHEN limit_set_id IS NOT NULL THEN coalesce(:run_at::timestamptz, coalesce(:at::timestamptz, now()) + :delay::interval) END
WHERE id = :id AND worker_id = 0;

-- name: claim_jobs
-- KEY SHARE on the worker's own row excludes the reaper: either the reaper sees these claims, or the claim sees that the
-- lease has ended. The array keeps the subquery separate: it runs once, and the update is a TID scan.
WITH me AS MATERIALIZED (
    SELECT id FROM mainspring.processes
    WHERE id = :worker_id AND NOT dead AND lease_until > coalesce(:at::timestamptz, now())
    FOR KEY SHARE
)
UPDATE mainspring.jobs
SET worker_id = :worker_id, fence = fence + 1, claimed_at = coalesce(:at::timestamptz, now())
WHERE ctid = ANY (ARRAY(
    SELECT due.ctid
    FROM (
        SELECT l.queue_id, l.priority,
               CASE WHEN :before::boolean THEN coalesce(:after_run_at::timestamptz, '-infinity')
                    ELSE coalesce(h.run_at, :after_run_at::timestamptz, '-infinity') END AS after_run_at,
               CASE WHEN :before::boolean THEN coalesce(:after_id::bigint, 0) ELSE coalesce(h.id, :after_id::bigint, 0) END AS after_id,
               CASE WHEN :before::boolean THEN least(coalesce(h.run_at, :floor::timestamptz), coalesce(:at::timestamptz, now()))
                    ELSE coalesce(:at::timestamptz, now()) END AS last_run_at
        FROM unnest(:queue_ids::int[]) WITH ORDINALITY AS q (queue_id, place)
        JOIN mainspring.priority_levels l USING (queue_id)
        LEFT JOIN unnest(:hint_queue_ids::int[], :hint_priorities::smallint[], :hint_run_ats::timestamptz[], :hint_ids::bigint[])
            AS h (queue_id, priority, run_at, id) USING (queue_id, priority)
        WHERE EXISTS (SELECT 1 FROM me) AND NOT l.paused
        ORDER BY l.priority DESC, q.place
    ) lane
    CROSS JOIN LATERAL (
        SELECT j.ctid FROM mainspring.jobs j
        WHERE j.queue_id = lane.queue_id AND j.priority = lane.priority
          AND (j.run_at, j.id + 0) > (lane.after_run_at, lane.after_id)
          AND j.run_at <= lane.last_run_at
          AND (j.run_at, j.id + 0) <= (coalesce(:until_run_at::timestamptz, 'infinity'), coalesce(:until_id::bigint, 0))
          AND j.worker_id = 0 AND j.task_id = ANY (:task_ids::int[]) AND j.orphan IS NULL
        ORDER BY j.run_at, j.id + 0
        LIMIT :limit
        FOR UPDATE SKIP LOCKED
    ) due
    LIMIT :limit
))
RETURNING id, fence, queue_id, task_id, priority, payload, failures, max_attempts, run_at, enqueued_at, schedule_id, slot_at, limit_set_id,
          crashes, expires_at - coalesce(:at::timestamptz, now()) AS expires_in, workflow_id, trace,
          coalesce(:at::timestamptz, now()) - run_at AS waited, previous_at;

-- name: orphans_due
-- Every worker asks this from time to time. The index is nearly always empty.
SELECT id FROM mainspring.jobs
WHERE orphan IS NOT NULL AND worker_id = 0 AND run_at <= coalesce(:at::timestamptz, now())
  AND queue_id = ANY (:queue_ids::int[]) AND task_id = ANY (:task_ids::int[])
LIMIT 1;

-- name: claim_orphans
-- Jobs with fewer crashes come first. So after the next death of a worker other jobs are first.
WITH me AS MATERIALIZED (
    SELECT id FROM mainspring.processes
    WHERE id = :worker_id AND NOT dead AND lease_until > coalesce(:at::timestamptz, now())
    FOR KEY SHARE
)
UPDATE mainspring.jobs
SET worker_id = :worker_id, fence = fence + 1, claimed_at = coalesce(:at::timestamptz, now())
WHERE ctid = ANY (ARRAY(
    SELECT due.ctid
    FROM (
        SELECT l.queue_id, l.priority
        FROM unnest(:queue_ids::int[]) WITH ORDINALITY AS q (queue_id, place)
        JOIN mainspring.priority_levels l USING (queue_id)
        WHERE EXISTS (SELECT 1 FROM me) AND NOT l.paused
        ORDER BY l.priority DESC, q.place
    ) lane
    CROSS JOIN LATERAL (
        SELECT j.ctid FROM mainspring.jobs j
        WHERE j.orphan IS NOT NULL AND j.queue_id = lane.queue_id AND j.priority = lane.priority
          AND j.crashes BETWEEN :least AND :most AND j.run_at <= coalesce(:at::timestamptz, now())
          AND j.worker_id = 0 AND j.task_id = ANY (:task_ids::int[])
        ORDER BY j.crashes, j.run_at, j.id
        LIMIT :limit
        FOR UPDATE SKIP LOCKED
    ) due
    LIMIT :limit
))
RETURNING id, fence, queue_id, task_id, priority, payload, failures, max_attempts, run_at, enqueued_at, schedule_id, slot_at, limit_set_id,
          crashes, expires_at - coalesce(:at::timestamptz, now()) AS expires_in, workflow_id, trace,
          coalesce(:at::timestamptz, now()) - run_at AS waited, previous_at;

-- name: begin_orphan
-- From now on it is on record that the run of this claim has begun: if the worker dies, the job gets a crash.
UPDATE mainspring.jobs SET orphan = fence WHERE id = :id AND worker_id = :worker_id AND fence = :fence RETURNING id;

-- name: held_jobs
-- The jobs of a worker were due before its lease ends, so the scan of each priority level stops at that moment.
-- MATERIALIZED keeps the planner from starting at the jobs.
WITH me AS MATERIALIZED (
    SELECT lease_until FROM mainspring.processes WHERE id = :worker_id
), held AS MATERIALIZED (
    SELECT j.* FROM mainspring.priority_levels l
    CROSS JOIN LATERAL (
        SELECT * FROM mainspring.jobs
        WHERE queue_id = l.queue_id AND priority = l.priority AND run_at <= (SELECT lease_until FROM me)
          AND worker_id = :worker_id
        OFFSET 0
    ) j
)
SELECT id, fence, queue_id, task_id, priority, payload, failures, max_attempts, run_at, enqueued_at, schedule_id, slot_at, limit_set_id,
       crashes, expires_at - coalesce(:at::timestamptz, now()) AS expires_in, workflow_id, trace, claimed_at - run_at AS waited, previous_at,
       orphan IS NOT NULL AS orphan
FROM held ORDER BY id;

-- The settling statements find their jobs by `id = ANY`, never by a join. The plan of a join, made
-- for an empty queue, reads the whole queue for every batch later. The ids are sorted, so
-- width_bucket gives the place of a job in the other arrays.

-- name: settle_succeeded
-- The usual end of a job. If all jobs have the same fence, it is one parameter. The answer is one row for all jobs.
WITH ended AS (
    DELETE FROM mainspring.jobs
    WHERE id = ANY (:job_ids::bigint[]) AND worker_id = :worker_id
      AND fence = CASE WHEN :fences::int[] IS NULL THEN :fence ELSE (:fences::int[])[width_bucket(id, :job_ids::bigint[])] END
    RETURNING *, width_bucket(id, :job_ids::bigint[]) AS place
), noted AS (
    INSERT INTO mainspring.runs (job_id, finished_at, started_at, enqueued_at, run_at, worker_id, schedule_id, slot_at, queue_id,
                                 task_id, fence, priority, max_attempts, failures, crashes, verdict, payload, result)
    SELECT id, coalesce(:at::timestamptz, now()), coalesce(:at::timestamptz, now()) - (:tooks::interval[])[place], enqueued_at,
           run_at, worker_id, schedule_id, slot_at, queue_id, task_id, fence, priority, max_attempts, failures, crashes, 0, payload,
           (:results::bytea[])[place]
    FROM ended
    RETURNING job_id
)
SELECT array_agg(job_id) AS job_ids FROM noted;

-- name: settle_dead
-- The cause is a failure (verdict 2), which is counted unless the handler never ran, or a crash (verdict 4).
WITH ended AS (
    DELETE FROM mainspring.jobs
    WHERE id = ANY (:job_ids::bigint[]) AND worker_id = :worker_id
      AND fence = (:fences::int[])[width_bucket(id, :job_ids::bigint[])]
    RETURNING *, width_bucket(id, :job_ids::bigint[]) AS place,
        (:errors::jsonb[])[width_bucket(id, :job_ids::bigint[])]
            || jsonb_build_object('attempt', failures + 1, 'at', coalesce(:at::timestamptz, now())) AS error
), buried AS (
    INSERT INTO mainspring.dead_jobs (id, run_at, enqueued_at, died_at, schedule_id, slot_at, queue_id, task_id, fence, priority,
                                      max_attempts, failures, crashes, reason, payload, errors, expires_at, limit_set_id, workflow_id, trace)
    SELECT id, run_at, enqueued_at, coalesce(:at::timestamptz, now()), schedule_id, slot_at, queue_id, task_id, fence, priority,
           max_attempts, failures + (:verdict = 2 AND (:rans::bool[])[place])::int, crashes + (:verdict = 4)::int,
           (:reasons::text[])[place], payload, coalesce(errors, '[]') || error, expires_at, limit_set_id, workflow_id, trace
    FROM ended
)
INSERT INTO mainspring.runs (job_id, finished_at, started_at, enqueued_at, run_at, worker_id, schedule_id, slot_at, queue_id,
                             task_id, fence, priority, max_attempts, failures, crashes, verdict, error)
SELECT id, coalesce(:at::timestamptz, now()),
       CASE WHEN (:rans::bool[])[place] THEN coalesce(:at::timestamptz, now()) - (:tooks::interval[])[place] END, enqueued_at,
       run_at, worker_id, schedule_id, slot_at, queue_id, task_id, fence, priority, max_attempts, failures,
       crashes + (:verdict = 4)::int, :verdict::smallint, error
FROM ended
RETURNING job_id;

-- name: settle_failed
-- A failure (verdict 1) or a crash (verdict 4) that is not the last. Each is counted in its own column. If a job has many
-- errors, its row keeps the tracebacks of the first ten errors and of the last error, because each error writes the whole
-- row again. The runs keep all tracebacks.
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
    SET worker_id = 0, failures = failures + (:verdict = 1)::int, crashes = crashes + (:verdict = 4)::int,
        orphan = CASE WHEN :verdict = 4 THEN coalesce(orphan, 0) ELSE orphan END,
        run_at = CASE WHEN limit_set_id IS NULL THEN coalesce(:at::timestamptz, now()) + (:delays::interval[])[width_bucket(id, :job_ids::bigint[])]
                      ELSE timestamptz '9998-01-01 00:00:00+00' END,
        due_at = CASE WHEN limit_set_id IS NOT NULL THEN coalesce(:at::timestamptz, now()) + (:delays::interval[])[width_bucket(id, :job_ids::bigint[])] END,
        errors = CASE WHEN jsonb_array_length(errors) > 10 THEN errors #- '{-1,traceback}' ELSE coalesce(errors, '[]') END || ((:errors::jsonb[])[width_bucket(id, :job_ids::bigint[])]
            || jsonb_build_object('attempt', failures + 1, 'at', coalesce(:at::timestamptz, now())))
    WHERE id = ANY (ARRAY(SELECT id FROM ended))
)
INSERT INTO mainspring.runs (job_id, finished_at, started_at, enqueued_at, run_at, worker_id, schedule_id, slot_at, queue_id,
                             task_id, fence, priority, max_attempts, failures, crashes, verdict, error)
SELECT id, coalesce(:at::timestamptz, now()), coalesce(:at::timestamptz, now()) - (:tooks::interval[])[place], enqueued_at,
       run_at, worker_id, schedule_id, slot_at, queue_id, task_id, fence, priority, max_attempts, failures,
       crashes + (:verdict = 4)::int, :verdict::smallint, error
FROM ended
RETURNING job_id;

-- name: settle_discarded
WITH ended AS (
    DELETE FROM mainspring.jobs
    WHERE id = ANY (:job_ids::bigint[]) AND worker_id = :worker_id
      AND fence = (:fences::int[])[width_bucket(id, :job_ids::bigint[])]
    RETURNING *, width_bucket(id, :job_ids::bigint[]) AS place
)
INSERT INTO mainspring.runs (job_id, finished_at, started_at, enqueued_at, run_at, worker_id, schedule_id, slot_at, queue_id,
                             task_id, fence, priority, max_attempts, failures, crashes, verdict, payload, error)
SELECT id, coalesce(:at::timestamptz, now()), coalesce(:at::timestamptz, now()) - (:tooks::interval[])[place], enqueued_at,
       run_at, worker_id, schedule_id, slot_at, queue_id, task_id, fence, priority, max_attempts, failures, crashes, 7, payload,
       (:errors::jsonb[])[place] || jsonb_build_object('attempt', failures + 1, 'at', coalesce(:at::timestamptz, now()))
FROM ended
RETURNING job_id;

-- name: settle_released
-- Given back (verdict 3) or snoozed (verdict 6), perhaps until an event comes. No delay ends later than the moment of jobs
-- that wait for an event.
WITH ended AS MATERIALIZED (
    SELECT *, width_bucket(id, :job_ids::bigint[]) AS place
    FROM mainspring.jobs
    WHERE id = ANY (:job_ids::bigint[]) AND worker_id = :worker_id
      AND fence = (:fences::int[])[width_bucket(id, :job_ids::bigint[])]
    FOR UPDATE
), back AS (
    UPDATE mainspring.jobs
    SET worker_id = 0,
        run_at = CASE WHEN (:delays::interval[])[width_bucket(id, :job_ids::bigint[])] = interval '0' THEN run_at
                      WHEN limit_set_id IS NULL THEN least(coalesce(:at::timestamptz, now()) + (:delays::interval[])[width_bucket(id, :job_ids::bigint[])], timestamptz '9996-01-01 00:00:00+00')
                      ELSE timestamptz '9998-01-01 00:00:00+00' END,
        due_at = CASE WHEN limit_set_id IS NOT NULL AND (:delays::interval[])[width_bucket(id, :job_ids::bigint[])] > interval '0'
                      THEN least(coalesce(:at::timestamptz, now()) + (:delays::interval[])[width_bucket(id, :job_ids::bigint[])], timestamptz '9996-01-01 00:00:00+00') END
    WHERE id = ANY (ARRAY(SELECT id FROM ended))
), noted AS (
    INSERT INTO mainspring.runs (job_id, finished_at, started_at, enqueued_at, run_at, worker_id, schedule_id, slot_at, queue_id,
                                 task_id, fence, priority, max_attempts, failures, crashes, verdict)
    SELECT id, coalesce(:at::timestamptz, now()), coalesce(:at::timestamptz, now()) - (:tooks::interval[])[place], enqueued_at,
           run_at, worker_id, schedule_id, slot_at, queue_id, task_id, fence, priority, max_attempts, failures, crashes, :verdict::smallint
    FROM ended WHERE (:rans::bool[])[place]
)
SELECT id AS job_id FROM ended;

-- name: settle_started
-- The workflow's own job stays in the queue, at a moment where no claim looks, until the workflow has ended. A job without a
-- trace takes the trace of its run. Its steps continue this trace.
WITH ended AS MATERIALIZED (
    SELECT *, width_bucket(id, :job_ids::bigint[]) AS place
    FROM mainspring.jobs
    WHERE id = ANY (:job_ids::bigint[]) AND worker_id = :worker_id
      AND fence = (:fences::int[])[width_bucket(id, :job_ids::bigint[])]
    FOR UPDATE
), parked AS (
    UPDATE mainspring.jobs SET worker_id = 0, due_at = run_at, run_at = timestamptz '9997-01-01 00:00:00+00',
        trace = coalesce(trace, (:traces::text[])[width_bucket(id, :job_ids::bigint[])])
    WHERE id = ANY (ARRAY(SELECT id FROM ended))
), noted AS (
    INSERT INTO mainspring.runs (job_id, finished_at, started_at, enqueued_at, run_at, worker_id, schedule_id, slot_at, queue_id,
                                 task_id, fence, priority, max_attempts, failures, crashes, verdict)
    SELECT id, coalesce(:at::timestamptz, now()), coalesce(:at::timestamptz, now()) - (:tooks::interval[])[place], enqueued_at,
           run_at, worker_id, schedule_id, slot_at, queue_id, task_id, fence, priority, max_attempts, failures, crashes, 9
    FROM ended
)
SELECT id AS job_id FROM ended;

-- name: parents_of
-- For jobs that are steps: the workflows of these steps.
SELECT id, workflow_id FROM mainspring.jobs WHERE id = ANY (:ids::bigint[]);

-- name: recorded_runs
-- Without rows that the reaper or a cancel wrote under the same claim, because these are no settlements. A crash that a
-- worker reports has an error. A crash that the reaper writes has none.
SELECT job_id FROM mainspring.runs
WHERE (verdict NOT IN (4, 5) OR (verdict = 4 AND error IS NOT NULL)) AND job_id = ANY (:job_ids::bigint[]) AND worker_id = :worker_id
  AND fence = (:fences::int[])[width_bucket(job_id, :job_ids::bigint[])];

-- name: whereabouts
SELECT c.job_id AS id, j.id IS NOT NULL AS live, m.name AS holder
FROM unnest(:job_ids::bigint[]) WITH ORDINALITY AS c (job_id, place)
LEFT JOIN mainspring.jobs j ON j.id = c.job_id
LEFT JOIN mainspring.processes m ON m.id = j.worker_id AND j.worker_id <> 0
ORDER BY c.place;
