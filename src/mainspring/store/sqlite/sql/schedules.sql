-- name: put_spec
INSERT INTO specs (trigger, catch_up, next_at, following_at, planned)
VALUES (:trigger, :spec_catch_up, :next_at, :following_at, 1)
ON CONFLICT (trigger, catch_up) DO NOTHING;

-- name: put_schedule
-- A new trigger starts a new life; a change of arguments must not cost the slots still to be caught up.
INSERT INTO schedules AS s (name, spec_id, task, queue, priority, max_attempts, payload, misfire, catch_up,
                            overlap, overlap_limit, offset_by, jitter, max_fires, fires_left, edited, active_from, line_id,
                            expires_after, expect_start_within, expect_finish_by)
SELECT :name, id, :task, :queue, :priority, :max_attempts, :payload, :misfire, :catch_up,
       :overlap, :overlap_limit, :offset_by, :jitter, :max_fires, :max_fires, :by_hand, :now, :line_id, :expires_after,
       :expect_start_within, :expect_finish_by
FROM specs WHERE trigger = :trigger AND catch_up = :spec_catch_up
ON CONFLICT (name) DO UPDATE SET
    spec_id = excluded.spec_id, task = excluded.task, queue = excluded.queue, priority = excluded.priority,
    max_attempts = excluded.max_attempts, payload = excluded.payload, misfire = excluded.misfire, catch_up = excluded.catch_up,
    overlap = excluded.overlap, overlap_limit = excluded.overlap_limit, offset_by = excluded.offset_by, jitter = excluded.jitter,
    max_fires = excluded.max_fires, line_id = CASE WHEN :keep_line THEN s.line_id ELSE excluded.line_id END,
    expires_after = excluded.expires_after,
    expect_start_within = excluded.expect_start_within, expect_finish_by = excluded.expect_finish_by,
    fires_left = CASE WHEN s.max_fires IS excluded.max_fires THEN s.fires_left ELSE excluded.max_fires END,
    edited = excluded.edited, version = s.version + 1,
    active_from = CASE WHEN s.spec_id = excluded.spec_id THEN s.active_from ELSE excluded.active_from END
WHERE (excluded.edited OR NOT s.edited)
  AND (s.spec_id, s.task, s.queue, s.priority, s.max_attempts, s.payload, s.misfire, s.catch_up, s.overlap, s.overlap_limit,
       s.offset_by, s.jitter, s.max_fires, s.line_id, s.expires_after, s.expect_start_within, s.expect_finish_by)
   IS NOT
      (excluded.spec_id, excluded.task, excluded.queue, excluded.priority, excluded.max_attempts, excluded.payload,
       excluded.misfire, excluded.catch_up, excluded.overlap, excluded.overlap_limit, excluded.offset_by, excluded.jitter,
       excluded.max_fires, CASE WHEN :keep_line THEN s.line_id ELSE excluded.line_id END, excluded.expires_after,
       excluded.expect_start_within, excluded.expect_finish_by)
RETURNING name;

-- name: add_version
-- The schedule as it now stands, in the same transaction as the change.
INSERT INTO schedule_versions (schedule_id, version, name, change, changed_at, author, note, definition)
VALUES (:schedule_id, :version, :name, :change, :now, :author, :note, :definition);

-- name: pause_schedules
UPDATE schedules SET paused_at = :now, paused_by = :author, pause_note = :note, version = version + 1
WHERE name IN (SELECT value FROM json_each(:names)) AND paused_at IS NULL
RETURNING name;

-- name: resume_schedules
-- The pause is remembered: its slots that nobody has opened yet are not caught up, and those before it are.
UPDATE schedules
SET last_paused_at = paused_at, last_resumed_at = :now, paused_at = NULL, paused_by = NULL, pause_note = NULL, version = version + 1
WHERE name IN (SELECT value FROM json_each(:names)) AND paused_at IS NOT NULL
RETURNING name;

-- name: hand_back_schedules
UPDATE schedules SET edited = 0, version = version + 1
WHERE name IN (SELECT value FROM json_each(:names)) AND edited
RETURNING name;

-- name: skip_slots
UPDATE schedules SET skips = skips + :count, version = version + 1 WHERE name = :name RETURNING name;

