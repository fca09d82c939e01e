-- name: limit_key_ids
-- Only a limit key that is as it is declared.
SELECT id FROM limit_keys
WHERE name = :name AND key = :key AND (concurrency, rate, period, burst, open_window) IS (:concurrency, :rate, :period, :burst, :open_window);

-- name: limit_set_ids
SELECT id FROM limit_sets WHERE limit_keys = :limit_keys;

-- name: put_limit_keys
-- The last declaration counts.
INSERT INTO limit_keys (name, key, concurrency, rate, period, burst, open_window)
VALUES (:name, :key, :concurrency, :rate, :period, :burst, :open_window)
ON CONFLICT (name, key) DO UPDATE
SET concurrency = excluded.concurrency, rate = excluded.rate, period = excluded.period, burst = excluded.burst,
    open_window = excluded.open_window
RETURNING id;

-- name: put_limit_sets
INSERT INTO limit_sets (limit_keys) VALUES (:limit_keys) ON CONFLICT (limit_keys) DO UPDATE SET limit_keys = excluded.limit_keys RETURNING id;

-- name: anybody_waits
-- This reads the index only. Where no limit is in use, admission reads nothing else.
SELECT EXISTS (SELECT 1 FROM jobs WHERE run_at = 253339228800000000 AND limit_set_id > 0) AS waits;

-- name: free_limit_holders
-- A job that has ended, or that waits for its limits again, holds no place. If a limit does not count running jobs, a
-- claimed job holds no place either.
DELETE FROM limit_holders
WHERE NOT EXISTS (
    SELECT 1 FROM jobs j WHERE j.id = limit_holders.job_id AND j.run_at < 253339228800000000
      AND (j.worker_id = 0 OR (SELECT g.concurrency FROM limit_keys g WHERE g.id = limit_holders.limit_key_id) IS NOT NULL)
);

-- name: waiting_limit_sets
-- This goes along the index from line to line, not from job to job.
WITH RECURSIVE line (id, seen) AS (
    SELECT (SELECT min(limit_set_id) FROM jobs WHERE run_at = 253339228800000000 AND limit_set_id > :after), 1
    UNION ALL
    SELECT (SELECT min(j.limit_set_id) FROM jobs j WHERE j.run_at = 253339228800000000 AND j.limit_set_id > line.id), line.seen + 1
    FROM line WHERE line.id IS NOT NULL AND line.seen < :limit
)
SELECT line.id, l.limit_keys FROM line JOIN limit_sets l ON l.id = line.id WHERE line.id IS NOT NULL ORDER BY line.id;

-- name: limit_keys
SELECT g.*, count(p.job_id) AS used, count(p.job_id) FILTER (WHERE j.worker_id = 0) AS unclaimed
FROM limit_keys g LEFT JOIN limit_holders p ON p.limit_key_id = g.id LEFT JOIN jobs j ON j.id = p.job_id
WHERE g.id IN (SELECT value FROM json_each(:ids))
GROUP BY g.id;

-- name: first_of_limit_set
SELECT id, priority FROM jobs
WHERE run_at = 253339228800000000 AND limit_set_id = :limit_set_id AND due_at <= :now
ORDER BY priority DESC, due_at, id LIMIT :limit;

-- name: admit_jobs
UPDATE jobs SET run_at = :now, due_at = NULL WHERE id IN (SELECT value FROM json_each(:ids)) AND run_at = 253339228800000000
RETURNING id;

-- name: add_limit_holders
INSERT INTO limit_holders (limit_key_id, job_id) VALUES (?, ?) ON CONFLICT DO NOTHING;

-- name: spend_tokens
UPDATE limit_keys SET tokens = ?, refilled_at = ? WHERE id = ?;

-- name: limit_sets_of_keys
SELECT DISTINCT l.id, l.limit_keys FROM limit_sets l, json_each('[' || l.limit_keys || ']') g
WHERE g.value IN (SELECT value FROM json_each(:limit_key_ids));

-- name: limit_key_holders
SELECT g.value AS limit_key_id, p.job_id FROM json_each(:limit_key_ids) g CROSS JOIN limit_holders p
WHERE p.limit_key_id = g.value AND p.job_id IN (
    SELECT h.job_id FROM limit_holders h JOIN jobs j ON j.id = h.job_id AND j.run_at < 253339228800000000
    WHERE h.limit_key_id = g.value ORDER BY h.job_id LIMIT :most
)
ORDER BY p.limit_key_id, p.job_id;
