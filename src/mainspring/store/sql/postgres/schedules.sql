-- name: standing_schedules
-- By name alone and without a lock. A start compares each schedule that code declares in this way, and most schedules are
-- as declared. The rows have no order: with an order by id, a plan made for an empty table reads every schedule.
SELECT s.*, p.trigger, p.next_at,
       (SELECT name FROM mainspring.queues WHERE id = s.queue_id) AS queue, (SELECT name FROM mainspring.tasks WHERE id = s.task_id) AS task
FROM mainspring.schedules s CROSS JOIN LATERAL (SELECT trigger, next_at FROM mainspring.specs WHERE id = s.spec_id OFFSET 0) p
WHERE s.name = ANY (:names::text[]);

-- name: lock_schedules
-- In the order of ids, as a firing does: two transactions that lock many rows in different orders would wait for each
-- other.
SELECT id FROM mainspring.schedules
WHERE id = ANY (ARRAY(SELECT id FROM mainspring.schedules WHERE name = ANY (:names::text[]))) ORDER BY id FOR UPDATE;

-- name: put_specs
-- In one order, because other processes may write the same specs. Specs that exist are not written.
INSERT INTO mainspring.specs (trigger, catch_up, next_at, following_at, planned)
SELECT trigger, catch_up, next_at, following_at, true
FROM unnest(:trigger::text[], :spec_catch_up::interval[], :next_at::timestamptz[], :following_at::timestamptz[])
     AS new (trigger, catch_up, next_at, following_at)
WHERE (SELECT p.id FROM mainspring.specs p WHERE p.trigger = new.trigger AND p.catch_up = new.catch_up) IS NULL
ORDER BY trigger, catch_up
ON CONFLICT (trigger, catch_up) DO NOTHING;

-- name: add_schedules
-- In the order of names. If another process makes a schedule of that name meanwhile, this statement waits for its end and
-- writes nothing. The caller then compares the schedule.
INSERT INTO mainspring.schedules (name, spec_id, task_id, queue_id, priority, max_attempts, payload, misfire, catch_up, overlap,
                                  overlap_limit, offset_by, jitter, max_fires, fires_left, edited, active_from, limit_set_id,
                                  expires_after, expect_start_within, expect_finish_by)
SELECT name, (SELECT p.id FROM mainspring.specs p WHERE p.trigger = new.trigger AND p.catch_up = new.spec_catch_up),
       (SELECT t.id FROM mainspring.tasks t WHERE t.name = new.task), (SELECT q.id FROM mainspring.queues q WHERE q.name = new.queue),
       priority, max_attempts, payload, misfire, catch_up, overlap, overlap_limit, offset_by, jitter,
       max_fires, max_fires, :by_hand::bool, coalesce(:at::timestamptz, now()), limit_set_id, expires_after, expect_start_within,
       expect_finish_by
FROM unnest(:name::text[], :trigger::text[], :spec_catch_up::interval[], :task::text[], :queue::text[],
            :priority::smallint[], :max_attempts::smallint[], :payload::bytea[], :misfire::text[], :catch_up::interval[],
            :overlap::text[], :overlap_limit::int[], :offset_by::interval[], :jitter::interval[], :max_fires::int[],
            :limit_set_id::int[], :expires_after::interval[], :expect_start_within::interval[], :expect_finish_by::interval[])
     AS new (name, trigger, spec_catch_up, task, queue, priority, max_attempts, payload, misfire, catch_up, overlap,
             overlap_limit, offset_by, jitter, max_fires, limit_set_id, expires_after, expect_start_within, expect_finish_by)
ORDER BY name
ON CONFLICT (name) DO NOTHING
RETURNING name;

