-- The whole layout. Every name is qualified: no search_path is trusted or needed.

-- Queue and task names are written once and referred to by number: four bytes a job, not forty.
CREATE TABLE mainspring.queues (
    id   int  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE
);

CREATE TABLE mainspring.tasks (
    id   int  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE
);

-- Every (queue, priority) ever used. A claim walks these, best priority first, with an equality on
-- the priority: one range scan of jobs_ready each, which ends at now() and so never walks jobs
-- that are not due.
CREATE TABLE mainspring.priority_levels (
    queue_id int      NOT NULL,
    priority smallint NOT NULL,
    -- Queues that are paused: claims pass their priority levels by.
    paused   boolean  NOT NULL DEFAULT false,
    PRIMARY KEY (queue_id, priority)
);

CREATE SEQUENCE mainspring.job_ids;

-- Live jobs only: delayed, ready and running. What a claim changes is fixed-width, never null and
-- in no index and no index predicate, so that a claim is a HOT update; fillfactor 50 leaves room
-- for it on the row's own page.
CREATE TABLE mainspring.jobs (
    id           bigint      NOT NULL PRIMARY KEY,
    run_at       timestamptz NOT NULL,
    enqueued_at  timestamptz NOT NULL,
    claimed_at   timestamptz NOT NULL DEFAULT 'epoch',
    worker_id    bigint      NOT NULL DEFAULT 0,   -- 0: nobody's
    schedule_id  bigint,
    slot_at      timestamptz,
    queue_id     int         NOT NULL,
    task_id      int         NOT NULL,
    fence        int         NOT NULL DEFAULT 0,   -- +1 with every claim
    priority     smallint    NOT NULL,
    max_attempts smallint    NOT NULL,
    failures     smallint    NOT NULL DEFAULT 0,
    crashes      smallint    NOT NULL DEFAULT 0,
    payload      bytea       NOT NULL,
    errors       jsonb,
    -- Slots of the past, run on request. A backfill's jobs are told apart, for overlap takes no notice of them.
    backfill_id  bigint,
    limit_set_id      int,
    due_at       timestamptz,
    -- Deadlines of jobs. A claim changes no such column, so claims stay HOT; most jobs have none, and are in no index for it.
    expires_at   timestamptz,
    -- The workflow whose step a job is. Null for nearly every job, and then it takes no room.
    workflow_id  bigint,
    -- The trace that a job goes on with: a W3C traceparent, and after a space a tracestate if there is one. In no index: a claim
    -- stays a HOT update.
    trace        text,
    -- Jobs that may have ended a process. NULL for nearly all. Otherwise the fence of the job's last run that was put on record when
    -- it began, 0 for none: a worker that dies costs such a job a crash only where that is the claim it died with. No claim of
    -- another job reads or writes it, and it is in no index of theirs: their claims stay HOT.
    orphan      integer,
    previous_at  timestamptz
) WITH (
    fillfactor = 50, vacuum_truncate = off,
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 50000,
    autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 20000,
    toast.vacuum_truncate = off, toast.autovacuum_vacuum_scale_factor = 0, toast.autovacuum_vacuum_threshold = 2000
);
-- `id + 0`, so that no plan ever looks a job up by its id here: on a table that was empty when it
-- was last analysed this index and the key cost the planner the same, and it may walk all of it.
CREATE INDEX jobs_ready ON mainspring.jobs (queue_id, priority, run_at, (id + 0))
    WITH (fillfactor = 90, deduplicate_items = off);
-- Live jobs by schedule, for overlap; and those held back until their predecessors have ended, whose
-- run_at is the end of time. A claim changes neither column, so claims stay HOT.
CREATE INDEX jobs_schedule ON mainspring.jobs (schedule_id) WHERE schedule_id IS NOT NULL;
CREATE INDEX jobs_held ON mainspring.jobs (schedule_id, id) WHERE run_at = timestamptz '9999-01-01 00:00:00+00';
CREATE INDEX jobs_backfill ON mainspring.jobs (backfill_id) WHERE backfill_id IS NOT NULL;
CREATE INDEX jobs_limited ON mainspring.jobs (limit_set_id, priority DESC, due_at, id)
    WHERE run_at = timestamptz '9998-01-01 00:00:00+00';
