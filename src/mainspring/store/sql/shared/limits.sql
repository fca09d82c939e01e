-- name: all_limit_keys
SELECT id FROM mainspring.limit_keys WHERE (:name::text IS NULL OR name = :name) AND (:key::text IS NULL OR key = :key)
  AND (name, key) > (:after_name, :after_key)
ORDER BY name, key LIMIT :limit;

-- name: limit_keys_of_job
SELECT l.limit_keys FROM mainspring.jobs j JOIN mainspring.limit_sets l ON l.id = j.limit_set_id WHERE j.id = :id;

-- name: count_waiting
SELECT l.limit_set_id, (SELECT count(*) FROM (
    SELECT 1 FROM mainspring.jobs j
    WHERE j.run_at = timestamptz '9998-01-01 00:00:00+00' AND j.limit_set_id = l.limit_set_id LIMIT :most) w)::int AS waiting
FROM unnest(:limit_set_ids::int[]) AS l (limit_set_id);
