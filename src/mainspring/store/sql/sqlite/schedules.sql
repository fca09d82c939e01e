-- name: standing_schedules
-- By name alone. A start compares each schedule that code declares in this way, and most schedules are as declared.
SELECT s.*, p.trigger, p.next_at FROM schedules s CROSS JOIN specs p ON p.id = s.spec_id
WHERE s.name IN (SELECT value FROM json_each(:names));

-- name: lock_schedules
SELECT id FROM schedules WHERE name IN (SELECT value FROM json_each(:names));

-- name: put_specs
INSERT INTO specs (trigger, catch_up, next_at, following_at, planned)
VALUES (:trigger, :spec_catch_up, :next_at, :following_at, 1)
ON CONFLICT (trigger, catch_up) DO NOTHING;

-- name: hold_specs
-- Nothing: one transaction writes at a time, so no scheduler opens a slot of these specs meanwhile.

-- name: add_schedules
INSERT INTO schedules (name, spec_id, task, queue, priority, max_attempts, payload, misfire, catch_up,
                       overlap, overlap_limit, offset_by, jitter, max_fires, fires_left, edited, active_from, limit_set_id,
                       expires_after, expect_start_within, expect_finish_by)
SELECT :name, id, :task, :queue, :priority, :max_attempts, :payload, :misfire, :catch_up,
       :overlap, :overlap_limit, :offset_by, :jitter, :max_fires, :max_fires, :by_hand, :now, :limit_set_id, :expires_after,
       :expect_start_within, :expect_finish_by
FROM specs WHERE trigger = :trigger AND catch_up = :spec_catch_up
RETURNING name;

-- name: change_schedules
-- The slots that were due until now have been decided.
UPDATE schedules AS s
SET spec_id = new.id, task = :task, queue = :queue, priority = :priority,
    max_attempts = :max_attempts, payload = :payload, misfire = :misfire, catch_up = :catch_up,
    overlap = :overlap, overlap_limit = :overlap_limit, offset_by = :offset_by, jitter = :jitter,
    max_fires = :max_fires, limit_set_id = CASE WHEN :keep_limit_set THEN s.limit_set_id ELSE :limit_set_id END,
    expires_after = :expires_after, expect_start_within = :expect_start_within, expect_finish_by = :expect_finish_by,
    fires_left = CASE WHEN s.max_fires IS :max_fires THEN s.fires_left ELSE :max_fires END,
    edited = :by_hand, version = s.version + 1,
    active_from = :now
FROM (SELECT id FROM specs WHERE trigger = :trigger AND catch_up = :spec_catch_up) new
WHERE s.id = :id;

-- name: add_versions
-- The schedule as it is now, in the same transaction as the change.
INSERT INTO schedule_versions (schedule_id, version, name, change, changed_at, author, note, definition)
VALUES (:schedule_id, :version, :name, :change, :now, :author, :note, :definition);

-- name: trigger_schedule
INSERT INTO jobs (queue, task, priority, run_at, enqueued_at, max_attempts, payload, schedule_id, limit_set_id, due_at, expires_at)
SELECT queue, task, priority, CASE WHEN limit_set_id IS NULL THEN :now ELSE 253339228800000000 END, :now, max_attempts, payload, id, limit_set_id,
       CASE WHEN limit_set_id IS NOT NULL THEN :now END, :now + expires_after
FROM schedules WHERE name = :name
RETURNING id;

-- name: release_held
-- The oldest jobs first, and as many as may be live at once: the ids of the jobs have the order of the slots. A job is not
-- due before its own place in the window, because the jobs before it may have ended early.
WITH freed AS MATERIALIZED (
    SELECT w.schedule_id,
           coalesce((SELECT s.overlap_limit FROM schedules s WHERE s.id = w.schedule_id AND s.overlap = 'allow'), 1)
           - (SELECT count(*) FROM jobs j WHERE j.schedule_id = w.schedule_id AND j.backfill_id IS NULL AND j.run_at < 253370764800000000) AS places
    FROM (SELECT DISTINCT schedule_id FROM jobs WHERE run_at = 253370764800000000 AND schedule_id IS NOT NULL) w
)
UPDATE jobs SET run_at = CASE WHEN limit_set_id IS NULL THEN max(:now, slot_at + coalesce((SELECT offset_by FROM schedules s WHERE s.id = jobs.schedule_id), 0)) ELSE 253339228800000000 END,
                due_at = CASE WHEN limit_set_id IS NOT NULL THEN max(:now, slot_at + coalesce((SELECT offset_by FROM schedules s WHERE s.id = jobs.schedule_id), 0)) END
