-- name: put_limit_keys
-- The last declaration counts. A limit key that is the same already is not written, and its row is not locked.
INSERT INTO mainspring.limit_keys AS g (name, key, concurrency, rate, period, burst, open_window)
SELECT * FROM unnest(:names::text[], :keys::text[], :concurrencies::int[], :rates::int[], :periods::interval[], :bursts::int[],
                     :windows::int[]) AS new (name, key, concurrency, rate, period, burst, open_window)
WHERE (SELECT (o.concurrency, o.rate, o.period, o.burst, o.open_window)
              IS NOT DISTINCT FROM (new.concurrency, new.rate, new.period, new.burst, new.open_window)
       FROM mainspring.limit_keys o WHERE o.name = new.name AND o.key = new.key) IS NOT TRUE
ON CONFLICT (name, key) DO UPDATE
SET concurrency = excluded.concurrency, rate = excluded.rate, period = excluded.period, burst = excluded.burst,
    open_window = excluded.open_window
WHERE (g.concurrency, g.rate, g.period, g.burst, g.open_window)
      IS DISTINCT FROM (excluded.concurrency, excluded.rate, excluded.period, excluded.burst, excluded.open_window);

-- name: limit_key_ids
SELECT id, name, key FROM mainspring.limit_keys WHERE name = ANY (:names::text[]) AND key = ANY (:keys::text[]);

-- name: put_limit_sets
INSERT INTO mainspring.limit_sets (limit_keys)
SELECT limit_keys FROM unnest(:limit_keys::text[]) AS new (limit_keys)
WHERE (SELECT o.id FROM mainspring.limit_sets o WHERE o.limit_keys = new.limit_keys) IS NULL
ON CONFLICT DO NOTHING;

-- name: limit_set_ids
SELECT id, limit_keys FROM mainspring.limit_sets WHERE limit_keys = ANY (:limit_keys::text[]);

-- name: anybody_waits
-- This reads the index only. Where no limit is in use, admission reads nothing else.
SELECT EXISTS (SELECT 1 FROM mainspring.jobs WHERE run_at = timestamptz '9998-01-01 00:00:00+00') AS waits;

-- name: lock_limit_keys
-- One pass at a time: two passes would use the same free places. A process that stops in the middle of a pass blocks all
-- other processes. So the server ends such a session sooner than any other session.
SELECT pg_try_advisory_xact_lock(6147001, 1) AS ours, set_config('idle_in_transaction_session_timeout', '5s', true) AS patience;

-- name: free_limit_holders
-- A job that has ended, or that waits for its limits again, holds no place. If a limit does not count running jobs, a
-- claimed job holds no place either. A job is found by its id alone, and its run_at is checked after that. With run_at
-- among the conditions, a plan that was made for an empty queue would read the whole queue for every place.
DELETE FROM mainspring.limit_holders p
WHERE (SELECT j.run_at < timestamptz '9998-01-01 00:00:00+00'
              AND (j.worker_id = 0 OR (SELECT g.concurrency FROM mainspring.limit_keys g WHERE g.id = p.limit_key_id) IS NOT NULL)
       FROM mainspring.jobs j WHERE j.id = p.job_id) IS NOT TRUE;

-- name: waiting_limit_sets
-- This goes along the index from line to line, not from job to job.
WITH RECURSIVE line (id, seen) AS (
    (SELECT limit_set_id, 1 FROM mainspring.jobs
     WHERE run_at = timestamptz '9998-01-01 00:00:00+00' AND limit_set_id > :after ORDER BY limit_set_id LIMIT 1)
    UNION ALL
    SELECT (SELECT j.limit_set_id FROM mainspring.jobs j
            WHERE j.run_at = timestamptz '9998-01-01 00:00:00+00' AND j.limit_set_id > line.id ORDER BY j.limit_set_id LIMIT 1), line.seen + 1
    FROM line WHERE line.id IS NOT NULL AND line.seen < :limit
)
SELECT id, (SELECT l.limit_keys FROM mainspring.limit_sets l WHERE l.id = line.id) AS limit_keys FROM line WHERE id IS NOT NULL;

-- name: limit_keys
SELECT g.*, u.used, u.unclaimed FROM mainspring.limit_keys g
CROSS JOIN LATERAL (
    SELECT count(*)::int AS used,
           (count(*) FILTER (WHERE (SELECT j.worker_id FROM mainspring.jobs j WHERE j.id = p.job_id) = 0))::int AS unclaimed
    FROM mainspring.limit_holders p WHERE p.limit_key_id = g.id
) u
WHERE g.id = ANY (:ids::int[]);

-- name: first_of_limit_set
SELECT l.limit_set_id, f.id, f.priority FROM unnest(:limit_set_ids::int[], :limits::int[]) AS l (limit_set_id, most)
CROSS JOIN LATERAL (
    SELECT j.id, j.priority, j.due_at FROM mainspring.jobs j
    WHERE j.run_at = timestamptz '9998-01-01 00:00:00+00' AND j.limit_set_id = l.limit_set_id AND j.due_at <= coalesce(:at::timestamptz, now())
    ORDER BY j.priority DESC, j.due_at, j.id LIMIT l.most
) f
ORDER BY l.limit_set_id, f.priority DESC, f.due_at, f.id;

-- name: admit_jobs
-- The jobs are due from now on. With an earlier moment they would come before jobs that workers have claimed already, and
-- workers would find them late. IS TRUE keeps the planner from the index of all jobs that wait.
UPDATE mainspring.jobs SET run_at = coalesce(:at::timestamptz, now()), due_at = NULL
WHERE id = ANY (:ids::bigint[]) AND (run_at = timestamptz '9998-01-01 00:00:00+00') IS TRUE
RETURNING id;

-- name: add_limit_holders
INSERT INTO mainspring.limit_holders (limit_key_id, job_id)
SELECT * FROM unnest(:limit_key_ids::int[], :job_ids::bigint[]) ON CONFLICT DO NOTHING;

-- name: spend_tokens
UPDATE mainspring.limit_keys
SET tokens = (:tokens::float8[])[width_bucket(id, :ids::int[])], refilled_at = (:refilled_ats::timestamptz[])[width_bucket(id, :ids::int[])]
WHERE id = ANY (:ids::int[]);

-- name: limit_sets_of_keys
SELECT id, limit_keys FROM mainspring.limit_sets WHERE string_to_array(limit_keys, ',')::int[] && :limit_key_ids::int[];

-- name: limit_key_holders
SELECT p.limit_key_id, p.job_id FROM unnest(:limit_key_ids::int[]) AS g (id)
CROSS JOIN LATERAL (
    SELECT h.limit_key_id, h.job_id FROM mainspring.limit_holders h
    WHERE h.limit_key_id = g.id
      AND (SELECT j.run_at < timestamptz '9998-01-01 00:00:00+00' FROM mainspring.jobs j WHERE j.id = h.job_id)
    ORDER BY h.job_id LIMIT :most
) p;
