-- The identity of this database: random, made with its schema. A restored copy keeps it; a clone is given a new one.
CREATE TABLE database_identity (
    one INTEGER PRIMARY KEY DEFAULT 1 CHECK (one = 1),
    id  TEXT NOT NULL             -- a UUID in its usual form, as on PostgreSQL
) STRICT;
INSERT INTO database_identity (id)
SELECT substr(h, 1, 8) || '-' || substr(h, 9, 4) || '-4' || substr(h, 14, 3) || '-8' || substr(h, 18, 3) || '-' || substr(h, 21, 12)
FROM (SELECT lower(hex(randomblob(16))) AS h);
-- A schedule without a catch_up has no bound. A day was the default; code that asked for a day says so with the next deploy. A schedule
-- that was made or edited at run time has no next deploy: its day stays, and so does that of those that share its row of specs.
UPDATE specs SET catch_up = 31536000000000000
WHERE catch_up = 86400000000
  AND NOT EXISTS (SELECT 1 FROM schedules WHERE schedules.spec_id = specs.id AND schedules.edited = 1);
UPDATE schedules SET catch_up = 31536000000000000
WHERE catch_up = 86400000000 AND edited = 0
  AND (misfire <> 'all' OR spec_id IN (SELECT id FROM specs WHERE catch_up = 31536000000000000));

-- How long a member's lease lasts. After an outage every member has that long again to renew it.
ALTER TABLE members ADD COLUMN lease INTEGER NOT NULL DEFAULT 15000000;

-- Jobs that may have ended a process. NULL for nearly all. Otherwise the fence of the job's last run that was put on record when
-- it began, 0 for none: a worker that dies costs such a job a crash only where that is the claim it died with.
ALTER TABLE jobs ADD COLUMN suspect INTEGER;
UPDATE jobs SET suspect = 0 WHERE crashes > 0;
CREATE INDEX jobs_suspect ON jobs (queue, priority, crashes, run_at, id) WHERE suspect IS NOT NULL;

-- Slots that were dropped, by schedule: alerts ask for them. Other rows are in no index of this kind.
CREATE INDEX slots_dropped ON slots (schedule_id, decided_at) WHERE disposition = 1 AND reason IN ('too_late', 'breaker');

-- Dead letters are counted for each task, and looked for by schedule: many of one must not hide another.
CREATE INDEX dead_jobs_task ON dead_jobs (task, died_at);
CREATE INDEX dead_jobs_schedule ON dead_jobs (schedule_id, slot_at) WHERE schedule_id IS NOT NULL AND slot_at IS NOT NULL;
-- That somebody watches: since when without a break, and last when. And the times in which nothing ran.
CREATE TABLE watch_mark (
    one   INTEGER PRIMARY KEY DEFAULT 1 CHECK (one = 1),
    since INTEGER NOT NULL,
    at    INTEGER NOT NULL
) STRICT;
CREATE TABLE gaps (
    began_at INTEGER NOT NULL PRIMARY KEY,
    ended_at INTEGER NOT NULL
) STRICT;

-- Rows that could not be read, moved here whole: see store/unreadable.py.
CREATE TABLE unreadable_rows (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    kind    TEXT    NOT NULL,
    ref     TEXT    NOT NULL,
    content TEXT    NOT NULL,          -- JSON
    at      INTEGER NOT NULL
) STRICT;

-- What claims and passes compute with. SQLite takes a CHECK of a table that exists only together with a column, which here holds
-- nothing; else the whole table would have to be written anew. Rows that do not hold to it are set aside first, or it would be refused.
INSERT INTO unreadable_rows (kind, ref, content, at)
SELECT 'members', id, json_object('id', quote(id), 'role', quote(role), 'name', quote(name), 'queues', quote(queues), 'tasks', quote(tasks), 'version', quote(version), 'tzdata', quote(tzdata), 'started_at', quote(started_at), 'lease_until', quote(lease_until), 'dead', quote(dead), 'skew', quote(skew), 'holding', quote(holding), 'lease', quote(lease)),
       CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)