-- name: trigger_schedule
INSERT INTO jobs (queue, task, priority, run_at, enqueued_at, max_attempts, payload, schedule_id, line_id, due_at, expires_at)
SELECT queue, task, priority, CASE WHEN line_id IS NULL THEN :now ELSE 253339228800000000 END, :now, max_attempts, payload, id, line_id,
       CASE WHEN line_id IS NOT NULL THEN :now END, :now + expires_after
FROM schedules WHERE name = :name
RETURNING id;

-- name: delete_schedules
DELETE FROM schedules WHERE id IN (SELECT value FROM json_each(:ids)) RETURNING name;

-- name: release_held
-- Not before its own place in the window: what it waited for may have ended early.
UPDATE jobs SET run_at = CASE WHEN line_id IS NULL THEN max(:now, slot_at + coalesce((SELECT offset_by FROM schedules s WHERE s.id = jobs.schedule_id), 0)) ELSE 253339228800000000 END,
                due_at = CASE WHEN line_id IS NOT NULL THEN max(:now, slot_at + coalesce((SELECT offset_by FROM schedules s WHERE s.id = jobs.schedule_id), 0)) END
WHERE id IN (
    SELECT first.id FROM (
        SELECT schedule_id, min(id) AS id FROM jobs
        WHERE run_at = 253370764800000000 AND schedule_id IS NOT NULL GROUP BY schedule_id
    ) first
    WHERE NOT EXISTS (
        SELECT 1 FROM jobs live WHERE live.schedule_id = first.schedule_id AND live.backfill_id IS NULL AND live.run_at < 253370764800000000
    )
)
RETURNING id;

-- name: due_specs
SELECT id, trigger, catch_up, next_at, following_at, planned
FROM specs
WHERE next_at <= :now AND id NOT IN (SELECT value FROM json_each(:beside))
ORDER BY next_at, id
LIMIT :limit;

-- name: unplanned_specs
SELECT id, trigger, catch_up, next_at, following_at, planned
FROM specs
WHERE NOT planned AND next_at IS NOT NULL
ORDER BY id
LIMIT :limit;

-- name: plan_specs
UPDATE specs SET following_at = :following_at, planned = 1
WHERE id = :id AND next_at = :next_at AND NOT planned;

-- name: move_spec
-- Compare and set: whoever comes second finds that the spec has moved on, and opens nothing.
UPDATE specs SET next_at = :next_at, following_at = NULL, planned = :next_at IS NULL
WHERE id = :spec_id AND next_at = :expected;

-- name: open_fires
INSERT INTO fires (spec_id, slot_at, since, skip, note) VALUES (:spec_id, :slot_at, :since, :skip, :note)
ON CONFLICT DO NOTHING;

-- name: oldest_fire
-- The oldest of all is the oldest of its spec: a spec's slots are fired in order, so that the second
-- sees the first one's job when it decides about overlap.
SELECT spec_id, slot_at, since, skip, note, last_id FROM fires ORDER BY slot_at, spec_id LIMIT 1;

-- name: herd
SELECT count(*) AS taken, max(id) AS last_id
FROM (SELECT id FROM schedules WHERE spec_id = :spec_id AND id > :last_id ORDER BY id LIMIT :limit);

