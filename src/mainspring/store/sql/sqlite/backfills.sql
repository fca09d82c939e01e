-- name: add_backfill_slots
INSERT INTO backfill_slots (backfill_id, place, schedule_id, slot_at, version, seen_job_id) VALUES (?, ?, ?, ?, ?, ?);

-- name: take_backfill
SELECT id, max_active, author, (SELECT count(*) FROM jobs WHERE backfill_id = :id) AS live
FROM backfills WHERE id = :id AND ended_at IS NULL;

-- name: backfill_slot
-- The slot's row of the ledger, unless another job has been made of it since it was planned. Why it was
-- skipped at the time stays on record.
INSERT INTO slots AS l (schedule_id, slot_at, decided_at, job_id, disposition, note)
VALUES (:schedule_id, :slot_at, :now, :job_id, 2, :note)
ON CONFLICT (schedule_id, slot_at) DO UPDATE
SET decided_at = excluded.decided_at, job_id = excluded.job_id, disposition = 2,
    note = CASE WHEN l.note IS NULL THEN excluded.note ELSE l.note || ', ' || excluded.note END
WHERE l.job_id IS :seen_job_id
RETURNING job_id;

-- name: done_slot
UPDATE backfill_slots SET done = 1, job_id = :job_id WHERE backfill_id = :backfill_id AND place = :place;

-- name: backfills
SELECT b.*, count(s.place) AS slots, count(s.job_id) AS made, count(s.place) FILTER (WHERE s.done AND s.job_id IS NULL) AS left_alone,
       (SELECT count(*) FROM jobs j WHERE j.backfill_id = b.id) AS live
FROM (SELECT * FROM backfills WHERE :id IS NULL OR id = :id ORDER BY id DESC LIMIT :limit) b
LEFT JOIN backfill_slots s ON s.backfill_id = b.id
GROUP BY b.id ORDER BY b.id DESC;
