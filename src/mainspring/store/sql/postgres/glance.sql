-- name: running
-- Nothing indexes who holds a job (it would end HOT updates), but claims take each lane from its head.
SELECT j.id, j.queue_id, j.task_id, j.failures, j.max_attempts, j.worker_id, j.claimed_at, p.fraction, p.note
FROM (
    SELECT held.* FROM mainspring.lanes l
    CROSS JOIN LATERAL (
        SELECT head.id, head.queue_id, head.task_id, head.failures, head.max_attempts, head.worker_id, head.claimed_at, head.fence
        FROM (
            SELECT * FROM mainspring.jobs
            WHERE queue_id = l.queue_id AND priority = l.priority
            ORDER BY run_at, id + 0
            LIMIT :look
        ) head
        WHERE head.worker_id <> 0
    ) held
    ORDER BY held.claimed_at, held.id
    LIMIT :limit
) j
LEFT JOIN LATERAL (
    SELECT fraction, note FROM mainspring.progress WHERE job_id = j.id AND fence = j.fence LIMIT 1
) p ON true
ORDER BY j.claimed_at, j.id;