WHERE id IN (
    SELECT id FROM (
        SELECT j.id, f.places, row_number() OVER (PARTITION BY j.schedule_id ORDER BY j.id) AS place
        FROM freed f CROSS JOIN jobs j ON j.schedule_id = f.schedule_id AND j.run_at = 253370764800000000
        WHERE f.places > 0
    ) WHERE place <= places
)
RETURNING id;

-- name: plan_specs
UPDATE specs SET following_at = :following_at, planned = 1
WHERE id = :id AND next_at = :next_at AND NOT planned;

-- name: open_firings
-- Compare and set: the second scheduler finds that the spec has a later `next_at`, and opens nothing.
UPDATE specs SET next_at = :next_at, following_at = NULL, planned = :next_at IS NULL,
                 last_at = CASE WHEN :skip IS 'calendar' THEN last_at ELSE :slot_at END
WHERE id = :spec_id AND next_at = :expected;
INSERT INTO firings (spec_id, slot_at, since, combined, skip, note, previous_at)
SELECT :spec_id, :slot_at, :since, :combined, :skip, :note, :previous_at WHERE changes() > 0
ON CONFLICT DO NOTHING
RETURNING spec_id;

-- name: oldest_firing
-- The oldest firing of all is the oldest firing of its spec. The slots of a spec are fired in order, so that the second slot
-- sees the job of the first when it decides about overlap.
SELECT spec_id, slot_at, since, combined, skip, note, previous_at, last_id FROM firings ORDER BY slot_at, spec_id LIMIT 1;

-- name: burst
SELECT count(*) AS taken, max(id) AS last_id
FROM (SELECT id FROM schedules WHERE spec_id = :spec_id AND id > :last_id ORDER BY id LIMIT :limit);

-- name: write_ledger
-- The jobs get the ids after the last id given; a slot that is in the ledger already leaves a gap. A slot that is caught up
-- (misfire = 'all'), and a slot that comes while the job of such a slot is live (caught), is not skipped for overlap: it
-- waits. The newest missed slot (misfire = 'latest') waits too, unless a job waits already. With both policies, a slot also
-- waits if it came before the job of an earlier slot was made (passed): no scheduler ran at that time, perhaps only for
-- seconds.
WITH taken AS MATERIALIZED (
    SELECT s.*, :now - :slot_at > :missed_after AS missed, count(j.id) AS live, min(j.id) AS blocker,
           count(j.id) FILTER (WHERE j.worker_id = 0 AND j.run_at <> 253307692800000000) AS waiting,
           count(j.id) FILTER (WHERE j.run_at = 253370764800000000) AS held,
           count(j.id) FILTER (WHERE j.enqueued_at - j.slot_at > :missed_after) AS caught,
           -- Jobs of earlier slots that were made after this slot had come: the schedulers are late.
           count(j.id) FILTER (WHERE j.slot_at < :slot_at AND j.enqueued_at >= :slot_at) AS passed
    FROM schedules s LEFT JOIN jobs j ON j.schedule_id = s.id AND j.backfill_id IS NULL
    WHERE s.spec_id = :spec_id AND s.id > :last_id AND s.id <= :burst_end AND s.active_from < :slot_at
    GROUP BY s.id
), decided AS MATERIALIZED (
    SELECT *, CASE WHEN :skip <> 'breaker' THEN :skip
                   WHEN paused_at IS NOT NULL OR (:slot_at > last_paused_at AND :slot_at <= last_resumed_at) THEN 'paused'
                   WHEN fires_left <= 0 THEN 'exhausted'
                   WHEN misfire = 'skip' AND missed THEN 'misfire'
                   WHEN :now - :slot_at > catch_up THEN 'too_late'
                   WHEN :skip = 'breaker' OR (misfire = 'all' AND missed AND catch_up = 31536000000000000 AND (live >= :breaker OR (
                            -- A tripped breaker stays tripped for the missed slots while a job is live. Otherwise only
                            -- some of these slots would be left out.
                            live > 0 AND (
                            SELECT l.disposition = 1 AND l.reason IS 'breaker' FROM slots l
                            WHERE l.schedule_id = taken.id AND l.slot_at < :slot_at ORDER BY l.slot_at DESC LIMIT 1)))) THEN 'breaker'
                   WHEN skips > 0 AND skips > (SELECT count(*) FROM json_each(:combined) WHERE value > active_from) THEN 'requested'
                   WHEN live = 0 OR (misfire = 'all' AND (missed OR caught > 0 OR passed > 0 OR (held > 0 AND overlap <> 'queue_one')))
                        OR (misfire = 'latest' AND ((missed AND held = 0) OR passed > 0)) THEN NULL
                   WHEN overlap = 'skip' OR (overlap = 'queue_one' AND waiting > 0)
                        OR (overlap = 'allow' AND live >= overlap_limit) THEN 'overlap'
              END AS reason
    FROM taken
)
INSERT INTO slots (schedule_id, slot_at, decided_at, since, job_id, disposition, reason, blocker, note)
SELECT id, :slot_at, max(:now, :slot_at), CASE WHEN :since IS NOT NULL THEN max(:since, active_from + 1) END,
       CASE WHEN reason IS NULL THEN :last_job_id + row_number() OVER (ORDER BY id) END,
       reason IS NOT NULL, reason, CASE WHEN reason = 'overlap' THEN blocker END, :note
