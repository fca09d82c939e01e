-- name: holding
SELECT holding FROM mainspring.members WHERE id = :id;

-- name: jobs_of_key
SELECT job_id FROM mainspring.unique_keys WHERE name = :name ORDER BY job_id DESC LIMIT :limit;

-- name: schedule_ids
-- Also of schedules of that name that were deleted.
SELECT id FROM mainspring.schedules WHERE name = :name UNION SELECT schedule_id FROM mainspring.schedule_versions WHERE name = :name
ORDER BY id DESC LIMIT :limit;

-- name: live_by_id
SELECT *, CASE WHEN worker_id <> 0 OR run_at = timestamptz '9997-01-01 00:00:00+00' THEN 'running' WHEN run_at > :now THEN 'delayed' ELSE 'ready' END AS state
FROM mainspring.jobs WHERE id = ANY (:ids::bigint[]) ORDER BY id DESC;