FROM members
WHERE NOT (started_at BETWEEN -2208988800000000 AND 253402214400000000 AND lease_until BETWEEN -2208988800000000 AND 253402214400000000 AND lease BETWEEN 0 AND 316224000000000000);
DELETE FROM members WHERE NOT (started_at BETWEEN -2208988800000000 AND 253402214400000000 AND lease_until BETWEEN -2208988800000000 AND 253402214400000000 AND lease BETWEEN 0 AND 316224000000000000);
ALTER TABLE members ADD COLUMN readable INTEGER CHECK (started_at BETWEEN -2208988800000000 AND 253402214400000000 AND lease_until BETWEEN -2208988800000000 AND 253402214400000000 AND lease BETWEEN 0 AND 316224000000000000);
INSERT INTO unreadable_rows (kind, ref, content, at)
SELECT 'jobs', id, json_object('id', quote(id), 'run_at', quote(run_at), 'enqueued_at', quote(enqueued_at), 'claimed_at', quote(claimed_at), 'worker_id', quote(worker_id), 'schedule_id', quote(schedule_id), 'slot_at', quote(slot_at), 'queue', quote(queue), 'task', quote(task), 'fence', quote(fence), 'priority', quote(priority), 'max_attempts', quote(max_attempts), 'failures', quote(failures), 'crashes', quote(crashes), 'payload', quote(payload), 'errors', quote(errors), 'backfill_id', quote(backfill_id), 'line_id', quote(line_id), 'due_at', quote(due_at), 'expires_at', quote(expires_at), 'workflow_id', quote(workflow_id), 'trace', quote(trace), 'suspect', quote(suspect)),
       CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)
FROM jobs
WHERE NOT (run_at BETWEEN -2208988800000000 AND 253402214400000000 AND enqueued_at BETWEEN -2208988800000000 AND 253402214400000000 AND claimed_at BETWEEN -2208988800000000 AND 253402214400000000 AND coalesce(slot_at, 0) BETWEEN -2208988800000000 AND 253402214400000000 AND coalesce(due_at, 0) BETWEEN -2208988800000000 AND 253402214400000000 AND coalesce(expires_at, 0) BETWEEN -2208988800000000 AND 253402214400000000 AND fence BETWEEN 0 AND 2147483646 AND failures BETWEEN 0 AND 32766 AND crashes BETWEEN 0 AND 32766 AND max_attempts BETWEEN 1 AND 32766);
DELETE FROM jobs WHERE NOT (run_at BETWEEN -2208988800000000 AND 253402214400000000 AND enqueued_at BETWEEN -2208988800000000 AND 253402214400000000 AND claimed_at BETWEEN -2208988800000000 AND 253402214400000000 AND coalesce(slot_at, 0) BETWEEN -2208988800000000 AND 253402214400000000 AND coalesce(due_at, 0) BETWEEN -2208988800000000 AND 253402214400000000 AND coalesce(expires_at, 0) BETWEEN -2208988800000000 AND 253402214400000000 AND fence BETWEEN 0 AND 2147483646 AND failures BETWEEN 0 AND 32766 AND crashes BETWEEN 0 AND 32766 AND max_attempts BETWEEN 1 AND 32766);
ALTER TABLE jobs ADD COLUMN readable INTEGER CHECK (run_at BETWEEN -2208988800000000 AND 253402214400000000 AND enqueued_at BETWEEN -2208988800000000 AND 253402214400000000 AND claimed_at BETWEEN -2208988800000000 AND 253402214400000000 AND coalesce(slot_at, 0) BETWEEN -2208988800000000 AND 253402214400000000 AND coalesce(due_at, 0) BETWEEN -2208988800000000 AND 253402214400000000 AND coalesce(expires_at, 0) BETWEEN -2208988800000000 AND 253402214400000000 AND fence BETWEEN 0 AND 2147483646 AND failures BETWEEN 0 AND 32766 AND crashes BETWEEN 0 AND 32766 AND max_attempts BETWEEN 1 AND 32766);
INSERT INTO unreadable_rows (kind, ref, content, at)
SELECT 'specs', id, json_object('id', quote(id), 'trigger', quote(trigger), 'next_at', quote(next_at), 'following_at', quote(following_at), 'planned', quote(planned), 'catch_up', quote(catch_up)),
       CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)
