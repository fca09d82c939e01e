-- name: gate_ids
-- Where it is as declared.
SELECT id FROM gates
WHERE name = :name AND key = :key AND (concurrency, rate, period, burst, open_window) IS (:concurrency, :rate, :period, :burst, :open_window);

-- name: line_ids
SELECT id FROM lines WHERE gates = :gates;

-- name: put_gates
-- What was declared last counts.
INSERT INTO gates (name, key, concurrency, rate, period, burst, open_window)
VALUES (:name, :key, :concurrency, :rate, :period, :burst, :open_window)
ON CONFLICT (name, key) DO UPDATE
SET concurrency = excluded.concurrency, rate = excluded.rate, period = excluded.period, burst = excluded.burst,
    open_window = excluded.open_window
RETURNING id;

-- name: put_lines
INSERT INTO lines (gates) VALUES (:gates) ON CONFLICT (gates) DO UPDATE SET gates = excluded.gates RETURNING id;

-- name: anybody_waits
-- By the index alone, and nothing else where no limit is in use.
SELECT EXISTS (SELECT 1 FROM jobs WHERE run_at = 253339228800000000 AND line_id > 0) AS waits;

-- name: free_permits
-- A job that has ended, or has gone back before its gates, holds nothing. Where nobody counts how many run, one that
-- has been claimed holds nothing either.
DELETE FROM permits
WHERE NOT EXISTS (
    SELECT 1 FROM jobs j WHERE j.id = permits.job_id AND j.run_at < 253339228800000000
      AND (j.worker_id = 0 OR (SELECT g.concurrency FROM gates g WHERE g.id = permits.gate_id) IS NOT NULL)
);

-- name: waiting_lines
-- From line to line along the index, not job by job.
WITH RECURSIVE line (id, seen) AS (
    SELECT (SELECT min(line_id) FROM jobs WHERE run_at = 253339228800000000 AND line_id > :after), 1
    UNION ALL
    SELECT (SELECT min(j.line_id) FROM jobs j WHERE j.run_at = 253339228800000000 AND j.line_id > line.id), line.seen + 1
    FROM line WHERE line.id IS NOT NULL AND line.seen < :limit
)
SELECT line.id, l.gates FROM line JOIN lines l ON l.id = line.id WHERE line.id IS NOT NULL ORDER BY line.id;

-- name: gates
SELECT g.*, count(p.job_id) AS used, count(p.job_id) FILTER (WHERE j.worker_id = 0) AS unclaimed
FROM gates g LEFT JOIN permits p ON p.gate_id = g.id LEFT JOIN jobs j ON j.id = p.job_id
WHERE g.id IN (SELECT value FROM json_each(:ids))
GROUP BY g.id;

-- name: first_in_line
SELECT id, priority FROM jobs
WHERE run_at = 253339228800000000 AND line_id = :line_id AND due_at <= :now
ORDER BY priority DESC, due_at, id LIMIT :limit;

-- name: admit_jobs
UPDATE jobs SET run_at = :now, due_at = NULL WHERE id IN (SELECT value FROM json_each(:ids)) AND run_at = 253339228800000000
RETURNING id;

-- name: add_permits
INSERT INTO permits (gate_id, job_id) VALUES (?, ?) ON CONFLICT DO NOTHING;

-- name: spend_tokens
UPDATE gates SET tokens = ?, refilled_at = ? WHERE id = ?;

-- name: lines_of_gates
SELECT DISTINCT l.id, l.gates FROM lines l, json_each('[' || l.gates || ']') g
WHERE g.value IN (SELECT value FROM json_each(:gate_ids));

-- name: gate_holders
SELECT g.value AS gate_id, p.job_id FROM json_each(:gate_ids) g CROSS JOIN permits p
WHERE p.gate_id = g.value AND p.job_id IN (
    SELECT h.job_id FROM permits h JOIN jobs j ON j.id = h.job_id AND j.run_at < 253339228800000000
    WHERE h.gate_id = g.value ORDER BY h.job_id LIMIT :most
)
ORDER BY p.gate_id, p.job_id;
