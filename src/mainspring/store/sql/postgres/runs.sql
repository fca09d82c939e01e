-- name: note_progress
-- With its fence, as all that a worker writes about a job. The ids are sorted: see queue.sql.
INSERT INTO mainspring.progress (job_id, fence, fraction, note, at)
SELECT id, fence, (:fractions::float8[])[width_bucket(id, :job_ids::bigint[])], (:notes::text[])[width_bucket(id, :job_ids::bigint[])],
       coalesce(:at::timestamptz, now())
FROM mainspring.jobs
WHERE id = ANY (:job_ids::bigint[]) AND worker_id = (:worker_ids::bigint[])[width_bucket(id, :job_ids::bigint[])]
  AND fence = (:fences::int[])[width_bucket(id, :job_ids::bigint[])]
ON CONFLICT (job_id) DO UPDATE SET fence = excluded.fence, fraction = excluded.fraction, note = excluded.note, at = excluded.at;

-- name: sweep_progress
-- The limit makes the inner query a look-up by key. A row that is written meanwhile is new, and stays.
DELETE FROM mainspring.progress WHERE at < :before AND job_id = ANY (ARRAY(
    SELECT p.job_id FROM mainspring.progress p
    LEFT JOIN LATERAL (
        SELECT true AS is_so FROM mainspring.jobs j WHERE j.id = p.job_id AND j.fence = p.fence AND j.worker_id <> 0 LIMIT 1
    ) live ON true
    WHERE p.at < :before AND live.is_so IS NULL
    LIMIT :limit
))
RETURNING job_id;

-- name: note_logs
INSERT INTO mainspring.run_logs (job_id, finished_at, worker_id, fence, text)
SELECT n.job_id, coalesce(:at::timestamptz, now()), n.worker_id, n.fence, n.text
FROM unnest(:job_ids::bigint[], :worker_ids::bigint[], :fences::int[], :texts::text[]) AS n (job_id, worker_id, fence, text);

-- name: drop_results
-- An index of each day has the runs that still have results. The rows are then looked up by job.
UPDATE mainspring.runs SET result = ''::bytea
WHERE result <> ''::bytea AND finished_at < :before AND job_id = ANY (ARRAY(
    SELECT job_id FROM mainspring.runs WHERE result <> ''::bytea AND finished_at < :before ORDER BY finished_at LIMIT :limit
))
RETURNING job_id;