-- name: write_ledger
-- Numbers the jobs from the last id given; a slot that is in the ledger already leaves a gap.
WITH taken AS MATERIALIZED (
    SELECT s.*, count(j.id) AS live, count(j.id) FILTER (WHERE j.worker_id = 0 AND j.run_at <> 253307692800000000) AS waiting, min(j.id) AS blocker
    FROM schedules s LEFT JOIN jobs j ON j.schedule_id = s.id AND j.backfill_id IS NULL
    WHERE s.spec_id = :spec_id AND s.id > :last_id AND s.id <= :herd_end AND s.active_from < :slot_at
    GROUP BY s.id
), decided AS MATERIALIZED (
    SELECT *, CASE WHEN :skip IS NOT NULL THEN :skip
                   WHEN paused_at IS NOT NULL OR (:slot_at > last_paused_at AND :slot_at <= last_resumed_at) THEN 'paused'
                   WHEN fires_left <= 0 THEN 'exhausted'
                   WHEN skips > 0 THEN 'requested'
                   WHEN :now - :slot_at > catch_up OR (misfire = 'skip' AND :now - :slot_at > :missed_after) THEN 'misfire'
                   WHEN live = 0 THEN NULL
                   WHEN overlap = 'skip' OR (overlap = 'queue_one' AND waiting > 0)
                        OR (overlap = 'allow' AND live >= overlap_limit) THEN 'overlap'
              END AS reason
    FROM taken
)
INSERT INTO slots (schedule_id, slot_at, decided_at, since, job_id, disposition, reason, blocker, note)
SELECT id, :slot_at, :now, CASE WHEN :since IS NOT NULL THEN max(:since, active_from) END,
       CASE WHEN reason IS NULL THEN :last_job_id + row_number() OVER (ORDER BY id) END,
       reason IS NOT NULL, reason, CASE WHEN reason = 'overlap' THEN blocker END, :note
FROM decided
WHERE true
ORDER BY id
ON CONFLICT DO NOTHING
RETURNING schedule_id, job_id, reason;

-- name: replaced_jobs
-- Live jobs whose schedule makes another in this transaction and wants no two.
SELECT j.id FROM schedules h
CROSS JOIN slots l ON l.schedule_id = h.id AND l.slot_at = :slot_at
CROSS JOIN jobs j ON j.schedule_id = h.id AND j.backfill_id IS NULL
WHERE h.spec_id = :spec_id AND h.id > :last_id AND h.id <= :herd_end AND h.overlap = 'replace' AND l.job_id > :last_job_id;

-- name: fire
-- Jobs for exactly the ledger rows of this transaction: nobody else can have ids after the last.
INSERT INTO jobs (id, queue, task, priority, run_at, enqueued_at, max_attempts, payload, schedule_id, slot_at, line_id, due_at, expires_at)
SELECT l.job_id, h.queue, h.task, h.priority,
       CASE WHEN h.overlap IN ('queue_one', 'queue_all') AND EXISTS (SELECT 1 FROM jobs j WHERE j.schedule_id = h.id AND j.backfill_id IS NULL)
            THEN 253370764800000000
            WHEN h.line_id IS NOT NULL THEN 253339228800000000
            ELSE l.slot_at + h.offset_by + CASE WHEN h.jitter > 0 THEN abs(random() % h.jitter) ELSE 0 END END,
       :now, h.max_attempts, h.payload, h.id, l.slot_at, h.line_id,
       CASE WHEN h.line_id IS NOT NULL
            THEN l.slot_at + h.offset_by + CASE WHEN h.jitter > 0 THEN abs(random() % h.jitter) ELSE 0 END END,
       l.slot_at + h.expires_after
FROM schedules h CROSS JOIN slots l ON l.schedule_id = h.id AND l.slot_at = :slot_at
WHERE h.spec_id = :spec_id AND h.id > :last_id AND h.id <= :herd_end AND l.job_id > :last_job_id
ORDER BY h.id;

-- name: count_down
-- For schedules that fired or were asked to skip; most have nothing to count.
UPDATE schedules SET fires_left = CASE WHEN skips > 0 THEN fires_left ELSE fires_left - 1 END, skips = max(skips - 1, 0)
WHERE id IN (SELECT value FROM json_each(:ids)) AND (skips > 0 OR fires_left IS NOT NULL);

-- name: forward_fire
UPDATE fires SET last_id = :herd_end WHERE spec_id = :spec_id AND slot_at = :slot_at;

-- name: close_fire
DELETE FROM fires WHERE spec_id = :spec_id AND slot_at = :slot_at;

-- name: next_due
-- A fire that another scheduler left open is looked at again soon.
SELECT min(wait) AS wait FROM (
    SELECT * FROM (
        SELECT max(next_at - :now, 0) AS wait FROM specs
        WHERE next_at IS NOT NULL AND id NOT IN (SELECT value FROM json_each(:beside))
        ORDER BY next_at
        LIMIT 1
    )
    UNION ALL
    SELECT 10000 WHERE EXISTS (SELECT 1 FROM fires)
);