FROM specs
WHERE NOT (coalesce(next_at, 0) BETWEEN -2208988800000000 AND 253402214400000000 AND coalesce(following_at, 0) BETWEEN -2208988800000000 AND 253402214400000000 AND catch_up BETWEEN -1000000 AND 316224000000000000);
DELETE FROM specs WHERE NOT (coalesce(next_at, 0) BETWEEN -2208988800000000 AND 253402214400000000 AND coalesce(following_at, 0) BETWEEN -2208988800000000 AND 253402214400000000 AND catch_up BETWEEN -1000000 AND 316224000000000000);
ALTER TABLE specs ADD COLUMN readable INTEGER CHECK (coalesce(next_at, 0) BETWEEN -2208988800000000 AND 253402214400000000 AND coalesce(following_at, 0) BETWEEN -2208988800000000 AND 253402214400000000 AND catch_up BETWEEN -1000000 AND 316224000000000000);
INSERT INTO unreadable_rows (kind, ref, content, at)
SELECT 'schedules', id, json_object('id', quote(id), 'name', quote(name), 'spec_id', quote(spec_id), 'task', quote(task), 'queue', quote(queue), 'priority', quote(priority), 'max_attempts', quote(max_attempts), 'payload', quote(payload), 'misfire', quote(misfire), 'catch_up', quote(catch_up), 'version', quote(version), 'active_from', quote(active_from), 'overlap', quote(overlap), 'overlap_limit', quote(overlap_limit), 'offset_by', quote(offset_by), 'jitter', quote(jitter), 'max_fires', quote(max_fires), 'fires_left', quote(fires_left), 'skips', quote(skips), 'edited', quote(edited), 'paused_at', quote(paused_at), 'paused_by', quote(paused_by), 'pause_note', quote(pause_note), 'last_paused_at', quote(last_paused_at), 'last_resumed_at', quote(last_resumed_at), 'line_id', quote(line_id), 'expires_after', quote(expires_after), 'expect_start_within', quote(expect_start_within), 'expect_finish_by', quote(expect_finish_by)),
       CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)
FROM schedules
WHERE NOT (active_from BETWEEN -2208988800000000 AND 253402214400000000 AND coalesce(paused_at, 0) BETWEEN -2208988800000000 AND 253402214400000000 AND catch_up BETWEEN 0 AND 316224000000000000 AND offset_by BETWEEN 0 AND 316224000000000000 AND jitter BETWEEN 0 AND 316224000000000000 AND coalesce(expires_after, 0) BETWEEN 0 AND 316224000000000000 AND misfire IN ('latest', 'all', 'skip') AND overlap IN ('skip', 'queue_one', 'queue_all', 'allow', 'replace') AND max_attempts BETWEEN 1 AND 32766 AND overlap_limit >= 0 AND skips >= 0);
DELETE FROM schedules WHERE NOT (active_from BETWEEN -2208988800000000 AND 253402214400000000 AND coalesce(paused_at, 0) BETWEEN -2208988800000000 AND 253402214400000000 AND catch_up BETWEEN 0 AND 316224000000000000 AND offset_by BETWEEN 0 AND 316224000000000000 AND jitter BETWEEN 0 AND 316224000000000000 AND coalesce(expires_after, 0) BETWEEN 0 AND 316224000000000000 AND misfire IN ('latest', 'all', 'skip') AND overlap IN ('skip', 'queue_one', 'queue_all', 'allow', 'replace') AND max_attempts BETWEEN 1 AND 32766 AND overlap_limit >= 0 AND skips >= 0);
ALTER TABLE schedules ADD COLUMN readable INTEGER CHECK (active_from BETWEEN -2208988800000000 AND 253402214400000000 AND coalesce(paused_at, 0) BETWEEN -2208988800000000 AND 253402214400000000 AND catch_up BETWEEN 0 AND 316224000000000000 AND offset_by BETWEEN 0 AND 316224000000000000 AND jitter BETWEEN 0 AND 316224000000000000 AND coalesce(expires_after, 0) BETWEEN 0 AND 316224000000000000 AND misfire IN ('latest', 'all', 'skip') AND overlap IN ('skip', 'queue_one', 'queue_all', 'allow', 'replace') AND max_attempts BETWEEN 1 AND 32766 AND overlap_limit >= 0 AND skips >= 0);
INSERT INTO unreadable_rows (kind, ref, content, at)
SELECT 'gates', id, json_object('id', quote(id), 'name', quote(name), 'key', quote(key), 'concurrency', quote(concurrency), 'rate', quote(rate), 'period', quote(period), 'burst', quote(burst), 'open_window', quote(open_window), 'tokens', quote(tokens), 'refilled_at', quote(refilled_at)),
       CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)
FROM gates
WHERE NOT (coalesce(concurrency, 0) >= 0 AND coalesce(rate, 0) >= 0 AND burst >= 0 AND coalesce(open_window, 0) >= 0 AND tokens BETWEEN -1e15 AND 1e15 AND coalesce(refilled_at, 0) BETWEEN -2208988800000000 AND 253402214400000000);
DELETE FROM gates WHERE NOT (coalesce(concurrency, 0) >= 0 AND coalesce(rate, 0) >= 0 AND burst >= 0 AND coalesce(open_window, 0) >= 0 AND tokens BETWEEN -1e15 AND 1e15 AND coalesce(refilled_at, 0) BETWEEN -2208988800000000 AND 253402214400000000);
ALTER TABLE gates ADD COLUMN readable INTEGER CHECK (coalesce(concurrency, 0) >= 0 AND coalesce(rate, 0) >= 0 AND burst >= 0 AND coalesce(open_window, 0) >= 0 AND tokens BETWEEN -1e15 AND 1e15 AND coalesce(refilled_at, 0) BETWEEN -2208988800000000 AND 253402214400000000);
INSERT INTO unreadable_rows (kind, ref, content, at)
SELECT 'leases', name, json_object('name', quote(name), 'token', quote(token), 'holder_id', quote(holder_id), 'holder', quote(holder), 'expires_at', quote(expires_at), 'acquired_at', quote(acquired_at)),
       CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)
