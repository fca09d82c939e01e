-- name: add_partitions
SELECT mainspring.add_partitions('runs', 'finished_at', (coalesce(:at::timestamptz, now()) AT TIME ZONE 'UTC')::date, 8)
     + mainspring.add_partitions('run_logs', 'finished_at', (coalesce(:at::timestamptz, now()) AT TIME ZONE 'UTC')::date, 8)
     + mainspring.add_partitions('slots', 'slot_at', (coalesce(:at::timestamptz, now()) AT TIME ZONE 'UTC')::date, 8) AS made;

-- name: prune_runs
-- Each day is a partition. The answer has a row for each dropped partition.
SELECT n FROM generate_series(1, mainspring.drop_partitions('runs', 'finished_at', :before::timestamptz)) n;

-- name: prune_logs
-- Each day is a partition. The answer has a row for each dropped partition.
SELECT n FROM generate_series(1, mainspring.drop_partitions('run_logs', 'finished_at', :before::timestamptz)) n;

-- name: prune_slots
-- Each day is a partition. The answer has a row for each dropped partition.
SELECT n FROM generate_series(1, mainspring.drop_partitions('slots', 'slot_at', :before::timestamptz)) n;

-- name: drop_keys
-- A key whose job has ended and whose period is over refuses no job. The statement has a limit of its own, because each
-- call also reads the keys that stay.
DELETE FROM mainspring.unique_keys k
WHERE k.ctid = ANY (ARRAY(
    SELECT old.ctid FROM mainspring.unique_keys old
    WHERE (old.until IS NULL OR old.until <= coalesce(:at::timestamptz, now()))
      AND (SELECT j.id FROM mainspring.jobs j WHERE j.id = old.job_id) IS NULL
    LIMIT 100000 FOR UPDATE SKIP LOCKED
));

-- name: prune_requests
DELETE FROM mainspring.requests
WHERE ctid = ANY (ARRAY(
    SELECT r.ctid FROM mainspring.requests r WHERE r.at < :before::timestamptz LIMIT :limit FOR UPDATE SKIP LOCKED
))
RETURNING key;
