-- The identity of this database: random, made with its schema. A restored copy keeps it; a clone is given a new one.
CREATE TABLE mainspring.database_identity (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    id  uuid NOT NULL DEFAULT gen_random_uuid()
);
INSERT INTO mainspring.database_identity DEFAULT VALUES;
-- A schedule without a catch_up has no bound. A day was the default; code that asked for a day says so with the next deploy. A schedule
-- that was made or edited at run time has no next deploy: its day stays, and so does that of those that share its row of specs.
UPDATE mainspring.specs SET catch_up = interval '365000 days'
WHERE catch_up = interval '1 day'
  AND NOT EXISTS (SELECT 1 FROM mainspring.schedules WHERE schedules.spec_id = specs.id AND schedules.edited);
UPDATE mainspring.schedules SET catch_up = interval '365000 days'
WHERE catch_up = interval '1 day' AND NOT edited
  AND (misfire <> 'all' OR spec_id IN (SELECT id FROM mainspring.specs WHERE catch_up = interval '365000 days'));

-- How long a member's lease lasts. After an outage every member has that long again to renew it.
ALTER TABLE mainspring.members ADD COLUMN lease interval NOT NULL DEFAULT '15 seconds';

-- Jobs that may have ended a process. NULL for nearly all. Otherwise the fence of the job's last run that was put on record when
-- it began, 0 for none: a worker that dies costs such a job a crash only where that is the claim it died with. No claim of
-- another job reads or writes it, and it is in no index of theirs: their claims stay HOT.
ALTER TABLE mainspring.jobs ADD COLUMN suspect integer;
UPDATE mainspring.jobs SET suspect = 0 WHERE crashes > 0;
CREATE INDEX jobs_suspect ON mainspring.jobs (queue_id, priority, crashes, run_at, id) WHERE suspect IS NOT NULL;

-- Slots that were dropped, by schedule: alerts ask for them. Other rows are in no index of this kind.
CREATE INDEX slots_dropped ON mainspring.slots (schedule_id, decided_at) WHERE disposition = 1 AND reason IN ('too_late', 'breaker');

-- Dead letters are counted for each task, and looked for by schedule: many of one must not hide another.
CREATE INDEX dead_jobs_task ON mainspring.dead_jobs (task_id, died_at);
CREATE INDEX dead_jobs_schedule ON mainspring.dead_jobs (schedule_id, slot_at) WHERE schedule_id IS NOT NULL AND slot_at IS NOT NULL;
-- That somebody watches: since when without a break, and last when. And the times in which nothing ran.
CREATE TABLE mainspring.watch_mark (
    one   boolean PRIMARY KEY DEFAULT true CHECK (one),
    since timestamptz NOT NULL,
    at    timestamptz NOT NULL
);
CREATE TABLE mainspring.gaps (
    began_at timestamptz PRIMARY KEY,
    ended_at timestamptz NOT NULL
);

-- Rows that could not be read, moved here whole: see store/unreadable.py.
CREATE TABLE mainspring.unreadable_rows (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind    text NOT NULL,
    ref     text NOT NULL,
    content jsonb NOT NULL,
    at      timestamptz NOT NULL DEFAULT now()
);
CREATE FUNCTION mainspring.is_failure(failure jsonb) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT failure IS NULL OR jsonb_typeof(failure) = 'object'
        AND coalesce(jsonb_typeof(failure -> 'type'), '') = 'string' AND coalesce(jsonb_typeof(failure -> 'message'), '') = 'string'
        AND coalesce(jsonb_typeof(failure -> 'traceback'), 'string') = 'string'
        AND (failure -> 'attempt' IS NULL OR coalesce(failure ->> 'attempt', '') ~ '^-?[0-9]{1,18}$')
        AND coalesce(failure ->> 'at', '2000-01-01T') ~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}T'
$$;

-- What claims and passes compute with. Each is added NOT VALID, which locks the table for a moment, and then looked at: rows
-- that are there already and do not hold to it must not stop this migration, nor anything else. The look reads the table
-- under the lock of this transaction, some seconds for ten million rows; the big tables of history have none.
DO $$
DECLARE
    told record;
    far CONSTANT text := 'BETWEEN timestamptz ''1900-01-01 00:00:00+00'' AND timestamptz ''9999-12-31 00:00:00+00''';
