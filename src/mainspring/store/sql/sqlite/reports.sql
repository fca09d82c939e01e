-- name: note_progress
-- [job, worker, fence, fraction, note]: fenced, as everything a worker writes about a job.
INSERT INTO progress (job_id, fence, fraction, note, at)
SELECT j.id, j.fence, json_extract(n.value, '$[3]'), json_extract(n.value, '$[4]'), :now
FROM json_each(:notes) n CROSS JOIN jobs j ON j.id = json_extract(n.value, '$[0]')
WHERE j.worker_id = json_extract(n.value, '$[1]') AND j.fence = json_extract(n.value, '$[2]')
ON CONFLICT (job_id) DO UPDATE SET fence = excluded.fence, fraction = excluded.fraction, note = excluded.note, at = excluded.at;

-- name: progress
-- Only of the claim that stands: what an earlier run said is no longer so.
SELECT p.fraction, p.note, p.at FROM progress p CROSS JOIN jobs j ON j.id = p.job_id
WHERE p.job_id = :job_id AND j.worker_id <> 0 AND j.fence = p.fence;

-- name: sweep_progress
DELETE FROM progress WHERE job_id IN (
    SELECT p.job_id FROM progress p
    WHERE p.at < :before AND NOT EXISTS (
        SELECT 1 FROM jobs j WHERE j.id = p.job_id AND j.fence = p.fence AND j.worker_id <> 0
    )
    LIMIT :limit
);

-- name: note_logs
INSERT INTO run_logs (job_id, finished_at, worker_id, fence, text) VALUES (:job_id, :now, :worker_id, :fence, :text);

-- name: drop_results
UPDATE runs SET result = X'' WHERE rowid IN (
    SELECT rowid FROM runs INDEXED BY runs_results WHERE result <> X'' AND finished_at < :before LIMIT :limit
);

-- name: endings
-- Later rows win where they are gathered, so the last word comes last.
SELECT job_id AS id, verdict, result, NULL AS errors, NULL AS reason, finished_at
FROM runs WHERE job_id IN (SELECT value FROM json_each(:ids)) AND verdict IN (0, 5)
UNION ALL
SELECT id, 2, NULL, errors, reason, 9223372036854775807 FROM dead_jobs WHERE id IN (SELECT value FROM json_each(:ids))
ORDER BY 6;
