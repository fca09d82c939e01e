-- name: put_spec
INSERT INTO mainspring.specs (trigger, next_at, following_at, planned)
VALUES (:trigger, :next_at, :following_at, true)
ON CONFLICT (trigger) DO NOTHING;

-- name: put_schedule
-- A new trigger starts a new life; a change of arguments must not cost the slots still to be caught up.
INSERT INTO mainspring.schedules AS s (name, spec_id, task_id, queue_id, priority, max_attempts, payload, misfire, catch_up, active_from)
SELECT :name, id, :task_id, :queue_id, :priority, :max_attempts, :payload, :misfire, :catch_up, coalesce(:at::timestamptz, now())
FROM mainspring.specs WHERE trigger = :trigger
ON CONFLICT (name) DO UPDATE SET
    spec_id = excluded.spec_id, task_id = excluded.task_id, queue_id = excluded.queue_id, priority = excluded.priority,
    max_attempts = excluded.max_attempts, payload = excluded.payload, misfire = excluded.misfire, catch_up = excluded.catch_up,
    version = s.version + 1,
    active_from = CASE WHEN s.spec_id = excluded.spec_id THEN s.active_from ELSE excluded.active_from END
WHERE (s.spec_id, s.task_id, s.queue_id, s.priority, s.max_attempts, s.payload, s.misfire, s.catch_up)
   <> (excluded.spec_id, excluded.task_id, excluded.queue_id, excluded.priority, excluded.max_attempts, excluded.payload,
       excluded.misfire, excluded.catch_up)
RETURNING name;

-- name: due_specs
SELECT id, trigger, next_at, following_at, planned
FROM mainspring.specs
WHERE next_at <= coalesce(:at::timestamptz, now())
ORDER BY next_at
LIMIT :limit;

-- name: unplanned_specs
SELECT id, trigger, next_at, following_at, planned
FROM mainspring.specs
WHERE NOT planned AND next_at IS NOT NULL
ORDER BY id
LIMIT :limit;

-- name: plan_specs
-- Sorted ids and width_bucket instead of a join, as in jobs.sql and for the same reason.
UPDATE mainspring.specs
SET following_at = (:following_ats::timestamptz[])[width_bucket(id, :ids::bigint[])], planned = true
WHERE id = ANY (:ids::bigint[]) AND next_at = (:next_ats::timestamptz[])[width_bucket(id, :ids::bigint[])] AND NOT planned;

-- name: open_fires
-- Compare and set: whoever comes second finds that the spec has moved on, and opens nothing.
WITH moved AS (
    UPDATE mainspring.specs
    SET next_at = (:next_ats::timestamptz[])[width_bucket(id, :spec_ids::bigint[])], following_at = NULL,
        planned = (:next_ats::timestamptz[])[width_bucket(id, :spec_ids::bigint[])] IS NULL
    WHERE id = ANY (:spec_ids::bigint[]) AND next_at = (:expecteds::timestamptz[])[width_bucket(id, :spec_ids::bigint[])]
    RETURNING id, (:slot_ats::timestamptz[])[width_bucket(id, :spec_ids::bigint[])] AS slot_at,
                  (:sinces::timestamptz[])[width_bucket(id, :spec_ids::bigint[])] AS since
)
INSERT INTO mainspring.fires (spec_id, slot_at, since)
SELECT id, slot_at, since FROM moved
ON CONFLICT DO NOTHING
RETURNING spec_id;

-- name: fire
-- Ledger rows, jobs and the fire's cursor in one statement: killed anywhere, any scheduler goes on
-- from the cursor, and the ledger's key makes a second try a no-op.
WITH f AS MATERIALIZED (
    SELECT spec_id, slot_at, since, last_id FROM mainspring.fires ORDER BY slot_at, spec_id LIMIT 1 FOR UPDATE SKIP LOCKED
), herd AS MATERIALIZED (
    SELECT s.*, f.slot_at, f.since, s.active_from < f.slot_at AS concerned,
           CASE WHEN s.active_from < f.slot_at AND coalesce(:at::timestamptz, now()) - f.slot_at <= s.catch_up
                THEN nextval('mainspring.job_ids') END AS job_id
    FROM f CROSS JOIN LATERAL (
        SELECT * FROM mainspring.schedules WHERE spec_id = f.spec_id AND id > f.last_id ORDER BY id LIMIT :limit
    ) s
), ledger AS (
    INSERT INTO mainspring.slots (schedule_id, slot_at, decided_at, since, job_id, disposition, reason)
    SELECT id, slot_at, coalesce(:at::timestamptz, now()),
           CASE WHEN since IS NOT NULL THEN greatest(since, active_from) END,
           job_id, CASE WHEN job_id IS NULL THEN 1 ELSE 0 END, CASE WHEN job_id IS NULL THEN 'misfire' END
    FROM herd WHERE concerned
    ON CONFLICT DO NOTHING
    RETURNING schedule_id, job_id
), fired AS (
    INSERT INTO mainspring.jobs (id, queue_id, task_id, priority, run_at, enqueued_at, max_attempts, payload, schedule_id, slot_at)
    SELECT h.job_id, h.queue_id, h.task_id, h.priority, h.slot_at, coalesce(:at::timestamptz, now()), h.max_attempts, h.payload, h.id, h.slot_at
    FROM herd h
    -- IS TRUE keeps this a hashed look-up: as a join it may become quadratic in the chunk.
    WHERE h.job_id IS NOT NULL AND (h.id IN (SELECT schedule_id FROM ledger)) IS TRUE
    RETURNING queue_id
), counted AS (
    SELECT count(*) AS taken, max(id) AS last_id FROM herd
), forward AS (
    UPDATE mainspring.fires x SET last_id = c.last_id FROM f, counted c
    WHERE x.spec_id = f.spec_id AND x.slot_at = f.slot_at AND c.taken = :limit
), done AS (
    DELETE FROM mainspring.fires x USING f, counted c
    WHERE x.spec_id = f.spec_id AND x.slot_at = f.slot_at AND c.taken < :limit
)
SELECT f.slot_at, coalesce(:at::timestamptz, now()) AS now,
       (SELECT count(*) FROM ledger WHERE job_id IS NOT NULL)::int AS fired,
       (SELECT count(*) FROM ledger WHERE job_id IS NULL)::int AS skipped,
       ARRAY(SELECT DISTINCT queue_id FROM fired) AS queue_ids
FROM f;

-- name: next_due
SELECT greatest(min(next_at) - coalesce(:at::timestamptz, now()), interval '0') AS wait
FROM mainspring.specs
WHERE next_at IS NOT NULL
HAVING min(next_at) IS NOT NULL;
