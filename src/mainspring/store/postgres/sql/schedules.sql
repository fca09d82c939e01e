-- name: put_spec
INSERT INTO mainspring.specs (trigger, catch_up, next_at, following_at, planned)
VALUES (:trigger, :spec_catch_up, :next_at, :following_at, true)
ON CONFLICT (trigger, catch_up) DO NOTHING;

-- name: lock_schedules
-- By id, as a fire does: two that lock many rows in different orders would wait for each other.
SELECT id FROM mainspring.schedules
WHERE id = ANY (ARRAY(SELECT id FROM mainspring.schedules WHERE name = ANY (:names::text[]))) ORDER BY id FOR UPDATE;

-- name: put_schedule
-- A new trigger starts a new life; a change of arguments must not cost the slots still to be caught up.
INSERT INTO mainspring.schedules AS s (name, spec_id, task_id, queue_id, priority, max_attempts, payload, misfire, catch_up,
                                       overlap, overlap_limit, offset_by, jitter, max_fires, fires_left, edited, active_from, line_id,
                                       expires_after, expect_start_within, expect_finish_by)
SELECT :name, id, :task_id, :queue_id, :priority, :max_attempts, :payload, :misfire, :catch_up,
       :overlap, :overlap_limit, :offset_by, :jitter, :max_fires, :max_fires, :by_hand::bool, coalesce(:at::timestamptz, now()), :line_id,
       :expires_after::interval,
       :expect_start_within::interval, :expect_finish_by::interval
FROM mainspring.specs WHERE trigger = :trigger AND catch_up = :spec_catch_up
ON CONFLICT (name) DO UPDATE SET
    spec_id = excluded.spec_id, task_id = excluded.task_id, queue_id = excluded.queue_id, priority = excluded.priority,
    max_attempts = excluded.max_attempts, payload = excluded.payload, misfire = excluded.misfire, catch_up = excluded.catch_up,
    overlap = excluded.overlap, overlap_limit = excluded.overlap_limit, offset_by = excluded.offset_by, jitter = excluded.jitter,
    max_fires = excluded.max_fires, line_id = CASE WHEN :keep_line::bool THEN s.line_id ELSE excluded.line_id END,
    expires_after = excluded.expires_after,
    expect_start_within = excluded.expect_start_within, expect_finish_by = excluded.expect_finish_by,
    fires_left = CASE WHEN s.max_fires IS NOT DISTINCT FROM excluded.max_fires THEN s.fires_left ELSE excluded.max_fires END,
    edited = excluded.edited, version = s.version + 1,
    active_from = CASE WHEN s.spec_id = excluded.spec_id THEN s.active_from ELSE excluded.active_from END
WHERE NOT :only_new::bool AND (excluded.edited OR NOT s.edited)
  AND (s.spec_id, s.task_id, s.queue_id, s.priority, s.max_attempts, s.payload, s.misfire, s.catch_up, s.overlap, s.overlap_limit,
       s.offset_by, s.jitter, s.max_fires, s.line_id, s.expires_after, s.expect_start_within, s.expect_finish_by)
   IS DISTINCT FROM
      (excluded.spec_id, excluded.task_id, excluded.queue_id, excluded.priority, excluded.max_attempts, excluded.payload,
       excluded.misfire, excluded.catch_up, excluded.overlap, excluded.overlap_limit, excluded.offset_by, excluded.jitter,
       excluded.max_fires, CASE WHEN :keep_line::bool THEN s.line_id ELSE excluded.line_id END, excluded.expires_after,
       excluded.expect_start_within, excluded.expect_finish_by)
RETURNING name;

-- name: add_version
-- The schedule as it now stands, in the same transaction as the change.
INSERT INTO mainspring.schedule_versions (schedule_id, version, name, change, changed_at, author, note, definition)
VALUES (:schedule_id, :version, :name, :change, coalesce(:at::timestamptz, now()), :author, :note, :definition);

-- name: pause_schedules
-- A fire under way holds these rows FOR SHARE: this waits for it, and the next one sees the pause.
UPDATE mainspring.schedules
SET paused_at = coalesce(:at::timestamptz, now()), paused_by = :author, pause_note = :note, version = version + 1
WHERE name = ANY (:names::text[]) AND paused_at IS NULL
RETURNING name;

