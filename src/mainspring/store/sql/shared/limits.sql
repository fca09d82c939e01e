-- name: all_gates
SELECT id FROM mainspring.gates WHERE (:name::text IS NULL OR name = :name) AND (:key::text IS NULL OR key = :key)
  AND (name, key) > (:after_name, :after_key)
ORDER BY name, key LIMIT :limit;

-- name: gates_of_job
SELECT l.gates FROM mainspring.jobs j JOIN mainspring.lines l ON l.id = j.line_id WHERE j.id = :id;

-- name: count_waiting
SELECT l.line_id, (SELECT count(*) FROM (
    SELECT 1 FROM mainspring.jobs j
    WHERE j.run_at = timestamptz '9998-01-01 00:00:00+00' AND j.line_id = l.line_id LIMIT :most) w)::int AS waiting
FROM unnest(:line_ids::int[]) AS l (line_id);
