-- name: prune_runs
DELETE FROM runs WHERE rowid IN (SELECT rowid FROM runs WHERE finished_at < :before LIMIT :limit)
RETURNING job_id;

-- name: prune_logs
DELETE FROM run_logs WHERE rowid IN (SELECT rowid FROM run_logs WHERE finished_at < :before LIMIT :limit)
RETURNING job_id;

-- name: prune_slots
DELETE FROM slots WHERE (schedule_id, slot_at) IN (SELECT schedule_id, slot_at FROM slots WHERE slot_at < :before LIMIT :limit)
RETURNING schedule_id;

-- name: drop_keys
-- A key whose job has ended and whose period is over refuses no job.
DELETE FROM unique_keys WHERE key IN (
    SELECT k.key FROM unique_keys k
    WHERE (k.until IS NULL OR k.until <= :now) AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.id = k.job_id)
    LIMIT :limit
)
RETURNING key;

-- name: prune_requests
DELETE FROM requests WHERE (caller, key) IN (SELECT caller, key FROM requests WHERE at < :before LIMIT :limit)
RETURNING key;
