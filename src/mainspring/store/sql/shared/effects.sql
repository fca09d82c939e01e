-- name: schema_version
SELECT coalesce(max(version), 0) AS version FROM mainspring.migrations;

-- name: step
SELECT value FROM mainspring.steps WHERE job_id = :job_id AND name = :name;

-- name: record_step
-- No row means that the claim is no longer the job's, or that another run has recorded the step meanwhile.
INSERT INTO mainspring.steps (job_id, name, value, done_at)
SELECT id, :name::text, :value::bytea, :now FROM mainspring.jobs
WHERE id = :job_id AND worker_id = :worker_id AND fence = :fence
ON CONFLICT DO NOTHING
RETURNING job_id;

-- name: steps
-- All steps of one job, and the moment. A job without steps has one row with the moment only.
SELECT :now AS now, s.name, s.value, s.done_at
FROM (SELECT 1) AS one LEFT JOIN mainspring.steps s ON s.job_id = :job_id;

-- name: old_steps
-- The jobs of one page of old steps.
SELECT DISTINCT job_id FROM (
    SELECT job_id FROM mainspring.steps WHERE job_id > :after AND done_at < :before::timestamptz ORDER BY job_id LIMIT :limit
) page
ORDER BY job_id;

-- name: prune_steps
-- Of jobs that are not on record any more. `known` is the answer of `known_ids` for these jobs.
DELETE FROM mainspring.steps WHERE job_id = ANY (:job_ids::bigint[]) AND job_id <> ALL (:known::bigint[]) RETURNING job_id;