FROM leases
WHERE NOT (expires_at BETWEEN -2208988800000000 AND 253402214400000000 AND acquired_at BETWEEN -2208988800000000 AND 253402214400000000 AND token BETWEEN 0 AND 9223372036854775806);
DELETE FROM leases WHERE NOT (expires_at BETWEEN -2208988800000000 AND 253402214400000000 AND acquired_at BETWEEN -2208988800000000 AND 253402214400000000 AND token BETWEEN 0 AND 9223372036854775806);
ALTER TABLE leases ADD COLUMN readable INTEGER CHECK (expires_at BETWEEN -2208988800000000 AND 253402214400000000 AND acquired_at BETWEEN -2208988800000000 AND 253402214400000000 AND token BETWEEN 0 AND 9223372036854775806);
INSERT INTO unreadable_rows (kind, ref, content, at)
SELECT 'workflows', id, json_object('id', quote(id), 'started_at', quote(started_at), 'ended_at', quote(ended_at), 'paused_at', quote(paused_at), 'parent_id', quote(parent_id), 'forked_from', quote(forked_from), 'definition_id', quote(definition_id), 'nodes_left', quote(nodes_left), 'nodes_failed', quote(nodes_failed), 'state', quote(state), 'name', quote(name), 'stopping', quote(stopping), 'params', quote(params), 'step_ids', quote(step_ids)),
       CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)
FROM workflows
WHERE NOT (state BETWEEN 0 AND 3 AND started_at BETWEEN -2208988800000000 AND 253402214400000000 AND coalesce(ended_at, 0) BETWEEN -2208988800000000 AND 253402214400000000);
DELETE FROM workflows WHERE NOT (state BETWEEN 0 AND 3 AND started_at BETWEEN -2208988800000000 AND 253402214400000000 AND coalesce(ended_at, 0) BETWEEN -2208988800000000 AND 253402214400000000);
ALTER TABLE workflows ADD COLUMN readable INTEGER CHECK (state BETWEEN 0 AND 3 AND started_at BETWEEN -2208988800000000 AND 253402214400000000 AND coalesce(ended_at, 0) BETWEEN -2208988800000000 AND 253402214400000000);
INSERT INTO unreadable_rows (kind, ref, content, at)
SELECT 'workflow_steps', id, json_object('id', quote(id), 'workflow_id', quote(workflow_id), 'ended_at', quote(ended_at), 'place', quote(place), 'item', quote(item), 'waits', quote(waits), 'items_failed', quote(items_failed), 'fence', quote(fence), 'state', quote(state), 'cause', quote(cause), 'result', quote(result), 'error', quote(error)),
       CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)
FROM workflow_steps
WHERE NOT (state BETWEEN 0 AND 5 AND coalesce(ended_at, 0) BETWEEN -2208988800000000 AND 253402214400000000);
DELETE FROM workflow_steps WHERE NOT (state BETWEEN 0 AND 5 AND coalesce(ended_at, 0) BETWEEN -2208988800000000 AND 253402214400000000);
ALTER TABLE workflow_steps ADD COLUMN readable INTEGER CHECK (state BETWEEN 0 AND 5 AND coalesce(ended_at, 0) BETWEEN -2208988800000000 AND 253402214400000000);

-- What a slot's job stands for: the slot before its own, worked out once when the slot is opened, and given to its jobs. Null
-- where missed slots were combined into it, or where it has none: then it is looked up.
ALTER TABLE specs ADD COLUMN last_at INTEGER;
ALTER TABLE fires ADD COLUMN previous_at INTEGER;
ALTER TABLE jobs ADD COLUMN previous_at INTEGER;

-- The newest of the missed slots that a fire stands for, as many as a schedule is asked to skip: such a request is for slots,
-- not for rows. Few schedules have one.
ALTER TABLE fires ADD COLUMN combined TEXT;             -- JSON
CREATE INDEX schedules_skips ON schedules (spec_id, skips) WHERE skips > 0;
