-- name: waits
SELECT job_id, fence FROM mainspring.event_waits WHERE name = :name;

-- name: awaited
SELECT w.job_id, w.name FROM mainspring.event_waits w
WHERE w.job_id = ANY (:ids::bigint[])
  AND w.fence = (SELECT j.fence FROM mainspring.jobs j WHERE j.id = w.job_id AND j.worker_id = 0);

-- name: old_waits
-- A page of waits whose job has been claimed again, or is gone.
SELECT w.job_id, w.fence,
       (SELECT j.fence FROM mainspring.jobs j WHERE j.id = w.job_id AND j.worker_id = 0) IS NOT DISTINCT FROM w.fence AS stands
FROM mainspring.event_waits w WHERE w.job_id > :after ORDER BY w.job_id LIMIT :limit;