-- name: change_schedules
-- The rows are locked already, and the slots that were due until now have been decided.
UPDATE mainspring.schedules s
SET spec_id = new.spec_id, task_id = new.task_id, queue_id = new.queue_id, priority = new.priority,
    max_attempts = new.max_attempts, payload = new.payload, misfire = new.misfire, catch_up = new.catch_up,
    overlap = new.overlap, overlap_limit = new.overlap_limit, offset_by = new.offset_by, jitter = new.jitter,
    max_fires = new.max_fires, limit_set_id = CASE WHEN new.keep_limit_set THEN s.limit_set_id ELSE new.limit_set_id END,
    expires_after = new.expires_after, expect_start_within = new.expect_start_within, expect_finish_by = new.expect_finish_by,
    fires_left = CASE WHEN s.max_fires IS NOT DISTINCT FROM new.max_fires THEN s.fires_left ELSE new.max_fires END,
    edited = :by_hand::bool, version = s.version + 1,
    active_from = :at::timestamptz
FROM (
    SELECT id, (SELECT p.id FROM mainspring.specs p WHERE p.trigger = each.trigger AND p.catch_up = each.spec_catch_up) AS spec_id,
           (SELECT t.id FROM mainspring.tasks t WHERE t.name = each.task) AS task_id,
           (SELECT q.id FROM mainspring.queues q WHERE q.name = each.queue) AS queue_id, priority, max_attempts, payload, misfire, catch_up, overlap, overlap_limit, offset_by, jitter,
           max_fires, limit_set_id, expires_after, expect_start_within, expect_finish_by, keep_limit_set
    FROM unnest(:id::bigint[], :trigger::text[], :spec_catch_up::interval[], :task::text[], :queue::text[],
                :priority::smallint[], :max_attempts::smallint[], :payload::bytea[], :misfire::text[], :catch_up::interval[],
                :overlap::text[], :overlap_limit::int[], :offset_by::interval[], :jitter::interval[], :max_fires::int[],
                :limit_set_id::int[], :expires_after::interval[], :expect_start_within::interval[], :expect_finish_by::interval[],
                :keep_limit_set::bool[])
         AS each (id, trigger, spec_catch_up, task, queue, priority, max_attempts, payload, misfire, catch_up, overlap,
                  overlap_limit, offset_by, jitter, max_fires, limit_set_id, expires_after, expect_start_within, expect_finish_by,
                  keep_limit_set)
) new
WHERE s.id = ANY (:id::bigint[]) AND s.id = new.id;

-- name: add_versions
-- The schedules as they are now, in the same transaction as the change.
INSERT INTO mainspring.schedule_versions (schedule_id, version, name, change, changed_at, author, note, definition)
SELECT schedule_id, version, name, change, coalesce(:at::timestamptz, now()), :author, :note, definition
FROM unnest(:schedule_id::bigint[], :version::int[], :name::text[], :change::text[], :definition::text[])
     AS each (schedule_id, version, name, change, definition);

-- name: trigger_schedule
INSERT INTO mainspring.jobs (id, queue_id, task_id, priority, run_at, enqueued_at, max_attempts, payload, schedule_id, limit_set_id, due_at, expires_at)
SELECT nextval('mainspring.job_ids'), queue_id, task_id, priority,
       CASE WHEN limit_set_id IS NULL THEN coalesce(:at::timestamptz, now()) ELSE timestamptz '9998-01-01 00:00:00+00' END,
       coalesce(:at::timestamptz, now()), max_attempts, payload, id, limit_set_id,
       CASE WHEN limit_set_id IS NOT NULL THEN coalesce(:at::timestamptz, now()) END,
       coalesce(:at::timestamptz, now()) + expires_after
FROM mainspring.schedules WHERE name = :name
RETURNING id;

