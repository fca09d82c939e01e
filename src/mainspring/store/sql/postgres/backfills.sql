-- name: add_backfill_slots
INSERT INTO mainspring.backfill_slots (backfill_id, place, schedule_id, slot_at, version, seen_job_id)
SELECT :backfill_id, n.place, n.schedule_id, n.slot_at, n.version, n.seen_job_id
FROM unnest(:schedule_ids::bigint[], :slot_ats::timestamptz[], :versions::int[], :seen_job_ids::bigint[])
  WITH ORDINALITY AS n (schedule_id, slot_at, version, seen_job_id, place);

-- name: take_backfill
-- One scheduler at a time: two would both find the same room.
SELECT id, max_active, author, (SELECT count(*) FROM mainspring.jobs j WHERE j.backfill_id = :id)::int AS live
FROM mainspring.backfills WHERE id = :id AND ended_at IS NULL
FOR UPDATE SKIP LOCKED;

-- name: backfill_slot
-- The slot's row of the ledger, unless another job has been made of it since it was planned. Why it was
-- skipped at the time stays on record.
INSERT INTO mainspring.slots AS l (schedule_id, slot_at, decided_at, job_id, disposition, note)
VALUES (:schedule_id, :slot_at, coalesce(:at::timestamptz, now()), :job_id, 2, :note)
ON CONFLICT (schedule_id, slot_at) DO UPDATE
SET decided_at = excluded.decided_at, job_id = excluded.job_id, disposition = 2, note = concat_ws(', ', l.note, excluded.note)
WHERE l.job_id IS NOT DISTINCT FROM :seen_job_id
RETURNING job_id;

-- name: done_slot
UPDATE mainspring.backfill_slots SET done = true, job_id = :job_id WHERE backfill_id = :backfill_id AND place = :place;

-- name: backfills
SELECT b.*, n.slots, n.made, n.left_alone, (SELECT count(*) FROM mainspring.jobs j WHERE j.backfill_id = b.id)::int AS live
FROM (SELECT * FROM mainspring.backfills WHERE :id::bigint IS NULL OR id = :id ORDER BY id DESC LIMIT :limit) b
CROSS JOIN LATERAL (
    SELECT count(*)::int AS slots, count(s.job_id)::int AS made, (count(*) FILTER (WHERE s.done AND s.job_id IS NULL))::int AS left_alone
    FROM mainspring.backfill_slots s WHERE s.backfill_id = b.id
) n
ORDER BY b.id DESC;
