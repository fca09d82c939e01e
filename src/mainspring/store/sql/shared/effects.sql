-- name: schema_version
SELECT coalesce(max(version), 0) AS version FROM mainspring.migrations;

-- name: step
SELECT value FROM mainspring.steps WHERE job_id = :job_id AND name = :name;

-- name: record_step
-- No row: the claim is no longer the job's, or another run has recorded the step meanwhile.
INSERT INTO mainspring.steps (job_id, name, value, done_at)
SELECT id, :name::text, :value::bytea, :now FROM mainspring.jobs
WHERE id = :job_id AND worker_id = :worker_id AND fence = :fence
ON CONFLICT DO NOTHING
RETURNING job_id;
