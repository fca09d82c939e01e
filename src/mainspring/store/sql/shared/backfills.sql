-- name: add_backfill
INSERT INTO mainspring.backfills (schedule, start_at, end_at, author, max_active, reverse, reprocess, created_at)
VALUES (:schedule, :start_at, :end_at, :author, :max_active, :reverse, :reprocess, :now)
RETURNING id;

-- name: active_backfills
SELECT id FROM mainspring.backfills WHERE ended_at IS NULL ORDER BY id LIMIT :limit;

-- name: pending_slots
SELECT b.place, b.schedule_id, b.slot_at, b.version, b.seen_job_id,
       (SELECT v.definition FROM mainspring.schedule_versions v
        WHERE v.schedule_id = b.schedule_id AND v.version = b.version) AS definition
FROM mainspring.backfill_slots b
WHERE b.backfill_id = :backfill_id AND NOT b.done
ORDER BY b.place LIMIT :limit;

-- name: take_backfill
-- One scheduler at a time: two schedulers would use the same free places.
SELECT id, max_active, author, (SELECT count(*) FROM mainspring.jobs j WHERE j.backfill_id = :id)::int AS live
FROM mainspring.backfills WHERE id = :id AND ended_at IS NULL
FOR UPDATE SKIP LOCKED;

-- name: backfill_slot
-- The slot's row in the ledger, unless another job has been made for the slot since it was planned. The reason why the
-- slot was skipped stays on record.
INSERT INTO mainspring.slots AS l (schedule_id, slot_at, decided_at, job_id, disposition, note)
VALUES (:schedule_id, :slot_at, :now, :job_id, 2, :note)
ON CONFLICT (schedule_id, slot_at) DO UPDATE
SET decided_at = excluded.decided_at, job_id = excluded.job_id, disposition = 2, note = coalesce(l.note || ', ', '') || excluded.note
WHERE l.job_id IS NOT DISTINCT FROM :seen_job_id
RETURNING job_id;

-- name: done_slot
UPDATE mainspring.backfill_slots SET done = true, job_id = :job_id WHERE backfill_id = :backfill_id AND place = :place;

-- name: end_backfill
UPDATE mainspring.backfills SET ended_at = :now, cancelled_by = :cancelled_by
WHERE id = :id AND ended_at IS NULL
RETURNING id;

-- name: backfill_jobs
SELECT slot_at, job_id, seen_job_id FROM mainspring.backfill_slots
WHERE schedule_id = ANY (:schedule_ids::bigint[]) AND slot_at >= :start AND job_id IS NOT NULL;

-- name: add_backfill_job
INSERT INTO mainspring.jobs (id, queue_id, task_id, priority, run_at, enqueued_at, max_attempts, payload, schedule_id, slot_at, backfill_id,
                             limit_set_id, due_at, expires_at)
VALUES (:id, (SELECT id FROM mainspring.queues WHERE name = :queue), (SELECT id FROM mainspring.tasks WHERE name = :task), :priority,
        CASE WHEN :limit_set_id::int IS NULL THEN :now ELSE timestamptz '9998-01-01 00:00:00+00' END,
        :now, :max_attempts, :payload, :schedule_id, :slot_at, :backfill_id, :limit_set_id::int,
        CASE WHEN :limit_set_id::int IS NOT NULL THEN :now END,
        :now + :expires_after::interval);
