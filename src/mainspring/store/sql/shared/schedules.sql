-- name: skip_slots
UPDATE mainspring.schedules SET skips = skips + :count, version = version + 1 WHERE name = :name RETURNING name;

-- name: delete_schedules
DELETE FROM mainspring.schedules WHERE id = ANY (:ids::bigint[]) RETURNING name;

-- name: pause_schedules
UPDATE mainspring.schedules
SET paused_at = :now, paused_by = :author, pause_note = :note, version = version + 1
WHERE name = ANY (:names::text[]) AND paused_at IS NULL
RETURNING name;

-- name: resume_schedules
-- The pause stays on record: slots of the pause that are not opened yet are not caught up. Slots from before the pause are.
UPDATE mainspring.schedules
SET last_paused_at = paused_at, last_resumed_at = :now,
    paused_at = NULL, paused_by = NULL, pause_note = NULL, version = version + 1
WHERE name = ANY (:names::text[]) AND paused_at IS NOT NULL
RETURNING name;

-- name: revert_schedules
UPDATE mainspring.schedules SET edited = false, version = version + 1 WHERE name = ANY (:names::text[]) AND edited RETURNING name;

-- name: due_specs
-- Tripped: for every schedule of the spec, the newest decision is one of the circuit breaker, and the schedule still has
-- live jobs. Skips: the highest number of slots that a schedule of the spec is asked to skip; only a missed slot needs it.
-- One more row without a spec has the moment, also if no spec is due.
SELECT * FROM (
SELECT id, trigger, catch_up, next_at, following_at, planned, last_at, :now AS now,
       catch_up = interval '365000 days' AND :now - next_at > :missed_after::interval AND NOT EXISTS (
           SELECT 1 FROM mainspring.schedules s WHERE s.spec_id = specs.id AND (
               (SELECT l.disposition = 1 AND l.reason = 'breaker' FROM mainspring.slots l
                WHERE l.schedule_id = s.id AND l.slot_at < specs.next_at ORDER BY l.slot_at DESC LIMIT 1) IS NOT TRUE
               -- A look-up, not NOT EXISTS: a join may read all live jobs for each spec.
               OR (SELECT j.id FROM mainspring.jobs j WHERE j.schedule_id = s.id AND j.backfill_id IS NULL LIMIT 1) IS NULL)
       ) AS tripped,
       CASE WHEN :now - next_at > :missed_after::interval
            THEN coalesce((SELECT max(s.skips) FROM mainspring.schedules s WHERE s.spec_id = specs.id AND s.skips > 0), 0) ELSE 0 END AS skips
FROM mainspring.specs
WHERE next_at <= :now AND id <> ALL (:beside::int[])
ORDER BY next_at
LIMIT :limit
) due
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, :now, NULL, NULL;

-- name: unplanned_specs
SELECT id, trigger, catch_up, next_at, following_at, planned, last_at, false AS tripped, 0 AS skips
FROM mainspring.specs
WHERE NOT planned AND next_at IS NOT NULL
ORDER BY id
LIMIT :limit;

-- name: slot_facts
-- A slot at the moment of a change belongs to the old version.
SELECT l.since, coalesce(l.disposition = 2, false) AS backfilled, coalesce(
    (SELECT v.definition FROM mainspring.schedule_versions v
     WHERE v.schedule_id = :schedule_id AND v.changed_at < :slot_at ORDER BY v.version DESC LIMIT 1),
    (SELECT v.definition FROM mainspring.schedule_versions v WHERE v.schedule_id = :schedule_id ORDER BY v.version LIMIT 1)) AS definition
FROM (SELECT 1) AS one LEFT JOIN mainspring.slots l ON l.schedule_id = :schedule_id AND l.slot_at = :slot_at;

-- name: schedules
SELECT s.*, p.trigger, p.next_at,
       (SELECT name FROM mainspring.queues WHERE id = s.queue_id) AS queue, (SELECT name FROM mainspring.tasks WHERE id = s.task_id) AS task
FROM mainspring.schedules s JOIN mainspring.specs p ON p.id = s.spec_id
WHERE :names::text[] IS NULL OR s.name = ANY (:names) ORDER BY s.name;

-- name: schedule_names
SELECT name FROM mainspring.schedules UNION SELECT name FROM mainspring.schedule_versions ORDER BY name;

-- name: versions
SELECT version, change, changed_at, author, note, definition FROM mainspring.schedule_versions
WHERE name = :name ORDER BY schedule_id, version;

-- name: slots
SELECT :schedule::text AS schedule, l.slot_at, l.disposition, l.reason, l.since, l.job_id, l.decided_at, l.blocker, l.note
FROM mainspring.slots l
WHERE l.schedule_id IN (SELECT id FROM mainspring.schedules WHERE name = :schedule
                        UNION SELECT schedule_id FROM mainspring.schedule_versions WHERE name = :schedule)
  AND (:before::timestamptz IS NULL OR l.slot_at < :before) AND (:start::timestamptz IS NULL OR l.slot_at >= :start)
ORDER BY l.slot_at DESC, l.schedule_id DESC LIMIT :limit;

-- name: slots_deleted
-- Rows with one slot each are counted here. A row that combines several slots has its two ends, from which the caller
-- computes the number.
SELECT v.name AS schedule, l.since, CASE WHEN l.since IS NULL THEN NULL ELSE l.slot_at END AS slot_at, count(*)::int AS rows
FROM mainspring.schedule_versions v JOIN mainspring.slots l ON l.schedule_id = v.schedule_id
WHERE v.name = ANY (:names) AND v.change = 'deleted' AND v.changed_at >= :since
  AND l.disposition = 1 AND l.reason = 'deleted' AND l.decided_at >= :since
GROUP BY 1, 2, 3
ORDER BY 1, 3;

-- name: name_of_schedule
SELECT coalesce(
    (SELECT name FROM mainspring.schedules WHERE id = :schedule_id),
    (SELECT name FROM mainspring.schedule_versions WHERE schedule_id = :schedule_id ORDER BY version DESC LIMIT 1)
) AS name;

-- name: schedule_counts
SELECT count(*)::int AS total, (count(*) FILTER (WHERE paused_at IS NOT NULL))::int AS paused, (count(*) FILTER (WHERE edited))::int AS edited,
       (count(*) FILTER (WHERE spec_id IN (SELECT p.id FROM mainspring.specs p WHERE p.next_at <= :now - :late::interval)))::int AS overdue,
       (count(*) FILTER (WHERE spec_id IN (SELECT p.id FROM mainspring.specs p WHERE p.next_at IS NULL)))::int AS ended,
       (SELECT min(p.next_at) FROM mainspring.specs p WHERE p.next_at <= :now) AS oldest_due_at
FROM (SELECT spec_id, paused_at, edited FROM mainspring.schedules ORDER BY name LIMIT :look) looked;
