-- name: add_backfill_slots
INSERT INTO backfill_slots (backfill_id, place, schedule_id, slot_at, version, seen_job_id)
VALUES (:backfill_id, :place, :schedule_id, :slot_at, :version, :seen_job_id);

-- name: next_job_id
-- Only one transaction writes at a time, so no other transaction takes the id after the highest id ever given.
SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'jobs'), 0) + 1 AS id;

-- name: backfills
SELECT b.*, count(s.place) AS slots, count(s.job_id) AS made, count(s.place) FILTER (WHERE s.done AND s.job_id IS NULL) AS left_alone,
       (SELECT count(*) FROM jobs j WHERE j.backfill_id = b.id) AS live
FROM (
    -- Active backfills of one schedule come first, so the limit never leaves them out.
    SELECT * FROM backfills WHERE (:id IS NULL OR id = :id) AND (:schedule IS NULL OR schedule = :schedule)
    ORDER BY :schedule IS NOT NULL AND ended_at IS NULL DESC, id DESC LIMIT :limit
) b
LEFT JOIN backfill_slots s ON s.backfill_id = b.id
GROUP BY b.id ORDER BY b.id DESC;