FROM decided
WHERE true
ORDER BY id
ON CONFLICT DO NOTHING
RETURNING schedule_id, job_id, reason;

-- name: names_of
SELECT id, name FROM schedules WHERE id IN (SELECT value FROM json_each(:ids)) ORDER BY id;

-- name: replaced_jobs
-- Live jobs whose schedule makes another job in this transaction and allows only one. Jobs of slots that are caught up are
-- not replaced.
SELECT j.id FROM schedules h
CROSS JOIN slots l ON l.schedule_id = h.id AND l.slot_at = :slot_at
CROSS JOIN jobs j ON j.schedule_id = h.id AND j.backfill_id IS NULL
WHERE h.spec_id = :spec_id AND h.id > :last_id AND h.id <= :burst_end AND h.overlap = 'replace' AND l.job_id > :last_job_id
  AND NOT (h.misfire = 'all' AND (:now - :slot_at > :missed_after OR EXISTS (
          SELECT 1 FROM jobs c WHERE c.schedule_id = h.id AND c.backfill_id IS NULL
             AND (c.enqueued_at - c.slot_at > :missed_after OR (c.slot_at < :slot_at AND c.enqueued_at >= :slot_at) OR c.run_at = 253370764800000000))));

-- name: fire
-- Jobs for exactly the ledger rows of this transaction: no other transaction can have ids after the last id.
INSERT INTO jobs (id, queue, task, priority, run_at, enqueued_at, max_attempts, payload, schedule_id, slot_at, limit_set_id, due_at, expires_at, previous_at)
SELECT h.job_id, h.queue, h.task, h.priority,
       CASE WHEN h.held THEN 253370764800000000
            WHEN h.limit_set_id IS NOT NULL THEN 253339228800000000
            ELSE h.slot_at + h.offset_by + CASE WHEN h.jitter > 0 THEN abs(random() % h.jitter) ELSE 0 END END,
       :now, h.max_attempts, h.payload, h.id, h.slot_at, h.limit_set_id,
       CASE WHEN h.limit_set_id IS NOT NULL
            THEN h.slot_at + h.offset_by + CASE WHEN h.jitter > 0 THEN abs(random() % h.jitter) ELSE 0 END END,
       h.slot_at + h.expires_after, :previous_at
