-- name: dead_groups
SELECT task, error, substr(CASE WHEN instr(message, char(10)) > 0 THEN substr(message, 1, instr(message, char(10)) - 1) ELSE message END,
                           1, 200) AS line,
       count(*) AS count, max(died_at) AS newest_at, max(id) AS newest_id
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
ORDER BY count DESC, newest_id DESC LIMIT :limit;

-- name: edit_dead
-- The old arguments stay on record, with the author of the change.
INSERT INTO runs (job_id, finished_at, enqueued_at, run_at, worker_id, schedule_id, slot_at, queue,
                  task, fence, priority, max_attempts, failures, crashes, verdict, payload, error)
SELECT id, :now, enqueued_at, run_at, 0, schedule_id, slot_at, queue,
       task, fence, priority, max_attempts, failures, crashes, 8, payload,
       json_set(json(:error), '$.attempt', failures + 1, '$.at',
           strftime('%Y-%m-%dT%H:%M:%S', :now / 1000000, 'unixepoch') || printf('.%06dZ', :now % 1000000))
FROM dead_jobs WHERE id = :id AND payload = :expected;
UPDATE dead_jobs SET payload = :payload WHERE id = :id AND payload = :expected RETURNING id;

-- name: replay_dead
-- The job has no deadline any more, because a replay is a wish that it runs. A job of a workflow is left out: its workflow
-- has gone on without the job.
INSERT INTO jobs (id, run_at, enqueued_at, schedule_id, slot_at, queue, task, fence, priority, max_attempts, payload, errors, limit_set_id, due_at, trace)
SELECT id, CASE WHEN limit_set_id IS NULL THEN :now ELSE 253339228800000000 END, enqueued_at, schedule_id, slot_at, queue, task, fence, priority,
       max_attempts, payload, errors, limit_set_id, CASE WHEN limit_set_id IS NOT NULL THEN :now END, trace
FROM dead_jobs WHERE id IN (SELECT value FROM json_each(:ids)) AND workflow_id IS NULL;
DELETE FROM dead_jobs WHERE id IN (SELECT value FROM json_each(:ids)) AND workflow_id IS NULL RETURNING id;
