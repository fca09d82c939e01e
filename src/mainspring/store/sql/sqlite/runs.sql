-- name: note_progress
-- With its fence, as all that a worker writes about a job. SQLite makes an index for each materialized table.
WITH w AS MATERIALIZED (SELECT key, value FROM json_each(:worker_ids)), f AS MATERIALIZED (SELECT key, value FROM json_each(:fences)),
     r AS MATERIALIZED (SELECT key, value FROM json_each(:fractions)), n AS MATERIALIZED (SELECT key, value FROM json_each(:notes))
INSERT INTO progress (job_id, fence, fraction, note, at)
SELECT j.id, j.fence, r.value, n.value, :now
FROM json_each(:job_ids) i CROSS JOIN jobs j ON j.id = i.value
CROSS JOIN w ON w.key = i.key AND w.value = j.worker_id CROSS JOIN f ON f.key = i.key AND f.value = j.fence
CROSS JOIN r ON r.key = i.key CROSS JOIN n ON n.key = i.key
WHERE true
ON CONFLICT (job_id) DO UPDATE SET fence = excluded.fence, fraction = excluded.fraction, note = excluded.note, at = excluded.at;

-- name: sweep_progress
DELETE FROM progress WHERE job_id IN (
    SELECT p.job_id FROM progress p
    WHERE p.at < :before AND NOT EXISTS (
        SELECT 1 FROM jobs j WHERE j.id = p.job_id AND j.fence = p.fence AND j.worker_id <> 0
    )
    LIMIT :limit
)
RETURNING job_id;

-- name: note_logs
INSERT INTO run_logs (job_id, finished_at, worker_id, fence, text) VALUES (:job_id, :now, :worker_id, :fence, :text);

-- name: drop_results
UPDATE runs SET result = X'' WHERE rowid IN (
    SELECT rowid FROM runs INDEXED BY runs_results WHERE result <> X'' AND finished_at < :before LIMIT :limit
)
RETURNING job_id;
