-- name: running
SELECT j.id, j.queue, j.task, j.failures, j.max_attempts, j.worker_id, j.claimed_at, p.fraction, p.note
FROM (SELECT * FROM jobs WHERE worker_id <> 0 ORDER BY claimed_at, id LIMIT :limit) j
LEFT JOIN progress p ON p.job_id = j.id AND p.fence = j.fence
ORDER BY j.claimed_at, j.id;

-- name: coming
SELECT s.name, s.queue, s.task, p.next_at, s.paused_at IS NOT NULL AS paused
FROM specs p CROSS JOIN schedules s ON s.spec_id = p.id
WHERE p.next_at IS NOT NULL AND coalesce(s.fires_left, 1) > 0
ORDER BY p.next_at, p.id, s.id LIMIT :limit;