FROM (
    SELECT s.*, l.slot_at, l.job_id,
           (s.overlap IN ('queue_one', 'queue_all') OR s.misfire IN ('all', 'latest')) AND (
               SELECT count(*) > 0 AND CASE
                          WHEN s.overlap IN ('queue_one', 'queue_all') THEN 1
                          WHEN s.misfire = 'latest'
                          THEN (:now - :slot_at > :missed_after OR count(*) FILTER (WHERE j.slot_at < :slot_at AND j.enqueued_at >= :slot_at) > 0)
                               AND (s.overlap = 'skip' OR (s.overlap = 'allow' AND count(*) >= s.overlap_limit))
                          WHEN s.overlap = 'allow' THEN count(*) >= s.overlap_limit OR count(*) FILTER (WHERE j.run_at = 253370764800000000) > 0
                          ELSE :now - :slot_at > :missed_after OR count(*) FILTER (
                              WHERE j.enqueued_at - j.slot_at > :missed_after OR (j.slot_at < :slot_at AND j.enqueued_at >= :slot_at)
                                 OR j.run_at = 253370764800000000) > 0
                      END
               FROM jobs j WHERE j.schedule_id = s.id AND j.backfill_id IS NULL) AS held
    FROM schedules s CROSS JOIN slots l ON l.schedule_id = s.id AND l.slot_at = :slot_at
    WHERE s.spec_id = :spec_id AND s.id > :last_id AND s.id <= :burst_end AND l.job_id > :last_job_id
) h
ORDER BY h.id;

-- name: count_down
-- For schedules that fired or skipped on request; most schedules have nothing to count. A request counts slots, not rows.
UPDATE schedules
SET fires_left = CASE WHEN skips > (SELECT count(*) FROM json_each(:combined) WHERE value > active_from) THEN fires_left ELSE fires_left - 1 END,
    skips = max(skips - 1 - (SELECT count(*) FROM json_each(:combined) WHERE value > active_from), 0)
WHERE id IN (SELECT value FROM json_each(:ids)) AND (skips > 0 OR fires_left IS NOT NULL);

-- name: forward_firing
UPDATE firings SET last_id = :burst_end WHERE spec_id = :spec_id AND slot_at = :slot_at;

-- name: close_firing
DELETE FROM firings WHERE spec_id = :spec_id AND slot_at = :slot_at;

-- name: overdue_specs
-- Specs with a slot that is due, and their open firings.
SELECT p.id, p.trigger, p.catch_up, p.next_at, p.following_at, p.planned, p.last_at, 0 AS tripped, p.next_at <= :now AS due,
       coalesce((SELECT max(s.skips) FROM schedules s WHERE s.spec_id = p.id AND s.skips > 0), 0) AS skips,
       f.slot_at, f.since, f.combined, f.skip, f.note, f.last_id, 9223372036854775807 AS until_id
FROM specs p LEFT JOIN firings f ON f.spec_id = p.id
WHERE p.id IN (SELECT value FROM json_each(:ids)) AND (p.next_at <= :now OR f.slot_at IS NOT NULL);

-- name: move_active
UPDATE schedules SET active_from = :moment WHERE id = :id;

-- name: next_due
-- A scheduler soon looks again at a firing that another scheduler left open.
SELECT min(wait) AS wait FROM (
    SELECT * FROM (
        SELECT max(next_at - :now, 0) AS wait FROM specs
        WHERE next_at IS NOT NULL AND id NOT IN (SELECT value FROM json_each(:beside))
        ORDER BY next_at
        LIMIT 1
    )
    UNION ALL
    SELECT 10000 WHERE EXISTS (SELECT 1 FROM firings)
);

-- name: moment
SELECT :now AS now;

-- name: undeclared_schedules
SELECT s.name FROM schedules s JOIN specs p ON p.id = s.spec_id
WHERE p.next_at IS NOT NULL AND s.name NOT IN (SELECT value FROM json_each(:declared)) ORDER BY s.name LIMIT :limit;

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

-- name: coming
SELECT s.name AS schedule, s.queue, s.task, p.next_at AS slot_at, s.paused_at IS NOT NULL AS paused
FROM specs p CROSS JOIN schedules s ON s.spec_id = p.id
WHERE p.next_at IS NOT NULL AND coalesce(s.fires_left, 1) > 0
ORDER BY p.next_at, p.id, s.id LIMIT :limit;
