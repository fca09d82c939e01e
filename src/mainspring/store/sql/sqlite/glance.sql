-- name: running
SELECT j.id, j.queue, j.task, j.failures, j.max_attempts, j.worker_id, j.claimed_at, p.fraction, p.note
FROM (SELECT * FROM jobs WHERE worker_id <> 0 ORDER BY claimed_at, id LIMIT :limit) j
LEFT JOIN progress p ON p.job_id = j.id AND p.fence = j.fence
ORDER BY j.claimed_at, j.id;