BEGIN
    FOR told IN SELECT * FROM (VALUES
        ('members', 'moments', format('started_at %1$s AND lease_until %1$s', far)),
        ('members', 'lease', 'lease BETWEEN interval ''0'' AND interval ''3660000 days'''),
        ('jobs', 'moments', format('run_at %1$s AND enqueued_at %1$s AND claimed_at %1$s AND slot_at %1$s AND due_at %1$s AND expires_at %1$s', far)),
        ('jobs', 'numbers', 'fence BETWEEN 0 AND 2147483646 AND failures BETWEEN 0 AND 32766 AND crashes BETWEEN 0 AND 32766 AND max_attempts BETWEEN 1 AND 32766'),
        ('dead_jobs', 'moments', format('run_at %1$s AND enqueued_at %1$s AND died_at %1$s AND slot_at %1$s AND expires_at %1$s', far)),
        ('specs', 'moments', format('next_at %1$s AND following_at %1$s', far)),
        ('specs', 'catch_up', 'catch_up BETWEEN interval ''-1 second'' AND interval ''3660000 days'''),
        ('fires', 'moments', format('slot_at %1$s AND since %1$s', far)),
        ('schedules', 'moments', format('active_from %1$s AND paused_at %1$s AND last_paused_at %1$s AND last_resumed_at %1$s', far)),
        ('schedules', 'lengths', 'catch_up BETWEEN interval ''0'' AND interval ''3660000 days'' AND offset_by BETWEEN interval ''0'' AND interval ''3660000 days'''
                                 ' AND jitter BETWEEN interval ''0'' AND interval ''3660000 days'' AND expires_after BETWEEN interval ''0'' AND interval ''3660000 days'''),
        ('schedules', 'words', 'misfire IN (''latest'', ''all'', ''skip'') AND overlap IN (''skip'', ''queue_one'', ''queue_all'', ''allow'', ''replace'')'),
        ('schedules', 'numbers', 'max_attempts BETWEEN 1 AND 32766 AND overlap_limit >= 0 AND skips >= 0'),
        ('gates', 'numbers', format('concurrency >= 0 AND rate >= 0 AND burst >= 0 AND open_window >= 0 AND tokens BETWEEN -1e15 AND 1e15 AND refilled_at %s', far)),
        ('leases', 'moments', format('expires_at %1$s AND acquired_at %1$s AND token BETWEEN 0 AND 9223372036854775806', far)),
        ('workflows', 'numbers', format('state BETWEEN 0 AND 3 AND started_at %1$s AND ended_at %1$s AND paused_at %1$s', far)),
        ('workflow_steps', 'numbers', format('state BETWEEN 0 AND 5 AND ended_at %s', far)),
        ('alert_notes', 'moments', format('due_at %1$s AND created_at %1$s AND ended_at %1$s', far))
    ) AS t (of_table, about, holds)
    LOOP
        EXECUTE format('ALTER TABLE mainspring.%I ADD CONSTRAINT %I CHECK (%s) NOT VALID', told.of_table, told.of_table || '_' || told.about || '_readable', told.holds);
        BEGIN
            EXECUTE format('ALTER TABLE mainspring.%I VALIDATE CONSTRAINT %I', told.of_table, told.of_table || '_' || told.about || '_readable');
        EXCEPTION WHEN check_violation THEN
            RAISE WARNING 'mainspring.% has rows that do not hold to %: they are set aside when something meets them', told.of_table, told.about;
        END;
    END LOOP;
END $$;

-- What a slot's job stands for: the slot before its own, worked out once when the slot is opened, and given to its jobs. Null
-- where missed slots were combined into it, or where it has none: then it is looked up.
ALTER TABLE mainspring.specs ADD COLUMN last_at timestamptz;
ALTER TABLE mainspring.fires ADD COLUMN previous_at timestamptz;
ALTER TABLE mainspring.jobs ADD COLUMN previous_at timestamptz;

-- The newest of the missed slots that a fire stands for, as many as a schedule is asked to skip: such a request is for slots,
-- not for rows. Few schedules have one.
ALTER TABLE mainspring.fires ADD COLUMN combined jsonb;
CREATE INDEX schedules_skips ON mainspring.schedules (spec_id, skips) WHERE skips > 0;
