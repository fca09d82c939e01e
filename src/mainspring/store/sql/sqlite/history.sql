-- name: job_states
-- Later rows win where they are gathered, so the last word comes last.
SELECT job_id AS id, CASE verdict WHEN 0 THEN 'succeeded' WHEN 7 THEN 'discarded' ELSE 'cancelled' END AS state, finished_at
FROM runs WHERE job_id IN (SELECT value FROM json_each(:ids)) AND verdict IN (0, 5, 7)
UNION ALL
SELECT id, 'dead', 9223372036854775806 FROM dead_jobs WHERE id IN (SELECT value FROM json_each(:ids))
UNION ALL
SELECT id, CASE WHEN worker_id <> 0 OR run_at = 253307692800000000 THEN 'running' WHEN run_at > :now THEN 'delayed' ELSE 'ready' END, 9223372036854775807
FROM jobs WHERE id IN (SELECT value FROM json_each(:ids))
ORDER BY 3;

-- name: dead_jobs
SELECT * FROM dead_jobs
WHERE (:ids IS NULL OR id IN (SELECT value FROM json_each(:ids))) AND (:task IS NULL OR task = :task)
  AND (:queue IS NULL OR queue = :queue) AND id < coalesce(:before, 9223372036854775807)
  AND (:reason IS NULL OR reason = :reason)
  AND (:died_from IS NULL OR died_at >= :died_from) AND (:died_before IS NULL OR died_at < :died_before)
  AND (:error IS NULL OR json_extract(errors, '$[#-1].type') = :error
       OR substr(json_extract(errors, '$[#-1].type'), -length(:error) - 1) = '.' || :error)
  AND (:text IS NULL OR instr(json_extract(errors, '$[#-1].message'), :text) > 0)
ORDER BY id DESC LIMIT :limit;

-- name: count_dead
SELECT count(*) AS letters FROM (
    SELECT 1 FROM dead_jobs
    WHERE (:ids IS NULL OR id IN (SELECT value FROM json_each(:ids))) AND (:task IS NULL OR task = :task)
  AND (:queue IS NULL OR queue = :queue) AND (:before IS NULL OR id < :before)
  AND (:reason IS NULL OR reason = :reason)
  AND (:died_from IS NULL OR died_at >= :died_from) AND (:died_before IS NULL OR died_at < :died_before)
  AND (:error IS NULL OR json_extract(errors, '$[#-1].type') = :error
       OR substr(json_extract(errors, '$[#-1].type'), -length(:error) - 1) = '.' || :error)
  AND (:text IS NULL OR instr(json_extract(errors, '$[#-1].message'), :text) > 0)
    LIMIT :limit
);

-- name: dead_groups
SELECT task, error, substr(CASE WHEN instr(message, char(10)) > 0 THEN substr(message, 1, instr(message, char(10)) - 1) ELSE message END,
                           1, 200) AS line,
       count(*) AS letters, max(died_at) AS newest_at, max(id) AS newest_id
FROM (
    SELECT id, task, died_at, coalesce(json_extract(errors, '$[#-1].type'), '') AS error,
           coalesce(json_extract(errors, '$[#-1].message'), '') AS message
    FROM dead_jobs
    WHERE (:ids IS NULL OR id IN (SELECT value FROM json_each(:ids))) AND (:task IS NULL OR task = :task)
  AND (:queue IS NULL OR queue = :queue) AND (:before IS NULL OR id < :before)
  AND (:reason IS NULL OR reason = :reason)
  AND (:died_from IS NULL OR died_at >= :died_from) AND (:died_before IS NULL OR died_at < :died_before)
  AND (:error IS NULL OR json_extract(errors, '$[#-1].type') = :error
       OR substr(json_extract(errors, '$[#-1].type'), -length(:error) - 1) = '.' || :error)
  AND (:text IS NULL OR instr(json_extract(errors, '$[#-1].message'), :text) > 0)
)
GROUP BY task, error, line
ORDER BY letters DESC, newest_id DESC LIMIT :limit;

