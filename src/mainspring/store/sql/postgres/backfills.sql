-- name: add_backfill_slots
INSERT INTO mainspring.backfill_slots (backfill_id, place, schedule_id, slot_at, version, seen_job_id)
SELECT :backfill_id, n.place, n.schedule_id, n.slot_at, n.version, n.seen_job_id
FROM unnest(:place::int[], :schedule_id::bigint[], :slot_at::timestamptz[], :version::int[], :seen_job_id::bigint[])
  AS n (place, schedule_id, slot_at, version, seen_job_id);

-- name: next_job_id
SELECT nextval('mainspring.job_ids') AS id;

-- name: backfills
SELECT b.*, n.slots, n.made, n.left_alone, (SELECT count(*) FROM mainspring.jobs j WHERE j.backfill_id = b.id)::int AS live
FROM (
    -- Active backfills of one schedule come first, so the limit never leaves them out.
    SELECT * FROM mainspring.backfills WHERE (:id::bigint IS NULL OR id = :id) AND (:schedule::text IS NULL OR schedule = :schedule)
    ORDER BY :schedule::text IS NOT NULL AND ended_at IS NULL DESC, id DESC LIMIT :limit
) b
CROSS JOIN LATERAL (
    SELECT count(*)::int AS slots, count(s.job_id)::int AS made, (count(*) FILTER (WHERE s.done AND s.job_id IS NULL))::int AS left_alone
    FROM mainspring.backfill_slots s WHERE s.backfill_id = b.id
) n
ORDER BY b.id DESC;