CREATE INDEX jobs_expiring ON mainspring.jobs (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX jobs_orphans ON mainspring.jobs (queue_id, priority, crashes, run_at, id) WHERE orphan IS NOT NULL;

-- History: append-only, a partition a day, pruned by dropping partitions.
CREATE TABLE mainspring.runs (
    job_id       bigint      NOT NULL,
    finished_at  timestamptz NOT NULL,
    started_at   timestamptz,            -- null: ended before any handler began
    enqueued_at  timestamptz NOT NULL,
    run_at       timestamptz NOT NULL,
    worker_id    bigint      NOT NULL,
    schedule_id  bigint,
    slot_at      timestamptz,
    queue_id     int         NOT NULL,
    task_id      int         NOT NULL,
    fence        int         NOT NULL,
    priority     smallint    NOT NULL,
    max_attempts smallint    NOT NULL,
    failures     smallint    NOT NULL,   -- before this run
    crashes      smallint    NOT NULL,
    verdict      smallint    NOT NULL,
    payload      bytea,                  -- kept with the run that ended the job, unless it is dead
    result       bytea,
    error        jsonb
) PARTITION BY RANGE (finished_at);
-- Ids nearly rise with time, so this index is filled at its right edge and stays cheap.
CREATE INDEX runs_job ON mainspring.runs (job_id);
CREATE TABLE mainspring.runs_default PARTITION OF mainspring.runs DEFAULT;
-- For results that are not kept as long as their run. An empty one was dropped.
CREATE INDEX runs_results ON mainspring.runs (finished_at) WHERE result <> ''::bytea;
-- For lists of finished jobs. The sums keep each index to the statements that name it.
CREATE INDEX runs_task ON mainspring.runs (task_id, (job_id + 0));
CREATE INDEX runs_schedule ON mainspring.runs (schedule_id, (job_id + 0)) WHERE schedule_id IS NOT NULL;
CREATE INDEX runs_unusual ON mainspring.runs (verdict, (job_id + 0)) WHERE verdict <> 0;

CREATE TABLE mainspring.dead_jobs (
    id           bigint      NOT NULL PRIMARY KEY,
    run_at       timestamptz NOT NULL,
    enqueued_at  timestamptz NOT NULL,
    died_at      timestamptz NOT NULL,
    schedule_id  bigint,
    slot_at      timestamptz,
    queue_id     int         NOT NULL,
    task_id      int         NOT NULL,
    fence        int         NOT NULL,
    priority     smallint    NOT NULL,
    max_attempts smallint    NOT NULL,
    failures     smallint    NOT NULL,
    crashes      smallint    NOT NULL,
    reason       text        NOT NULL,
    payload      bytea       NOT NULL,
    errors       jsonb       NOT NULL,
    limit_set_id      int,
    expires_at   timestamptz,
    workflow_id  bigint,
    trace        text,
    -- What dead letters are grouped by, read once when they come in rather than whenever somebody looks.
    error        text        GENERATED ALWAYS AS (coalesce(errors -> -1 ->> 'type', '')) STORED,
    line         text        GENERATED ALWAYS AS (left(split_part(coalesce(errors -> -1 ->> 'message', ''), chr(10), 1), 200)) STORED
);
-- How many died lately, without reading all that ever did.
CREATE INDEX dead_jobs_died ON mainspring.dead_jobs (died_at);
-- Dead letters are counted for each task, and looked for by schedule: many of one must not hide another.
CREATE INDEX dead_jobs_task ON mainspring.dead_jobs (task_id, died_at);
CREATE INDEX dead_jobs_schedule ON mainspring.dead_jobs (schedule_id, slot_at) WHERE schedule_id IS NOT NULL AND slot_at IS NOT NULL;

-- Processes. A beat touches one row and no index.
CREATE TABLE mainspring.processes (
    id          bigint      NOT NULL PRIMARY KEY,   -- random per process start
    role        text        NOT NULL,
    name        text        NOT NULL,
    queues      text[]      NOT NULL,
    tasks       text[]      NOT NULL,
    version     text        NOT NULL,
    tzdata      text        NOT NULL,
    started_at  timestamptz NOT NULL,
    lease_until timestamptz NOT NULL,
    dead        boolean     NOT NULL DEFAULT false,
    -- What each process had in hand when it last said that it lives, and how far its clock is from the database's.
    skew        interval,
    holding     bigint[]    NOT NULL DEFAULT '{}',
    -- How long a process's lease lasts. After an outage every process has that long again to renew it.
    lease       interval    NOT NULL DEFAULT '15 seconds'
) WITH (fillfactor = 50);

-- A trigger shared by every schedule that has it. This is what falls due.
CREATE TABLE mainspring.specs (
    id           bigint   GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    trigger      text     NOT NULL,
    next_at      timestamptz,                             -- null: no slot is left
    following_at timestamptz,
    planned      boolean  NOT NULL,                       -- following_at is known
    -- Schedules that want every missed slot do not share a spec with those that want the newest.
    catch_up     interval NOT NULL DEFAULT '-1 second',   -- negative: coalesce
    -- What a slot's job stands for: the slot before its own, worked out once when the slot is opened, and given to its jobs. Null
    -- where missed slots were combined into it, or where it has none: then it is looked up.
    last_at      timestamptz,
    CONSTRAINT specs_trigger_key UNIQUE (trigger, catch_up)
) WITH (fillfactor = 70);
CREATE INDEX specs_due ON mainspring.specs (next_at);
CREATE INDEX specs_unplanned ON mainspring.specs (id) WHERE NOT planned;

CREATE TABLE mainspring.schedules (
    id                  bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name                text        NOT NULL UNIQUE,
    spec_id             bigint      NOT NULL,
    task_id             int         NOT NULL,
    queue_id            int         NOT NULL,
    priority            smallint    NOT NULL,
    max_attempts        smallint    NOT NULL,
    payload             bytea       NOT NULL,
    misfire             text        NOT NULL,
    catch_up            interval    NOT NULL,
    version             int         NOT NULL DEFAULT 1,
    active_from         timestamptz NOT NULL,
    overlap             text        NOT NULL DEFAULT 'skip',
    overlap_limit       int         NOT NULL DEFAULT 1,
    offset_by           interval    NOT NULL DEFAULT '0',
    jitter              interval    NOT NULL DEFAULT '0',
    max_fires           int,
    fires_left          int,
    skips               int         NOT NULL DEFAULT 0,
    edited              boolean     NOT NULL DEFAULT false,
    paused_at           timestamptz,
    paused_by           text,
    pause_note          text,
    -- The last pause that has ended: slots of it that nobody had opened are skipped as paused when somebody does.
    last_paused_at      timestamptz,
    last_resumed_at     timestamptz,
    limit_set_id             int,
    expires_after       interval,
    -- What somebody expects of a schedule's slots; most schedules have neither, and are in no index for it.
    expect_start_within interval,
    expect_finish_by    interval
);
-- `id + 0` for the reason jobs_ready has it: a schedule is looked up by its id in the key, never here.
CREATE INDEX schedules_spec ON mainspring.schedules (spec_id, (id + 0));
CREATE INDEX schedules_expecting ON mainspring.schedules (id) WHERE expect_start_within IS NOT NULL OR expect_finish_by IS NOT NULL;
CREATE INDEX schedules_skips ON mainspring.schedules (spec_id, skips) WHERE skips > 0;

-- A slot being fired: how far through its schedules we are.
CREATE TABLE mainspring.firings (
    spec_id     bigint      NOT NULL,
    slot_at     timestamptz NOT NULL,
    since       timestamptz,
    last_id     bigint      NOT NULL DEFAULT 0,
    skip        text,
    note        text,
    -- A burst is fired by several schedulers at once: a fire is a range of its spec's schedules, and one with many left is cut in
    -- two. The one that ends with the last schedule there may ever be is the first of its slot.
    until_id    bigint      NOT NULL DEFAULT 9223372036854775807,
    previous_at timestamptz,
    -- The newest of the missed slots that a fire stands for, as many as a schedule is asked to skip: such a request is for slots,
    -- not for rows. Few schedules have one.
    combined    jsonb,
    PRIMARY KEY (spec_id, slot_at, until_id)
) WITH (fillfactor = 50);
-- The oldest fire first, without sorting all that are open at the top of the hour. The sum keeps it to the one
-- statement that looks for the oldest. The key comes last: on an empty table all ways cost the same, and the latest is taken.
CREATE INDEX firings_oldest ON mainspring.firings (slot_at, (spec_id + 0), until_id);

-- The ledger. Its key is the promise: one row for a slot, for ever.
CREATE TABLE mainspring.slots (
    schedule_id bigint      NOT NULL,
    slot_at     timestamptz NOT NULL,
    decided_at  timestamptz NOT NULL,
    since       timestamptz,
    job_id      bigint,
    disposition smallint    NOT NULL,
    reason      text,
    blocker     bigint,
    note        text,
    PRIMARY KEY (schedule_id, slot_at)
) PARTITION BY RANGE (slot_at);
CREATE TABLE mainspring.slots_default PARTITION OF mainspring.slots DEFAULT;

-- One partition a day, made ahead. Rows that came before their partition wait in the default one
-- and are moved over, so a store that nobody tended for a month loses nothing. Nobody may write into the default
-- partition between the move and the attachment: those rows would forbid it.
CREATE FUNCTION mainspring.add_partitions(parent text, key text, first_day date, days int) RETURNS int
LANGUAGE plpgsql SET search_path = pg_catalog AS $$
DECLARE
    day date;
    part text;
    made int := 0;
BEGIN
    FOR i IN 0 .. days - 1 LOOP
        day := first_day + i;
        part := parent || '_' || to_char(day, 'YYYYMMDD');
        CONTINUE WHEN to_regclass(format('mainspring.%I', part)) IS NOT NULL;
        EXECUTE format('LOCK TABLE mainspring.%I IN ACCESS EXCLUSIVE MODE', parent || '_default');
        EXECUTE format('CREATE TABLE mainspring.%I (LIKE mainspring.%I INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', part, parent);
        EXECUTE format('WITH moved AS (DELETE FROM mainspring.%I WHERE %I >= %L AND %I < %L RETURNING *) INSERT INTO mainspring.%I SELECT * FROM moved',
                       parent || '_default', key, day::timestamp AT TIME ZONE 'UTC', key, (day + 1)::timestamp AT TIME ZONE 'UTC', part);
        EXECUTE format('ALTER TABLE mainspring.%I ATTACH PARTITION mainspring.%I FOR VALUES FROM (%L) TO (%L)',
                       parent, part, day::timestamp AT TIME ZONE 'UTC', (day + 1)::timestamp AT TIME ZONE 'UTC');
        made := made + 1;
    END LOOP;
    RETURN made;
END $$;

-- Whole days that ended before `keep_from` go at once; their rows in the default partition too.
CREATE FUNCTION mainspring.drop_partitions(parent text, key text, keep_from timestamptz) RETURNS int
LANGUAGE plpgsql SET search_path = pg_catalog AS $$
DECLARE
    part text;
    gone int := 0;
    rows int;
BEGIN
    FOR part IN
        SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = to_regclass(format('mainspring.%I', parent)) AND c.relname ~ '_[0-9]{8}$'
          AND (to_date(right(c.relname, 8), 'YYYYMMDD') + 1)::timestamp AT TIME ZONE 'UTC' <= keep_from
    LOOP
        EXECUTE format('DROP TABLE mainspring.%I', part);
        gone := gone + 1;
    END LOOP;
    EXECUTE format('DELETE FROM mainspring.%I WHERE %I < %L', parent || '_default', key, keep_from);
    GET DIAGNOSTICS rows = ROW_COUNT;
    RETURN gone + rows;
END $$;

-- Slots that were dropped, by schedule: alerts ask for them. Other rows are in no index of this kind.
CREATE INDEX slots_dropped ON mainspring.slots (schedule_id, decided_at) WHERE disposition = 1 AND reason IN ('too_late', 'breaker');

CREATE TABLE mainspring.schedule_versions (
    schedule_id bigint      NOT NULL,
    version     int         NOT NULL,
    name        text        NOT NULL,
    change      text        NOT NULL,
    changed_at  timestamptz NOT NULL,
    author      text        NOT NULL,
    note        text,
    definition  text        NOT NULL,   -- the schedule as JSON, as it was from then on
    PRIMARY KEY (schedule_id, version)
);
CREATE INDEX schedule_versions_name ON mainspring.schedule_versions (name);

-- Leases of user code. A row stays for ever, released or not, so that its token only ever rises.
CREATE TABLE mainspring.leases (
    name        text        NOT NULL PRIMARY KEY,
    token       bigint      NOT NULL,   -- +1 with every new holder
    holder_id   bigint      NOT NULL,   -- random for each acquisition; 0: released
    holder      text        NOT NULL,   -- for people to read
    expires_at  timestamptz NOT NULL,
    acquired_at timestamptz NOT NULL
);

-- Business calendars: named, and a new row for every version. Triggers name both.
CREATE TABLE mainspring.calendars (
    name       text NOT NULL,
    version    int  NOT NULL,
    definition text NOT NULL,
    PRIMARY KEY (name, version)
);

CREATE TABLE mainspring.backfills (
    id           bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    schedule     text        NOT NULL,
    start_at     timestamptz NOT NULL,
    end_at       timestamptz NOT NULL,
    author       text        NOT NULL,
    max_active   int         NOT NULL,
    reverse      boolean     NOT NULL,
    reprocess    text        NOT NULL,
    created_at   timestamptz NOT NULL,
    ended_at     timestamptz,
    cancelled_by text
);
CREATE INDEX backfills_active ON mainspring.backfills (id) WHERE ended_at IS NULL;

CREATE TABLE mainspring.backfill_slots (
    backfill_id bigint      NOT NULL,
    place       int         NOT NULL,   -- the order in which they run
    schedule_id bigint      NOT NULL,
    slot_at     timestamptz NOT NULL,
    version     int         NOT NULL,
    seen_job_id bigint,                 -- what the ledger named when this was planned
    job_id      bigint,                 -- what was made of it; NULL with done: somebody else was faster
    done        boolean     NOT NULL DEFAULT false,
    PRIMARY KEY (backfill_id, place)
);
CREATE INDEX backfill_slots_pending ON mainspring.backfill_slots (backfill_id, place) WHERE NOT done;
CREATE INDEX backfill_slots_schedule ON mainspring.backfill_slots (schedule_id, slot_at);

-- Keys of jobs that must not be doubled. Only jobs that have one touch this table, and only when they are inserted:
-- whether a key is taken is read off the job it names.
CREATE TABLE mainspring.unique_keys (
    key    bytea  NOT NULL PRIMARY KEY,   -- SHA-256
    name   text   NOT NULL,               -- for people
    job_id bigint NOT NULL,
    until  timestamptz                    -- kept so long, whatever becomes of the job
);
CREATE INDEX unique_keys_name ON mainspring.unique_keys (name);

-- Limits. Only jobs that have one touch these tables, and only they have a line.
-- A job with limits waits before its limit keys with run_at = 9998-01-01, out of the way of claims, until a pass lets it
-- through. Its place among the limit holders is freed by what becomes of its row: nothing is written when it ends.
CREATE TABLE mainspring.limit_keys (
    id          int    GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name        text   NOT NULL,
    key         text   NOT NULL,   -- whose; empty: everybody's
    concurrency int,
    rate        int,
    period      interval,
    burst       int    NOT NULL,
    open_window int,
    tokens      float8 NOT NULL DEFAULT 0,
    refilled_at timestamptz,
    UNIQUE (name, key)
);

-- Jobs that wait for exactly the same limit keys stand in one line: if its first cannot pass, none of it can.
CREATE TABLE mainspring.limit_sets (
    id    int  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    limit_keys text NOT NULL UNIQUE   -- ids of limit keys, sorted, with commas between them
);

CREATE TABLE mainspring.limit_holders (
    limit_key_id int    NOT NULL,
    job_id  bigint NOT NULL,
    PRIMARY KEY (limit_key_id, job_id)
);

CREATE TABLE mainspring.queue_pauses (
    queue     text        NOT NULL PRIMARY KEY,
    paused_at timestamptz NOT NULL,
    paused_by text        NOT NULL,
    note      text
);

-- What runs say of themselves. Only jobs that use it touch any of this.

-- How far a run is; it counts only while its fence is the job's. Written over and over: a HOT update.
CREATE TABLE mainspring.progress (
    job_id   bigint           NOT NULL PRIMARY KEY,
    fence    int              NOT NULL,
    fraction double precision NOT NULL,
    note     text             NOT NULL,
    at       timestamptz      NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

-- Captured lines, kept as long as the run: a partition a day, as the runs have.
CREATE TABLE mainspring.run_logs (
    job_id      bigint      NOT NULL,
    finished_at timestamptz NOT NULL,
    worker_id   bigint      NOT NULL,
    fence       int         NOT NULL,
    text        text        NOT NULL
) PARTITION BY RANGE (finished_at);
CREATE INDEX run_logs_job ON mainspring.run_logs (job_id);
CREATE TABLE mainspring.run_logs_default PARTITION OF mainspring.run_logs DEFAULT;

-- Steps that a job's runs have done, for good: a run that comes after looks here before it acts. `value` is
-- for what a step answered. A row goes when its job has left the queue, the dead letters and history.
CREATE TABLE mainspring.steps (
    job_id  bigint      NOT NULL,
    name    text        NOT NULL,
    value   bytea,
    done_at timestamptz NOT NULL,
    PRIMARY KEY (job_id, name)
);

-- One job, in the transaction of whoever calls. A name or a priority level that is new is locked until that
-- transaction ends, so it is written only where it is not there yet. A priority level that is made for a paused queue is paused, too.
CREATE FUNCTION mainspring.put_job(new_task text, new_payload bytea, new_queue text, new_priority int,
                                   new_run_at timestamptz, new_delay interval, new_max_attempts int,
                                   stamp timestamptz, new_trace text DEFAULT NULL) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog AS $$
DECLARE
    job bigint;
    task int;
    queue int;
    at timestamptz := coalesce(stamp, now());
BEGIN
    SELECT t.id INTO task FROM mainspring.tasks t WHERE t.name = new_task;
    IF NOT FOUND THEN
        INSERT INTO mainspring.tasks (name) VALUES (new_task) ON CONFLICT DO NOTHING;
        SELECT t.id INTO STRICT task FROM mainspring.tasks t WHERE t.name = new_task;
    END IF;
    SELECT q.id INTO queue FROM mainspring.queues q WHERE q.name = new_queue;
    IF NOT FOUND THEN
        INSERT INTO mainspring.queues (name) VALUES (new_queue) ON CONFLICT DO NOTHING;
        SELECT q.id INTO STRICT queue FROM mainspring.queues q WHERE q.name = new_queue;
    END IF;
    IF NOT EXISTS (SELECT 1 FROM mainspring.priority_levels l WHERE l.queue_id = queue AND l.priority = new_priority) THEN
        INSERT INTO mainspring.priority_levels (queue_id, priority, paused)
        VALUES (queue, new_priority, EXISTS (SELECT 1 FROM mainspring.queue_pauses p WHERE p.queue = new_queue))
        ON CONFLICT DO NOTHING;
    END IF;
    job := nextval('mainspring.job_ids');
    INSERT INTO mainspring.jobs (id, queue_id, task_id, priority, run_at, enqueued_at, max_attempts, payload, trace)
    VALUES (job, queue, task, new_priority, coalesce(new_run_at, at + coalesce(new_delay, interval '0')), at, new_max_attempts,
            new_payload, new_trace);
    IF new_run_at IS NULL AND coalesce(new_delay, interval '0') <= interval '0' THEN
        -- Sent when the transaction commits, once for all its jobs.
        PERFORM pg_notify('mainspring', '');
    END IF;
    RETURN job;
END $$;

-- The door for every language and for triggers: SELECT mainspring.enqueue('invoice', '{"args": [7]}')
CREATE FUNCTION mainspring.enqueue(task text, payload jsonb DEFAULT '{}', queue text DEFAULT 'default', priority int DEFAULT 0,
                                   run_at timestamptz DEFAULT NULL, delay interval DEFAULT NULL, max_attempts int DEFAULT 1)
RETURNS bigint LANGUAGE plpgsql SET search_path = pg_catalog AS $$
DECLARE
    names CONSTANT text := '^(?!__)[A-Za-z0-9_]+([.:/-][A-Za-z0-9_]+)*$';
    wrong text;
BEGIN
    wrong := CASE
        WHEN task IS NULL OR task !~ names OR length(task) > 200
            THEN 'task: expected 1 to 200 ASCII letters, digits and _, in words joined by . : - or /, got ' || quote_nullable(left(task, 120))
        WHEN queue IS NULL OR queue !~ names OR length(queue) > 200
            THEN 'queue: expected 1 to 200 ASCII letters, digits and _, in words joined by . : - or /, got ' || quote_nullable(left(queue, 120))
        WHEN priority IS NULL OR priority NOT BETWEEN -100 AND 100
            THEN 'priority: expected a whole number from -100 to 100; higher runs first, got ' || coalesce(priority::text, 'NULL')
        WHEN max_attempts IS NULL OR max_attempts NOT BETWEEN 1 AND 1000
            THEN 'max_attempts: expected a whole number from 1 to 1000, got ' || coalesce(max_attempts::text, 'NULL')
        WHEN run_at IS NOT NULL AND delay IS NOT NULL
            THEN 'run_at: expected either delay or run_at, not both, got ' || quote_literal(run_at)
        WHEN delay < interval '0'
            THEN 'delay: expected no less than 0, got ' || quote_literal(delay)
        WHEN run_at IS NOT NULL AND (NOT isfinite(run_at) OR extract(year FROM run_at AT TIME ZONE 'UTC') NOT BETWEEN 2000 AND 2100)
            THEN 'run_at: expected a year from 2000 to 2100, got ' || quote_literal(run_at)
        WHEN payload IS NULL OR jsonb_typeof(payload) <> 'object' OR payload - 'args' - 'kwargs' <> '{}'
             OR jsonb_typeof(coalesce(payload -> 'args', '[]')) <> 'array'
             OR jsonb_typeof(coalesce(payload -> 'kwargs', '{}')) <> 'object'
            THEN 'payload: expected JSON such as {"args":[],"kwargs":{}}, got ' || quote_nullable(left(payload::text, 120))
        WHEN octet_length(payload::text) > 262144
            THEN 'payload: expected at most 262144 bytes of JSON, got ' || octet_length(payload::text) || ' bytes'
    END;
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION '%', wrong USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN mainspring.put_job(task, convert_to(payload::text, 'UTF8'), queue, priority, run_at, delay, max_attempts, NULL);
END $$;

CREATE TABLE mainspring.definitions (
    id         int         GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name       text        NOT NULL,
    version    int         NOT NULL,
    digest     bytea       NOT NULL,   -- SHA-256 of the definition
    definition text        NOT NULL,   -- JSON
    created_at timestamptz NOT NULL,
    UNIQUE (name, version),
    UNIQUE (name, digest)
);

CREATE TABLE mainspring.workflows (
    id            bigint      NOT NULL PRIMARY KEY,   -- that of the job that started it
    started_at    timestamptz NOT NULL,
    ended_at      timestamptz,
    paused_at     timestamptz,
    parent_id     bigint,
    forked_from   bigint,
    definition_id int         NOT NULL,
    nodes_left    int         NOT NULL,
    nodes_failed  int         NOT NULL DEFAULT 0,
    state         smallint    NOT NULL DEFAULT 0,
    name          text        NOT NULL,
    stopping      text,
    params        bytea       NOT NULL,
    step_ids      bigint[]    NOT NULL                -- one for each node, in the order of the definition
) WITH (fillfactor = 70);
CREATE INDEX workflows_ended ON mainspring.workflows (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX workflows_name ON mainspring.workflows (name, id);
CREATE INDEX workflows_running ON mainspring.workflows (id) WHERE state = 0;

CREATE TABLE mainspring.workflow_steps (
    id           bigint   NOT NULL PRIMARY KEY,   -- that of its job
    workflow_id  bigint   NOT NULL,
    ended_at     timestamptz,
    place        int      NOT NULL,               -- of its node in the definition
    item         int,                             -- of a map
    waits        int      NOT NULL,               -- parents that have not ended; items, once a map is live
    items_failed int      NOT NULL DEFAULT 0,
    fence        int      NOT NULL DEFAULT 0,     -- claims of its job before it was made again
    state        smallint NOT NULL DEFAULT 0,
    cause        text,
    result       bytea,
    error        jsonb
) WITH (fillfactor = 70);
CREATE INDEX workflow_steps_place ON mainspring.workflow_steps (workflow_id, place, item);

CREATE TABLE mainspring.workflow_orders (
    workflow_id bigint      NOT NULL,
    at          timestamptz NOT NULL,
    action         text        NOT NULL,
    author      text        NOT NULL,
    note        text
);
CREATE INDEX workflow_orders_workflow ON mainspring.workflow_orders (workflow_id, at);

-- Jobs of workflows that have left the queue, until somebody has dealt with it. Job 0: look at the workflow;
-- the workflow itself: its own job is gone.
CREATE TABLE mainspring.ended_steps (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    workflow_id bigint NOT NULL,
    job_id      bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);

-- However a job ends, its workflow hears of it, in the same transaction. A trigger, so that no statement can
-- forget it; its condition keeps it from jobs that have nothing to do with workflows.
CREATE FUNCTION mainspring.note_ending() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.workflow_id IS NOT NULL THEN
        INSERT INTO mainspring.ended_steps (workflow_id, job_id) VALUES (OLD.workflow_id, OLD.id);
    END IF;
    IF OLD.run_at = timestamptz '9997-01-01 00:00:00+00' THEN
        INSERT INTO mainspring.ended_steps (workflow_id, job_id)
        SELECT w.id, w.id FROM mainspring.workflows w WHERE w.id = OLD.id AND w.state = 0;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER jobs_ended AFTER DELETE ON mainspring.jobs FOR EACH ROW
WHEN (OLD.workflow_id IS NOT NULL OR OLD.run_at = timestamptz '9997-01-01 00:00:00+00')
EXECUTE FUNCTION mainspring.note_ending();

-- Events. The row is where those who send and those who begin to wait meet: each locks it first, so that one of them
-- always sees the other. Until somebody has sent it there is no moment.
CREATE TABLE mainspring.events (
    job_id  bigint NOT NULL,   -- whose; 0: everybody's
    name    text   NOT NULL,
    payload bytea,
    sent_at timestamptz,
    PRIMARY KEY (job_id, name)
);

-- A job waits as long as it has not been claimed again: until its fence is another.
CREATE TABLE mainspring.event_waits (
    job_id bigint NOT NULL PRIMARY KEY,
    name   text   NOT NULL,
    fence  int    NOT NULL
);
CREATE INDEX event_waits_name ON mainspring.event_waits (name);

-- Who may come in from outside. A token and a session are known by the SHA-256 of their secret, which is kept nowhere.
CREATE TABLE mainspring.tokens (
    id           bigint      GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    digest       bytea       NOT NULL UNIQUE CHECK (length(digest) = 32),
    name         text        NOT NULL,
    role         text        NOT NULL CHECK (role IN ('viewer', 'operator', 'admin')),
    scopes       text[]      NOT NULL,
    hint         text        NOT NULL,
    author       text        NOT NULL,
    created_at   timestamptz NOT NULL,
    expires_at   timestamptz,
    last_used_at timestamptz,
    revoked_at   timestamptz
);

CREATE TABLE mainspring.sessions (
    id        bigint      GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    digest    bytea       NOT NULL UNIQUE CHECK (length(digest) = 32),
    name      text        NOT NULL,
    role      text        NOT NULL CHECK (role IN ('viewer', 'operator', 'admin')),
    scopes    text[]      NOT NULL,
    token_id  bigint,   -- the token it was opened with, and ends with
    opened_at timestamptz NOT NULL,
    seen_at   timestamptz NOT NULL
);
CREATE INDEX sessions_token ON mainspring.sessions (token_id);
CREATE INDEX sessions_opened ON mainspring.sessions (opened_at);

-- What people and programs ordered. Numbered without gaps; `digest` covers the entry and the digest before it.
CREATE TABLE mainspring.audit_log (
    id       bigint      NOT NULL PRIMARY KEY,
    at       timestamptz NOT NULL,
    phase    text        NOT NULL CHECK (phase IN ('ordered', 'done', 'failed', 'refused')),
    action      text        NOT NULL,
    actor    text        NOT NULL,
    role     text        NOT NULL,
    via      text        NOT NULL,
    object   text        NOT NULL,
    details  bytea       NOT NULL,
    order_id bigint,   -- the entry that ordered what this one tells the end of
    address  text        NOT NULL,
    digest   bytea       NOT NULL
);
CREATE UNIQUE INDEX audit_log_order ON mainspring.audit_log (order_id) WHERE order_id IS NOT NULL;
CREATE INDEX audit_log_first ON mainspring.audit_log (id) WHERE order_id IS NULL;
CREATE INDEX audit_log_object ON mainspring.audit_log (object, id) WHERE order_id IS NULL;
CREATE INDEX audit_log_actor ON mainspring.audit_log (actor, id) WHERE order_id IS NULL;
CREATE INDEX audit_log_action ON mainspring.audit_log (action, id) WHERE order_id IS NULL;

-- The last entry: whoever appends holds this row until they have committed.
CREATE TABLE mainspring.audit_log_head (
    one    boolean NOT NULL PRIMARY KEY DEFAULT true CHECK (one),
    id     bigint  NOT NULL,
    digest bytea   NOT NULL
);
INSERT INTO mainspring.audit_log_head (id, digest) VALUES (0, decode(repeat('00', 32), 'hex'));

CREATE FUNCTION mainspring.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit log is append-only: % of % is refused', lower(TG_OP), TG_TABLE_NAME;
END
$$;

CREATE TRIGGER audit_log_stand BEFORE UPDATE OR DELETE ON mainspring.audit_log
    FOR EACH ROW EXECUTE FUNCTION mainspring.refuse_change();
CREATE TRIGGER audit_log_stay BEFORE TRUNCATE ON mainspring.audit_log
    FOR EACH STATEMENT EXECUTE FUNCTION mainspring.refuse_change();
CREATE TRIGGER audit_log_head_rises BEFORE UPDATE ON mainspring.audit_log_head
    FOR EACH ROW WHEN (new.id <= old.id) EXECUTE FUNCTION mainspring.refuse_change();
CREATE TRIGGER audit_log_head_stays BEFORE DELETE OR TRUNCATE ON mainspring.audit_log_head
    FOR EACH STATEMENT EXECUTE FUNCTION mainspring.refuse_change();

-- Requests that carry a key of their caller's, and what was answered: who asks again is answered the same.
CREATE TABLE mainspring.requests (
    caller text        NOT NULL,
    key    text        NOT NULL,
    digest bytea       NOT NULL,   -- SHA-256 of what was asked for
    answer bytea,                  -- JSON: a job's id, whether it was made, whether replaced
    at     timestamptz NOT NULL,
    PRIMARY KEY (caller, key)
);
CREATE INDEX requests_at ON mainspring.requests (at);

-- Processes whose lease ended without a word: their own rows are gone as soon as their jobs are given back.
CREATE TABLE mainspring.lost_processes (
    id      bigint      NOT NULL PRIMARY KEY,
    role    text        NOT NULL,
    name    text        NOT NULL,
    lost_at timestamptz NOT NULL
);
CREATE INDEX lost_processes_at ON mainspring.lost_processes (lost_at);

CREATE TABLE mainspring.alerts (
    id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    uid         bigint      NOT NULL,   -- random: names it to receivers, whatever becomes of the database
    rule        text        NOT NULL,
    subject     text        NOT NULL,
    severity    text        NOT NULL,
    sentence    text        NOT NULL,
    since       timestamptz NOT NULL,   -- when what is wrong began
    seen_at     timestamptz NOT NULL,   -- when it was first seen
    opened_at   timestamptz,            -- null: not yet seen for long enough
    clearing_at timestamptz,            -- not seen since then
    closed_at   timestamptz,
    repeats     integer     NOT NULL DEFAULT 0,
    repeated_at timestamptz,
    acked_at    timestamptz,
    acked_by    text
);
CREATE UNIQUE INDEX alerts_open ON mainspring.alerts (rule, subject) WHERE closed_at IS NULL;
CREATE INDEX alerts_closed ON mainspring.alerts (closed_at) WHERE closed_at IS NOT NULL;

-- What is to be said of it, and to whom: written with the alert, sent afterwards.
CREATE TABLE mainspring.alert_notes (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    alert_id   bigint      NOT NULL,
    kind       text        NOT NULL,
    place      integer     NOT NULL,   -- of repeats, which
    target     text        NOT NULL,   -- a digest of its address
    shown      text        NOT NULL,   -- the address without secrets
    state      text        NOT NULL DEFAULT 'waiting',
    due_at     timestamptz NOT NULL,   -- while it is sent: when it is taken as not sent
    batch      text,                   -- the id of the message, the same for every try
    tries      integer     NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL,
    ended_at   timestamptz,
    problem    text,
    UNIQUE (alert_id, kind, place, target)
);
CREATE INDEX alert_notes_due ON mainspring.alert_notes (due_at) WHERE ended_at IS NULL;

-- What happened, counted: by span (1, 10, 60 and 1440 minutes), task and queue. Not the record, which is runs and slots: a
-- process that is killed loses what it had not yet added. A row without a task and a queue is the fleet's own; one of
-- task and queue * is the sum of all others.
CREATE TABLE mainspring.stats (
    span   smallint    NOT NULL,   -- minutes
    at     timestamptz NOT NULL,   -- where they begin
    task   text        NOT NULL,
    queue  text        NOT NULL,
    counts int[]       NOT NULL,   -- by what is counted
    waits  int[]       NOT NULL,   -- how long jobs waited for a worker, or how late slots were: a histogram
    tooks  int[]       NOT NULL,   -- how long runs took: a histogram
    mark   bigint,                 -- how far the write-ahead log had come, in bytes
    PRIMARY KEY (span, at, task, queue)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 2000);

CREATE FUNCTION mainspring.added(int[], int[]) RETURNS int[]
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog AS $$
    SELECT array_agg(coalesce(a, 0) + coalesce(b, 0) ORDER BY place) FROM unnest($1, $2) WITH ORDINALITY AS n (a, b, place)
$$;

-- The identity of this database: random, made with its schema. A restored copy keeps it; a clone is given a new one.
CREATE TABLE mainspring.database_identity (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    id  uuid    NOT NULL DEFAULT gen_random_uuid()
);
INSERT INTO mainspring.database_identity DEFAULT VALUES;

-- That somebody watches: since when without a break, and last when. And the times in which nothing ran.
CREATE TABLE mainspring.watch_mark (
    one   boolean     PRIMARY KEY DEFAULT true CHECK (one),
    since timestamptz NOT NULL,
    at    timestamptz NOT NULL
);

CREATE TABLE mainspring.gaps (
    began_at timestamptz PRIMARY KEY,
    ended_at timestamptz NOT NULL
);

-- Rows that could not be read, moved here whole: see store/unreadable.py.
CREATE TABLE mainspring.unreadable_rows (
    id      bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind    text        NOT NULL,
    ref     text        NOT NULL,
    content jsonb       NOT NULL,
    at      timestamptz NOT NULL DEFAULT now()
);

CREATE FUNCTION mainspring.is_failure(failure jsonb) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT failure IS NULL OR jsonb_typeof(failure) = 'object'
        AND coalesce(jsonb_typeof(failure -> 'type'), '') = 'string' AND coalesce(jsonb_typeof(failure -> 'message'), '') = 'string'
        AND coalesce(jsonb_typeof(failure -> 'traceback'), 'string') = 'string'
        AND (failure -> 'attempt' IS NULL OR coalesce(failure ->> 'attempt', '') ~ '^-?[0-9]{1,18}$')
        AND coalesce(failure ->> 'at', '2000-01-01T') ~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}T'
$$;

-- What claims and passes compute with.
DO $$
DECLARE
    told record;
    far CONSTANT text := 'BETWEEN timestamptz ''1900-01-01 00:00:00+00'' AND timestamptz ''9999-12-31 00:00:00+00''';
BEGIN
    -- Every moment of every table, so that infinity is in none. History, which is in partitions, has no such constraints: the planner
    -- would read those of every partition for every statement. There a reader that meets such a row sets it aside.
    FOR told IN
        SELECT c.relname AS of_table, string_agg(format('%I %s', a.attname, far), ' AND ' ORDER BY a.attnum) AS holds
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
        WHERE c.relnamespace = 'mainspring'::regnamespace AND c.relkind = 'r' AND NOT c.relispartition
          AND a.attnum > 0 AND NOT a.attisdropped AND a.atttypid = 'timestamptz'::regtype
        GROUP BY c.relname
    LOOP
        EXECUTE format('ALTER TABLE mainspring.%I ADD CONSTRAINT %I CHECK (%s)', told.of_table, told.of_table || '_moments_readable', told.holds);
    END LOOP;
    FOR told IN SELECT * FROM (VALUES
        ('processes', 'lease', 'lease BETWEEN interval ''0'' AND interval ''3660000 days'''),
        ('jobs', 'numbers', 'fence BETWEEN 0 AND 2147483646 AND failures BETWEEN 0 AND 32766 AND crashes BETWEEN 0 AND 32766 AND max_attempts BETWEEN 1 AND 32766'),
        ('specs', 'catch_up', 'catch_up BETWEEN interval ''-1 second'' AND interval ''3660000 days'''),
        ('schedules', 'lengths', 'catch_up BETWEEN interval ''0'' AND interval ''3660000 days'' AND offset_by BETWEEN interval ''0'' AND interval ''3660000 days'''
                                 ' AND jitter BETWEEN interval ''0'' AND interval ''3660000 days'' AND expires_after BETWEEN interval ''0'' AND interval ''3660000 days'''),
        ('schedules', 'words', 'misfire IN (''latest'', ''all'', ''skip'') AND overlap IN (''skip'', ''queue_one'', ''queue_all'', ''allow'', ''replace'')'),
        ('schedules', 'numbers', 'max_attempts BETWEEN 1 AND 32766 AND overlap_limit >= 0 AND skips >= 0'),
        ('limit_keys', 'numbers', 'concurrency >= 0 AND rate >= 0 AND burst >= 0 AND open_window >= 0 AND tokens BETWEEN -1e15 AND 1e15'),
        ('leases', 'numbers', 'token BETWEEN 0 AND 9223372036854775806'),
        ('workflows', 'numbers', 'state BETWEEN 0 AND 3'),
        ('workflow_steps', 'numbers', 'state BETWEEN 0 AND 5')
    ) AS t (of_table, about, holds)
    LOOP
        EXECUTE format('ALTER TABLE mainspring.%I ADD CONSTRAINT %I CHECK (%s)', told.of_table, told.of_table || '_' || told.about || '_readable', told.holds);
    END LOOP;
END $$;