-- name: resume_schedules
-- The pause is remembered: its slots that nobody has opened yet are not caught up, and those before it are.
UPDATE mainspring.schedules
SET last_paused_at = paused_at, last_resumed_at = coalesce(:at::timestamptz, now()),
    paused_at = NULL, paused_by = NULL, pause_note = NULL, version = version + 1
WHERE name = ANY (:names::text[]) AND paused_at IS NOT NULL
RETURNING name;

-- name: hand_back_schedules
UPDATE mainspring.schedules SET edited = false, version = version + 1 WHERE name = ANY (:names::text[]) AND edited RETURNING name;

-- name: skip_slots
UPDATE mainspring.schedules SET skips = skips + :count, version = version + 1 WHERE name = :name RETURNING name;

-- name: trigger_schedule
INSERT INTO mainspring.jobs (id, queue_id, task_id, priority, run_at, enqueued_at, max_attempts, payload, schedule_id, line_id, due_at, expires_at)
SELECT nextval('mainspring.job_ids'), queue_id, task_id, priority,
       CASE WHEN line_id IS NULL THEN coalesce(:at::timestamptz, now()) ELSE timestamptz '9998-01-01 00:00:00+00' END,
       coalesce(:at::timestamptz, now()), max_attempts, payload, id, line_id,
       CASE WHEN line_id IS NOT NULL THEN coalesce(:at::timestamptz, now()) END,
       coalesce(:at::timestamptz, now()) + expires_after
FROM mainspring.schedules WHERE name = :name
RETURNING id;

-- name: delete_schedules
DELETE FROM mainspring.schedules WHERE id = ANY (:ids::bigint[]) RETURNING name;

-- name: release_held
-- Not before its own place in the window: what it waited for may have ended early. Held is asked again,
-- for another scheduler may have released it while we waited for its row. It is asked in words that no index
-- answers: planned while the queue is empty, any index will do, and a herd would be compared each with each.
UPDATE mainspring.jobs j
SET run_at = CASE WHEN j.line_id IS NULL THEN greatest(coalesce(:at::timestamptz, now()),
                      j.slot_at + coalesce((SELECT offset_by FROM mainspring.schedules s WHERE s.id = j.schedule_id), interval '0'))
                  ELSE timestamptz '9998-01-01 00:00:00+00' END,
    due_at = CASE WHEN j.line_id IS NOT NULL THEN greatest(coalesce(:at::timestamptz, now()),
                      j.slot_at + coalesce((SELECT offset_by FROM mainspring.schedules s WHERE s.id = j.schedule_id), interval '0')) END
WHERE j.run_at IS NOT DISTINCT FROM timestamptz '9999-01-01 00:00:00+00' AND j.id = ANY (ARRAY(
    SELECT first.id FROM (
        SELECT DISTINCT ON (schedule_id) schedule_id, id FROM mainspring.jobs
        WHERE run_at = timestamptz '9999-01-01 00:00:00+00' AND schedule_id IS NOT NULL ORDER BY schedule_id, id
    ) first
    -- Not NOT EXISTS: planned while the queue is empty, that join walks all live jobs for each held one.
    WHERE (SELECT live.id FROM mainspring.jobs live
           WHERE live.schedule_id = first.schedule_id AND live.backfill_id IS NULL AND live.run_at <> timestamptz '9999-01-01 00:00:00+00' LIMIT 1) IS NULL
))
RETURNING j.id;

-- name: due_specs
SELECT id, trigger, catch_up, next_at, following_at, planned
FROM mainspring.specs
WHERE next_at <= coalesce(:at::timestamptz, now()) AND id <> ALL (:beside::int[])
ORDER BY next_at
LIMIT :limit;

-- name: unplanned_specs
SELECT id, trigger, catch_up, next_at, following_at, planned
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
                  (:sinces::timestamptz[])[width_bucket(id, :spec_ids::bigint[])] AS since,
                  (:skips::text[])[width_bucket(id, :spec_ids::bigint[])] AS skip,
                  (:notes::text[])[width_bucket(id, :spec_ids::bigint[])] AS note
)
INSERT INTO mainspring.fires (spec_id, slot_at, since, skip, note)
SELECT id, slot_at, since, skip, note FROM moved
ON CONFLICT DO NOTHING
RETURNING spec_id;