-- name: release_held
-- The oldest jobs first, and as many as may be live at once: the ids of the jobs have the order of the slots. A job is not
-- due before its own place in the window, because the jobs before it may have ended early. The statement checks again
-- whether the job is held, because another scheduler may have released it while this statement waited for its row. No index
-- fits this condition, on purpose: a plan made for an empty queue uses any index, and would compare each job of a burst
-- with each other job.
UPDATE mainspring.jobs j
SET run_at = CASE WHEN j.limit_set_id IS NULL THEN greatest(coalesce(:at::timestamptz, now()),
                      j.slot_at + coalesce((SELECT offset_by FROM mainspring.schedules s WHERE s.id = j.schedule_id), interval '0'))
                  ELSE timestamptz '9998-01-01 00:00:00+00' END,
    due_at = CASE WHEN j.limit_set_id IS NOT NULL THEN greatest(coalesce(:at::timestamptz, now()),
                      j.slot_at + coalesce((SELECT offset_by FROM mainspring.schedules s WHERE s.id = j.schedule_id), interval '0')) END
WHERE j.run_at IS NOT DISTINCT FROM timestamptz '9999-01-01 00:00:00+00' AND j.id = ANY (ARRAY(
    SELECT oldest.id FROM (
        SELECT DISTINCT schedule_id FROM mainspring.jobs
        WHERE run_at = timestamptz '9999-01-01 00:00:00+00' AND schedule_id IS NOT NULL
    ) waiting
    CROSS JOIN LATERAL (
        SELECT coalesce((SELECT s.overlap_limit FROM mainspring.schedules s WHERE s.id = waiting.schedule_id AND s.overlap = 'allow'), 1) AS allowed
    ) may
    -- Look-ups for each held job, not joins: the plan of a join, made for an empty queue, reads all live jobs for each held
    -- job.
    CROSS JOIN LATERAL (
        SELECT count(*) AS live FROM (
            SELECT FROM mainspring.jobs live
            WHERE live.schedule_id = waiting.schedule_id AND live.backfill_id IS NULL AND live.run_at <> timestamptz '9999-01-01 00:00:00+00' LIMIT may.allowed
        ) counted
    ) now_live
    CROSS JOIN LATERAL (
        SELECT held.id FROM mainspring.jobs held
        WHERE held.run_at = timestamptz '9999-01-01 00:00:00+00' AND held.schedule_id = waiting.schedule_id ORDER BY held.id LIMIT may.allowed - now_live.live
    ) oldest
))
RETURNING j.id;

-- name: plan_specs
-- Sorted ids and width_bucket instead of a join, as in queue.sql and for the same reason.
UPDATE mainspring.specs
SET following_at = (:following_at::timestamptz[])[width_bucket(id, :id::bigint[])], planned = true
WHERE id = ANY (:id::bigint[]) AND next_at = (:next_at::timestamptz[])[width_bucket(id, :id::bigint[])] AND NOT planned;

-- name: open_firings
-- Compare and set: the second scheduler finds that the spec has a later `next_at`, and opens nothing.
WITH moved AS (
    UPDATE mainspring.specs
    SET next_at = (:next_at::timestamptz[])[width_bucket(id, :spec_id::bigint[])], following_at = NULL,
        last_at = CASE WHEN (:skip::text[])[width_bucket(id, :spec_id::bigint[])] IS DISTINCT FROM 'calendar'
                       THEN (:slot_at::timestamptz[])[width_bucket(id, :spec_id::bigint[])] ELSE last_at END,
        planned = (:next_at::timestamptz[])[width_bucket(id, :spec_id::bigint[])] IS NULL
    WHERE id = ANY (:spec_id::bigint[]) AND next_at = (:expected::timestamptz[])[width_bucket(id, :spec_id::bigint[])]
    RETURNING id, (:slot_at::timestamptz[])[width_bucket(id, :spec_id::bigint[])] AS slot_at,
                  (:since::timestamptz[])[width_bucket(id, :spec_id::bigint[])] AS since,
                  (:combined::text[])[width_bucket(id, :spec_id::bigint[])]::jsonb AS combined,
                  (:skip::text[])[width_bucket(id, :spec_id::bigint[])] AS skip,
                  (:note::text[])[width_bucket(id, :spec_id::bigint[])] AS note,
                  (:previous_at::timestamptz[])[width_bucket(id, :spec_id::bigint[])] AS previous_at
)
INSERT INTO mainspring.firings (spec_id, slot_at, since, combined, skip, note, previous_at)
SELECT id, slot_at, since, combined, skip, note, previous_at FROM moved
ON CONFLICT DO NOTHING
RETURNING spec_id;

