-- name: put_spec
INSERT INTO specs (trigger, next_at, following_at, planned)
VALUES (:trigger, :next_at, :following_at, 1)
ON CONFLICT (trigger) DO NOTHING;

-- name: put_schedule
-- A new trigger starts a new life; a change of arguments must not cost the slots still to be caught up.
INSERT INTO schedules AS s (name, spec_id, task, queue, priority, max_attempts, payload, misfire, catch_up, active_from)
SELECT :name, id, :task, :queue, :priority, :max_attempts, :payload, :misfire, :catch_up, :now
FROM specs WHERE trigger = :trigger
ON CONFLICT (name) DO UPDATE SET
    spec_id = excluded.spec_id, task = excluded.task, queue = excluded.queue, priority = excluded.priority,
    max_attempts = excluded.max_attempts, payload = excluded.payload, misfire = excluded.misfire, catch_up = excluded.catch_up,
    version = s.version + 1,
    active_from = CASE WHEN s.spec_id = excluded.spec_id THEN s.active_from ELSE excluded.active_from END
WHERE (s.spec_id, s.task, s.queue, s.priority, s.max_attempts, s.payload, s.misfire, s.catch_up)
   <> (excluded.spec_id, excluded.task, excluded.queue, excluded.priority, excluded.max_attempts, excluded.payload,
       excluded.misfire, excluded.catch_up)
RETURNING name;

-- name: due_specs
SELECT id, trigger, next_at, following_at, planned
FROM specs
WHERE next_at <= :now
ORDER BY next_at, id
LIMIT :limit;

-- name: unplanned_specs
SELECT id, trigger, next_at, following_at, planned
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
INSERT INTO fires (spec_id, slot_at, since) VALUES (:spec_id, :slot_at, :since) ON CONFLICT DO NOTHING;

-- name: oldest_fire
SELECT spec_id, slot_at, since, last_id FROM fires ORDER BY slot_at, spec_id LIMIT 1;

-- name: herd
SELECT count(*) AS taken, max(id) AS last_id
FROM (SELECT id FROM schedules WHERE spec_id = :spec_id AND id > :last_id ORDER BY id LIMIT :limit);

-- name: write_ledger
-- Numbers the jobs from the last id given; a slot that is in the ledger already leaves a gap.
INSERT INTO slots (schedule_id, slot_at, decided_at, since, job_id, disposition, reason)
SELECT id, :slot_at, :now,
       CASE WHEN :since IS NOT NULL THEN max(:since, active_from) END,
       CASE WHEN :now - :slot_at <= catch_up THEN :last_job_id + row_number() OVER (ORDER BY id) END,
       CASE WHEN :now - :slot_at <= catch_up THEN 0 ELSE 1 END,
       CASE WHEN :now - :slot_at <= catch_up THEN NULL ELSE 'misfire' END
FROM schedules
WHERE spec_id = :spec_id AND id > :last_id AND id <= :herd_end AND active_from < :slot_at
ORDER BY id
ON CONFLICT DO NOTHING;

-- name: fire
-- Jobs for exactly the ledger rows of this transaction: nobody else can have ids after the last.
INSERT INTO jobs (id, queue, task, priority, run_at, enqueued_at, max_attempts, payload, schedule_id, slot_at)
SELECT l.job_id, h.queue, h.task, h.priority, l.slot_at, :now, h.max_attempts, h.payload, h.id, l.slot_at
FROM schedules h CROSS JOIN slots l ON l.schedule_id = h.id AND l.slot_at = :slot_at
WHERE h.spec_id = :spec_id AND h.id > :last_id AND h.id <= :herd_end AND l.job_id > :last_job_id
ORDER BY h.id;

-- name: forward_fire
UPDATE fires SET last_id = :herd_end WHERE spec_id = :spec_id AND slot_at = :slot_at;

-- name: close_fire
DELETE FROM fires WHERE spec_id = :spec_id AND slot_at = :slot_at;

-- name: next_due
SELECT max(min(next_at) - :now, 0) AS wait FROM specs WHERE next_at IS NOT NULL;