-- name: fire
-- Ledger rows, jobs and the fire's cursor in one statement: killed anywhere, any scheduler goes on
-- from the cursor, and the ledger's key makes a second try a no-op. A spec's slots are fired in order,
-- one at a time, so that two slots of one schedule never decide about overlap at once; of one slot,
-- several ranges of schedules may be fired at once. The schedules are held FOR SHARE: a pause waits for
-- us, or we see it.
WITH f AS MATERIALIZED (
    SELECT x.spec_id, x.slot_at, x.since, x.skip, x.note, x.last_id, x.until_id FROM mainspring.fires x
    -- A look-up for each, not NOT EXISTS: that join, planned on an empty table, is quadratic in the open fires.
    WHERE x.slot_at = (SELECT o.slot_at FROM mainspring.fires o WHERE o.spec_id = x.spec_id ORDER BY o.slot_at LIMIT 1)
    ORDER BY x.slot_at, x.spec_id + 0, x.until_id LIMIT 1 FOR UPDATE OF x SKIP LOCKED
), taken AS MATERIALIZED (
    SELECT s.*, f.slot_at, f.since, f.skip, f.note, coalesce(:at::timestamptz, now()) - f.slot_at AS late
    FROM f CROSS JOIN LATERAL (
        SELECT * FROM mainspring.schedules WHERE spec_id = f.spec_id AND id + 0 > f.last_id AND id + 0 <= f.until_id ORDER BY id + 0 LIMIT :limit FOR SHARE
    ) s
), decided AS (
    SELECT t.*, l.live, l.blocker,
           CASE WHEN t.skip IS NOT NULL THEN t.skip
                WHEN t.paused_at IS NOT NULL OR (t.slot_at > t.last_paused_at AND t.slot_at <= t.last_resumed_at) THEN 'paused'
                WHEN t.fires_left <= 0 THEN 'exhausted'
                WHEN t.skips > 0 THEN 'requested'
                WHEN t.late > t.catch_up OR (t.misfire = 'skip' AND t.late > :missed_after::interval) THEN 'misfire'
                WHEN l.live = 0 THEN NULL
                WHEN t.overlap = 'skip' OR (t.overlap = 'queue_one' AND l.waiting > 0)
                     OR (t.overlap = 'allow' AND l.live >= t.overlap_limit) THEN 'overlap'
           END AS reason
    FROM taken t CROSS JOIN LATERAL (
        SELECT count(*) AS live, count(*) FILTER (WHERE j.worker_id = 0 AND j.run_at <> timestamptz '9997-01-01 00:00:00+00') AS waiting, min(j.id) AS blocker
        FROM mainspring.jobs j WHERE j.schedule_id = t.id AND j.backfill_id IS NULL
    ) l
    WHERE t.active_from < t.slot_at
), herd AS MATERIALIZED (
    SELECT *, CASE WHEN reason IS NULL THEN nextval('mainspring.job_ids') END AS job_id FROM decided
), ledger AS (
    INSERT INTO mainspring.slots (schedule_id, slot_at, decided_at, since, job_id, disposition, reason, blocker, note)
    SELECT id, slot_at, coalesce(:at::timestamptz, now()), CASE WHEN since IS NOT NULL THEN greatest(since, active_from) END,
           job_id, CASE WHEN job_id IS NULL THEN 1 ELSE 0 END, reason, CASE WHEN reason = 'overlap' THEN blocker END, note
    FROM herd
    ON CONFLICT DO NOTHING
    RETURNING schedule_id, job_id
), replaced AS (
    DELETE FROM mainspring.jobs
    WHERE backfill_id IS NULL AND schedule_id = ANY (ARRAY(SELECT id FROM herd WHERE overlap = 'replace' AND job_id IS NOT NULL AND live > 0
                                   AND (id IN (SELECT schedule_id FROM ledger)) IS TRUE))
    RETURNING *
), noted AS (
    INSERT INTO mainspring.runs (job_id, finished_at, started_at, enqueued_at, run_at, worker_id, schedule_id, slot_at, queue_id,
                                 task_id, fence, priority, max_attempts, failures, crashes, verdict, payload)
    SELECT id, coalesce(:at::timestamptz, now()), CASE WHEN worker_id <> 0 THEN claimed_at END, enqueued_at, run_at, worker_id,
           schedule_id, slot_at, queue_id, task_id, fence, priority, max_attempts, failures, crashes, 5, payload
    FROM replaced
), fired AS (
    INSERT INTO mainspring.jobs (id, queue_id, task_id, priority, run_at, enqueued_at, max_attempts, payload, schedule_id, slot_at,
                                 line_id, due_at, expires_at)
    SELECT h.job_id, h.queue_id, h.task_id, h.priority,
           CASE WHEN h.live > 0 AND h.overlap IN ('queue_one', 'queue_all') THEN timestamptz '9999-01-01 00:00:00+00'
                WHEN h.line_id IS NOT NULL THEN timestamptz '9998-01-01 00:00:00+00'
                ELSE h.slot_at + h.offset_by + h.jitter * random() END,
           coalesce(:at::timestamptz, now()), h.max_attempts, h.payload, h.id, h.slot_at, h.line_id,
           CASE WHEN h.line_id IS NOT NULL AND NOT (h.live > 0 AND h.overlap IN ('queue_one', 'queue_all'))
                THEN h.slot_at + h.offset_by + h.jitter * random() END,
           h.slot_at + h.expires_after
    FROM herd h
    -- IS TRUE keeps this a hashed look-up: as a join it may become quadratic in the chunk.
    WHERE h.job_id IS NOT NULL AND (h.id IN (SELECT schedule_id FROM ledger)) IS TRUE
    RETURNING queue_id
), counted_down AS (
    UPDATE mainspring.schedules
    SET fires_left = CASE WHEN skips > 0 THEN fires_left ELSE fires_left - 1 END, skips = greatest(skips - 1, 0)
    WHERE id = ANY (ARRAY(SELECT id FROM herd
                          WHERE ((job_id IS NOT NULL AND fires_left IS NOT NULL) OR reason = 'requested')
                            AND (id IN (SELECT schedule_id FROM ledger)) IS TRUE))
), counted AS (
    SELECT count(*) AS taken, max(id) AS last_id FROM taken
), onward AS MATERIALIZED (
    -- What is left, cut in two where it is worth it: another scheduler takes the other half.
    SELECT f.*, c.last_id AS from_id,
           CASE WHEN least(f.until_id, t.top_id) - c.last_id > 2 * :limit
                     AND (SELECT count(*) FROM mainspring.fires p WHERE p.spec_id = f.spec_id AND p.slot_at = f.slot_at) < 4
                THEN (c.last_id + least(f.until_id, t.top_id)) / 2 END AS middle_id
    FROM f, counted c, LATERAL (SELECT id + 0 AS top_id FROM mainspring.schedules WHERE spec_id = f.spec_id AND id + 0 > f.last_id ORDER BY id + 0 DESC LIMIT 1) t
    WHERE c.taken = :limit
), forward AS (
    -- By key, not a join: planned on an empty table that walks every open fire.
    UPDATE mainspring.fires SET last_id = (SELECT coalesce(middle_id, from_id) FROM onward)
    WHERE spec_id = (SELECT spec_id FROM onward) AND slot_at = (SELECT slot_at FROM onward) AND until_id = (SELECT until_id FROM onward)
), cut AS (
    INSERT INTO mainspring.fires (spec_id, slot_at, since, skip, note, last_id, until_id)
    SELECT spec_id, slot_at, since, skip, note, from_id, middle_id FROM onward WHERE middle_id IS NOT NULL
), done AS (
    DELETE FROM mainspring.fires
    WHERE spec_id = (SELECT spec_id FROM f) AND slot_at = (SELECT slot_at FROM f) AND until_id = (SELECT until_id FROM f)
      AND (SELECT taken FROM counted) < :limit
)
SELECT f.slot_at, coalesce(:at::timestamptz, now()) AS now,
       (SELECT count(*) FROM ledger WHERE job_id IS NOT NULL)::int AS fired,
       (SELECT count(*) FROM ledger WHERE job_id IS NULL)::int AS skipped
FROM f;

-- name: next_due
-- A fire that another scheduler has in hand may soon be cut in two, or that scheduler may die: it is looked at again.
SELECT least(
    (SELECT greatest(next_at - coalesce(:at::timestamptz, now()), interval '0')
     FROM mainspring.specs
     WHERE next_at IS NOT NULL AND id <> ALL (:beside::int[])
     ORDER BY next_at
     LIMIT 1),
    CASE WHEN EXISTS (SELECT 1 FROM mainspring.fires) THEN interval '10 milliseconds' END) AS wait;