-- name: fire
-- Ledger rows, jobs and the cursor of the firing in one statement. If a scheduler dies, any other scheduler goes on from the
-- cursor, and the key of the ledger makes a second try a no-op.
-- The slots of a spec are fired in order, one at a time. So two slots of one schedule never decide about overlap at the same
-- time. Several ranges of schedules of one slot may be fired at the same time.
-- The schedules are locked FOR SHARE: a pause waits for this statement, or this statement sees the pause. But where the
-- snapshot is older than the transaction of the pause (stale), the statement does not see what that transaction wrote
-- elsewhere, such as a job. Then it decides nothing, and the caller asks again.
-- A slot that is caught up (misfire = 'all'), and a slot that comes while the job of such a slot is live (caught), is not
-- skipped for overlap: it waits for the jobs before it, as many as the policy allows at once. The newest missed slot
-- (misfire = 'latest') waits too, unless a job waits already. With both policies, a slot also waits if it came before the
-- job of an earlier slot was made (passed): no scheduler ran at that time, perhaps only for seconds.
WITH f AS MATERIALIZED (
    SELECT x.spec_id, x.slot_at, x.since, x.combined, x.skip, x.note, x.previous_at, x.last_id, x.until_id FROM mainspring.firings x
    -- A look-up for each firing, not NOT EXISTS: the plan of that join, made for an empty table, is quadratic in the number
    -- of open firings.
    WHERE x.slot_at = (SELECT o.slot_at FROM mainspring.firings o WHERE o.spec_id = x.spec_id ORDER BY o.slot_at LIMIT 1)
    ORDER BY x.slot_at, x.spec_id + 0, x.until_id LIMIT 1 FOR UPDATE OF x SKIP LOCKED
), locked AS MATERIALIZED (
    SELECT s.*, f.slot_at, f.since, f.combined, f.skip, f.note, f.previous_at, coalesce(:at::timestamptz, now()) - f.slot_at AS late,
           coalesce(:at::timestamptz, now()) - f.slot_at > :missed_after::interval AS missed
    FROM f CROSS JOIN LATERAL (
        SELECT * FROM mainspring.schedules WHERE spec_id = f.spec_id AND id + 0 > f.last_id AND id + 0 <= f.until_id ORDER BY id + 0 LIMIT :limit FOR SHARE
    ) s
), fresh AS MATERIALIZED (
    -- The locked rows are the newest. These rows are as the snapshot has them. Every change increases a version.
    SELECT coalesce((SELECT sum(version) FROM locked), 0) = coalesce((
        SELECT sum(version) FROM mainspring.schedules
        WHERE spec_id = f.spec_id AND id + 0 > f.last_id AND id + 0 <= (SELECT max(id) FROM locked)), 0) AS fresh
    FROM f
), taken AS MATERIALIZED (
    SELECT locked.* FROM locked CROSS JOIN fresh WHERE fresh
)
-- part: decide
, decided AS (
    SELECT t.*, l.live, l.blocker, l.slot_count,
           l.live > 0 AND CASE WHEN t.overlap IN ('queue_one', 'queue_all') THEN true
                               WHEN t.misfire = 'latest' THEN (t.missed OR l.passed > 0) AND (t.overlap = 'skip' OR (t.overlap = 'allow' AND l.live >= t.overlap_limit))
                               WHEN t.misfire = 'skip' THEN false
                               WHEN t.overlap = 'allow' THEN l.held > 0 OR l.live >= t.overlap_limit
                               ELSE t.missed OR l.caught > 0 OR l.passed > 0 OR l.held > 0 END AS waits,
           CASE WHEN t.skip <> 'breaker' THEN t.skip
                WHEN t.paused_at IS NOT NULL OR (t.slot_at > t.last_paused_at AND t.slot_at <= t.last_resumed_at) THEN 'paused'
                WHEN t.fires_left <= 0 THEN 'exhausted'
                WHEN t.misfire = 'skip' AND t.missed THEN 'misfire'
                WHEN t.late > t.catch_up THEN 'too_late'
                WHEN t.skip = 'breaker' OR (t.misfire = 'all' AND t.missed AND t.catch_up = interval '365000 days' AND (l.live >= :breaker OR (
                         -- A tripped breaker stays tripped for the missed slots while a job is live. Otherwise only some
                         -- of these slots would be left out.
                         l.live > 0 AND (
                         SELECT p.disposition = 1 AND p.reason = 'breaker' FROM mainspring.slots p
                         WHERE p.schedule_id = t.id AND p.slot_at < t.slot_at ORDER BY p.slot_at DESC LIMIT 1)))) THEN 'breaker'
                WHEN t.skips >= l.slot_count THEN 'requested'
                WHEN l.live = 0 OR (t.misfire = 'all' AND (t.missed OR l.caught > 0 OR l.passed > 0 OR (l.held > 0 AND t.overlap <> 'queue_one')))
                     OR (t.misfire = 'latest' AND ((t.missed AND l.held = 0) OR l.passed > 0)) THEN NULL
                WHEN t.overlap = 'skip' OR (t.overlap = 'queue_one' AND l.waiting > 0)
                     OR (t.overlap = 'allow' AND l.live >= t.overlap_limit) THEN 'overlap'
           END AS reason
    FROM taken t CROSS JOIN LATERAL (
        SELECT count(*) AS live, count(*) FILTER (WHERE j.worker_id = 0 AND j.run_at <> timestamptz '9997-01-01 00:00:00+00') AS waiting, min(j.id) AS blocker,
               count(*) FILTER (WHERE j.run_at = timestamptz '9999-01-01 00:00:00+00') AS held,
               count(*) FILTER (WHERE j.enqueued_at - j.slot_at > :missed_after::interval) AS caught,
               -- Jobs of earlier slots that were made after this slot had come: the schedulers are late.
               count(*) FILTER (WHERE j.slot_at < t.slot_at AND j.enqueued_at >= t.slot_at) AS passed,
               -- How many slots of the schedule this firing combines, without slots from before the schedule was active and
               -- slots that have been decided. NULL where the number is not needed.
               CASE WHEN t.skips > 0
                    THEN 1 + (SELECT count(*) FROM jsonb_array_elements_text(t.combined) c WHERE c::timestamptz > t.active_from) END AS slot_count
        FROM mainspring.jobs j WHERE j.schedule_id = t.id AND j.backfill_id IS NULL
    ) l
    WHERE t.active_from < t.slot_at
), burst AS MATERIALIZED (
    SELECT *, CASE WHEN reason IS NULL THEN nextval('mainspring.job_ids') END AS job_id FROM decided
), ledger AS (
    INSERT INTO mainspring.slots (schedule_id, slot_at, decided_at, since, job_id, disposition, reason, blocker, note)
    -- now() is when this statement was received: the firing that it sees may have been opened a moment later.
    SELECT id, slot_at, greatest(coalesce(:at::timestamptz, now()), slot_at), CASE WHEN since IS NOT NULL THEN greatest(since, active_from + interval '1 microsecond') END,
           job_id, CASE WHEN job_id IS NULL THEN 1 ELSE 0 END, reason, CASE WHEN reason = 'overlap' THEN blocker END, note
    FROM burst
    ON CONFLICT DO NOTHING
    RETURNING schedule_id, job_id
), replaced AS (
    DELETE FROM mainspring.jobs
    WHERE backfill_id IS NULL AND schedule_id = ANY (ARRAY(SELECT id FROM burst WHERE overlap = 'replace' AND job_id IS NOT NULL AND live > 0 AND NOT waits
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
                                 limit_set_id, due_at, expires_at, previous_at)
    SELECT h.job_id, h.queue_id, h.task_id, h.priority,
           CASE WHEN h.waits THEN timestamptz '9999-01-01 00:00:00+00'
                WHEN h.limit_set_id IS NOT NULL THEN timestamptz '9998-01-01 00:00:00+00'
                ELSE h.slot_at + h.offset_by + h.jitter * random() END,
           coalesce(:at::timestamptz, now()), h.max_attempts, h.payload, h.id, h.slot_at, h.limit_set_id,
           CASE WHEN h.limit_set_id IS NOT NULL AND NOT h.waits
                THEN h.slot_at + h.offset_by + h.jitter * random() END,
           h.slot_at + h.expires_after, h.previous_at
    FROM burst h
    -- IS TRUE keeps this a hashed look-up: a join may become quadratic in the size of the chunk.
    WHERE h.job_id IS NOT NULL AND (h.id IN (SELECT schedule_id FROM ledger)) IS TRUE
    RETURNING queue_id
), counted_down AS (
    -- A request to skip counts slots, not rows: each row uses as many as the slots that it combines. The numbers are looked
    -- up in an object, because a join may be quadratic.
    UPDATE mainspring.schedules
    SET fires_left = fires_left - CASE WHEN skips >= ((SELECT jsonb_object_agg(id, slot_count) FROM burst WHERE skips > 0) -> id::text)::int THEN 0 ELSE 1 END,
        skips = greatest(skips - coalesce(((SELECT jsonb_object_agg(id, slot_count) FROM burst WHERE skips > 0) -> id::text)::int, 0), 0)
    WHERE id = ANY (ARRAY(SELECT id FROM burst
                          WHERE ((job_id IS NOT NULL AND (fires_left IS NOT NULL OR skips > 0)) OR reason = 'requested')
                            AND (id IN (SELECT schedule_id FROM ledger)) IS TRUE))
)
-- end
, counted AS (
    SELECT count(*) AS taken, max(id) AS last_id FROM locked
), onward AS MATERIALIZED (
    -- The schedules that are left. A large rest is divided in two: another scheduler takes the second half.
    SELECT f.*, c.last_id AS from_id,
           CASE WHEN least(f.until_id, t.top_id) - c.last_id > 2 * :limit
                     AND (SELECT count(*) FROM mainspring.firings p WHERE p.spec_id = f.spec_id AND p.slot_at = f.slot_at) < 4
                THEN (c.last_id + least(f.until_id, t.top_id)) / 2 END AS middle_id
    FROM f, counted c, LATERAL (SELECT id + 0 AS top_id FROM mainspring.schedules WHERE spec_id = f.spec_id AND id + 0 > f.last_id ORDER BY id + 0 DESC LIMIT 1) t
    WHERE c.taken = :limit AND (SELECT fresh FROM fresh)
), forward AS (
    -- By key, not by a join: the plan of a join, made for an empty table, reads every open firing.
    UPDATE mainspring.firings SET last_id = (SELECT coalesce(middle_id, from_id) FROM onward)
    WHERE spec_id = (SELECT spec_id FROM onward) AND slot_at = (SELECT slot_at FROM onward) AND until_id = (SELECT until_id FROM onward)
), cut AS (
    INSERT INTO mainspring.firings (spec_id, slot_at, since, combined, skip, note, previous_at, last_id, until_id)
    SELECT spec_id, slot_at, since, combined, skip, note, previous_at, from_id, middle_id FROM onward WHERE middle_id IS NOT NULL
), done AS (
    DELETE FROM mainspring.firings
    WHERE spec_id = (SELECT spec_id FROM f) AND slot_at = (SELECT slot_at FROM f) AND until_id = (SELECT until_id FROM f)
      AND (SELECT taken FROM counted) < :limit AND (SELECT fresh FROM fresh)
)
SELECT (SELECT fresh FROM fresh) AS fresh, f.slot_at, f.since, coalesce(:at::timestamptz, now()) AS now,
       (SELECT count(*) FROM ledger WHERE job_id IS NOT NULL)::int AS fired,
       (SELECT count(*) FROM ledger WHERE job_id IS NULL)::int AS skipped,
       ARRAY(SELECT name FROM burst WHERE reason = 'too_late' AND (id IN (SELECT schedule_id FROM ledger)) IS TRUE ORDER BY id) AS too_late,
       ARRAY(SELECT name FROM burst WHERE reason = 'breaker' AND (id IN (SELECT schedule_id FROM ledger)) IS TRUE ORDER BY id) AS breaker
FROM f;

-- name: decide_slots
-- For schedules whose rows the caller has locked, one slot of each: the rows that a firing would write.
WITH taken AS MATERIALIZED (
    SELECT s.*, f.slot_at, f.since, f.combined::jsonb AS combined, f.skip, f.note, NULL::timestamptz AS previous_at, coalesce(:at::timestamptz, now()) - f.slot_at AS late,
           coalesce(:at::timestamptz, now()) - f.slot_at > :missed_after::interval AS missed
    FROM unnest(:ids::bigint[], :slot_ats::timestamptz[], :sinces::timestamptz[], :combineds::text[], :skips::text[], :notes::text[])
         AS f (schedule_id, slot_at, since, combined, skip, note)
    CROSS JOIN LATERAL (SELECT * FROM mainspring.schedules WHERE id = f.schedule_id OFFSET 0) s
)
-- use: decide
SELECT count(*) FILTER (WHERE job_id IS NOT NULL)::int AS fired FROM ledger;

-- name: overdue_specs
-- Specs with a slot that is due, and their open firings. One statement reads both, because a slot that is opened goes from
-- the one to the other at once.
SELECT p.id, p.trigger, p.catch_up, p.next_at, p.following_at, p.planned, p.last_at, false AS tripped, p.next_at <= :at::timestamptz AS due,
       coalesce((SELECT max(s.skips) FROM mainspring.schedules s WHERE s.spec_id = p.id AND s.skips > 0), 0) AS skips,
       f.slot_at, f.since, f.combined, f.skip, f.note, f.last_id, f.until_id
FROM mainspring.specs p
LEFT JOIN LATERAL (SELECT * FROM mainspring.firings WHERE spec_id = p.id OFFSET 0) f ON true
WHERE p.id = ANY (:ids::bigint[]) AND (p.next_at <= :at::timestamptz OR f.slot_at IS NOT NULL);

-- name: move_active
UPDATE mainspring.schedules SET active_from = (:moment::timestamptz[])[width_bucket(id, :id::bigint[])]
WHERE id = ANY (:id::bigint[]);

-- name: hold_specs
-- Until the caller's transaction has ended, no scheduler opens a slot of these specs. Such a slot would be fired without
-- the schedules that the caller is about to write.
SELECT id FROM mainspring.specs
WHERE id = ANY (ARRAY(
    SELECT (SELECT p.id FROM mainspring.specs p WHERE p.trigger = each.trigger AND p.catch_up = each.catch_up)
    FROM unnest(:triggers::text[], :spec_catch_ups::interval[]) AS each (trigger, catch_up)
))
ORDER BY id FOR SHARE;

-- name: moment
-- Not now(), the start of the transaction: the transaction may have waited for a firing since then.
SELECT coalesce(:at::timestamptz, clock_timestamp()) AS now;

-- name: next_due
-- A firing that another scheduler has locked may soon be divided in two, or that scheduler may die. So this scheduler looks
-- at it again soon.
SELECT least(
    (SELECT greatest(next_at - coalesce(:at::timestamptz, now()), interval '0')
     FROM mainspring.specs
     WHERE next_at IS NOT NULL AND id <> ALL (:beside::int[])
     ORDER BY next_at
     LIMIT 1),
    CASE WHEN EXISTS (SELECT 1 FROM mainspring.firings) THEN interval '10 milliseconds' END) AS wait;

-- name: undeclared_schedules
-- A sub-select, which PostgreSQL hashes: before PostgreSQL 15 a list would be searched for every schedule.
SELECT s.name FROM mainspring.schedules s JOIN mainspring.specs p ON p.id = s.spec_id
WHERE p.next_at IS NOT NULL AND s.name NOT IN (SELECT unnest(:declared::text[])) ORDER BY s.name LIMIT :limit;

-- name: schedules_page
-- The schedules of the page are found first, because the newest slot of each is looked up in the ledger of every day.
WITH page AS MATERIALIZED (
    SELECT name, fits, place FROM (
        SELECT name, row_number() OVER (ORDER BY name) AS place,
               (:text::text IS NULL OR strpos(lower(name), lower(:text)) > 0
                OR task_id IN (SELECT t.id FROM mainspring.tasks t WHERE strpos(lower(t.name), lower(:text)) > 0))
               AND (:task::text IS NULL OR task_id = (SELECT t.id FROM mainspring.tasks t WHERE t.name = :task))
               AND (:queue::text IS NULL OR queue_id = (SELECT q.id FROM mainspring.queues q WHERE q.name = :queue))
               AND CASE :only::text
                   WHEN 'paused' THEN paused_at IS NOT NULL
                   WHEN 'edited' THEN edited
                   WHEN 'overdue' THEN spec_id IN (SELECT p.id FROM mainspring.specs p WHERE p.next_at <= coalesce(:at::timestamptz, now()) - :late::interval)
                   WHEN 'ended' THEN spec_id IN (SELECT p.id FROM mainspring.specs p WHERE p.next_at IS NULL)
                   ELSE true END AS fits
        FROM (SELECT name, task_id, queue_id, spec_id, paused_at, edited FROM mainspring.schedules
              WHERE name > :after ORDER BY name LIMIT :look) looked
    ) numbered
    WHERE fits OR place = :look ORDER BY name LIMIT :limit
)
SELECT s.*, s.name AS schedule, p.trigger, p.next_at,
       (SELECT name FROM mainspring.queues WHERE id = s.queue_id) AS queue, (SELECT name FROM mainspring.tasks WHERE id = s.task_id) AS task,
       s.name IN (SELECT name FROM page WHERE fits) AS fits, s.name IN (SELECT name FROM page WHERE place = :look) AS is_last,
       l.slot_at, l.disposition, l.reason, l.since, l.job_id, l.decided_at, l.blocker, l.note
FROM mainspring.schedules s
CROSS JOIN LATERAL (SELECT trigger, next_at FROM mainspring.specs WHERE id = s.spec_id LIMIT 1) p
LEFT JOIN LATERAL (SELECT * FROM mainspring.slots WHERE schedule_id = s.id ORDER BY slot_at DESC LIMIT 1) l ON true
WHERE s.name = ANY (ARRAY(SELECT name FROM page)) ORDER BY s.name;

-- name: coming
-- The inner limits make both queries look-ups by an index, for every estimate of the sizes of the tables.
SELECT s.name AS schedule, p.next_at AS slot_at, s.paused,
       (SELECT name FROM mainspring.queues WHERE id = s.queue_id) AS queue, (SELECT name FROM mainspring.tasks WHERE id = s.task_id) AS task
FROM (
    SELECT id, next_at FROM mainspring.specs WHERE next_at IS NOT NULL ORDER BY next_at LIMIT :limit
) p
CROSS JOIN LATERAL (
    SELECT name, queue_id, task_id, paused_at IS NOT NULL AS paused, id FROM mainspring.schedules
    WHERE spec_id = p.id AND coalesce(fires_left, 1) > 0
    ORDER BY id + 0 LIMIT :limit
) s
ORDER BY p.next_at, p.id, s.id LIMIT :limit;
