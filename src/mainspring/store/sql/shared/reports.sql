-- name: run_logs
SELECT worker_id, fence, finished_at, text FROM mainspring.run_logs WHERE job_id = :job_id ORDER BY finished_at, fence;
