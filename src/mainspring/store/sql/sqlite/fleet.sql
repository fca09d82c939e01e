-- name: beat
UPDATE members SET lease_until = :now + :lease, lease = :lease, holding = :holding, skew = :told - :now WHERE id = :id AND NOT dead;

-- name: lost_claims
SELECT json_extract(c.value, '$[0]') AS job_id FROM json_each(:claims) c
WHERE NOT EXISTS (
    SELECT 1 FROM jobs j
    WHERE j.id = json_extract(c.value, '$[0]') AND j.worker_id = :id AND j.fence = json_extract(c.value, '$[1]')
)
ORDER BY c.key;

-- name: leave_claims
-- Claims may be left: the row stays, dead, until the reaper has given them back.
UPDATE members SET dead = 1 WHERE id = :id;

-- name: bury_members
-- And those whose lease ends later than any renewal promises are cut to that: a clock was set, or somebody wrote it by hand.
UPDATE members SET dead = lease_until <= :now, lease_until = min(lease_until, :now + min(lease, :longest))
WHERE NOT dead AND (lease_until > :now + min(lease, :longest) + 60000000
                    OR (lease_until <= :now AND (:since IS NULL OR (:last + :gap >= :now AND :since + min(lease, :longest) <= :now))))
RETURNING id, role, name, dead;

-- name: note_lost
INSERT INTO lost_members (id, role, name, lost_at) VALUES (:id, :role, :name, :now) ON CONFLICT DO NOTHING;

-- name: dead_members
-- And those who may yet be: their lease has ended.
SELECT coalesce(max(dead), 0) AS dead, coalesce(max(NOT dead), 0) AS late FROM members WHERE dead OR lease_until <= :now;

-- name: lost_jobs
SELECT id, crashes, suspect IS fence AS begun FROM jobs
WHERE worker_id <> 0 AND worker_id IN (SELECT id FROM members WHERE dead)
LIMIT :limit;

-- name: reap_jobs
-- A crash is counted for a run that is known to have begun. Of a suspect whose run had not begun there is nothing to note.
INSERT INTO runs (job_id, finished_at, started_at, enqueued_at, run_at, worker_id, schedule_id, slot_at, queue,
                  task, fence, priority, max_attempts, failures, crashes, verdict)
SELECT id, :now, claimed_at, enqueued_at, run_at, worker_id, schedule_id, slot_at, queue,
       task, fence, priority, max_attempts, failures, crashes + (suspect IS fence), 4
FROM jobs WHERE id IN (SELECT value FROM json_each(:ids)) AND (suspect IS NULL OR suspect = fence);

-- name: give_back_jobs
-- Of a job that was no suspect nobody knows whether its run had begun: it becomes one.
UPDATE jobs SET worker_id = 0, crashes = crashes + (suspect IS fence), suspect = coalesce(suspect, 0)
WHERE id IN (SELECT value FROM json_each(:ids));

-- name: bury_jobs
INSERT INTO dead_jobs (id, run_at, enqueued_at, died_at, schedule_id, slot_at, queue, task, fence, priority,
                       max_attempts, failures, crashes, reason, payload, errors, expires_at, line_id, workflow_id, trace)
SELECT id, run_at, enqueued_at, :now, schedule_id, slot_at, queue, task, fence, priority,
       max_attempts, failures, crashes + 1, 'crashed', payload,
       json_insert(coalesce(errors, '[]'), '$[#]', json_set(json(:error), '$.attempt', failures + 1)), expires_at, line_id, workflow_id, trace
FROM jobs WHERE id IN (SELECT value FROM json_each(:ids));

-- name: forget_members
DELETE FROM members
WHERE dead AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.worker_id <> 0 AND jobs.worker_id = members.id);

-- name: mourn_strangers
INSERT INTO members (id, role, name, queues, tasks, version, tzdata, started_at, lease_until, dead)
SELECT DISTINCT worker_id, 'worker', 'unknown', '[]', '[]', '', '', :now, :now, 1
FROM jobs WHERE worker_id <> 0 AND worker_id NOT IN (SELECT id FROM members)
RETURNING id;

-- name: members
SELECT id, role, name, queues, tasks, version, tzdata, started_at, lease_until, NOT dead AND lease_until > :now AS alive, skew,
       json_array_length(holding) AS holding
FROM members ORDER BY started_at, id;
