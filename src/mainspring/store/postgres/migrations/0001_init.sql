-- The whole first layout. Every name is qualified: no search_path is trusted or needed.

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
CREATE TABLE mainspring.lanes (
    queue_id int      NOT NULL,
    priority smallint NOT NULL,
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
    errors       jsonb
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

-- History: append-only, a partition a day, pruned by dropping partitions.
CREATE TABLE mainspring.runs (
    job_id      bigint      NOT NULL,
    finished_at timestamptz NOT NULL,
    started_at  timestamptz,             -- null: ended before any handler began
    enqueued_at timestamptz NOT NULL,
    run_at      timestamptz NOT NULL,
    worker_id   bigint      NOT NULL,
    schedule_id bigint,
    slot_at     timestamptz,
    queue_id    int         NOT NULL,
    task_id     int         NOT NULL,
    fence       int         NOT NULL,
    priority    smallint    NOT NULL,
    max_attempts smallint   NOT NULL,
    failures    smallint    NOT NULL,    -- before this run
    crashes     smallint    NOT NULL,
    verdict     smallint    NOT NULL,
    payload     bytea,                   -- kept with the run that ended the job, unless it is dead
    result      bytea,
    error       jsonb
) PARTITION BY RANGE (finished_at);
-- Ids nearly rise with time, so this index is filled at its right edge and stays cheap.
CREATE INDEX runs_job ON mainspring.runs (job_id);
CREATE TABLE mainspring.runs_default PARTITION OF mainspring.runs DEFAULT;

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
    errors       jsonb       NOT NULL
);

-- Processes. A beat touches one row and no index.
CREATE TABLE mainspring.members (
    id          bigint      NOT NULL PRIMARY KEY,  -- random per process start
    role        text        NOT NULL,
    name        text        NOT NULL,
    queues      text[]      NOT NULL,
    tasks       text[]      NOT NULL,
    version     text        NOT NULL,
    tzdata      text        NOT NULL,
    started_at  timestamptz NOT NULL,
    lease_until timestamptz NOT NULL,
    dead        boolean     NOT NULL DEFAULT false
) WITH (fillfactor = 50);

-- A trigger shared by every schedule that has it. This is what falls due.
CREATE TABLE mainspring.specs (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    trigger      text        NOT NULL UNIQUE,
    next_at      timestamptz,                     -- null: no slot is left
    following_at timestamptz,
    planned      boolean     NOT NULL             -- following_at is known
) WITH (fillfactor = 70);
CREATE INDEX specs_due ON mainspring.specs (next_at);
CREATE INDEX specs_unplanned ON mainspring.specs (id) WHERE NOT planned;

CREATE TABLE mainspring.schedules (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name         text        NOT NULL UNIQUE,
    spec_id      bigint      NOT NULL,
    task_id      int         NOT NULL,
    queue_id     int         NOT NULL,
    priority     smallint    NOT NULL,
    max_attempts smallint    NOT NULL,
    payload      bytea       NOT NULL,
    misfire      text        NOT NULL,
    catch_up     interval    NOT NULL,
    version      int         NOT NULL DEFAULT 1,
    active_from  timestamptz NOT NULL
);
CREATE INDEX schedules_spec ON mainspring.schedules (spec_id, id);

-- A slot being fired: how far through its schedules we are.
CREATE TABLE mainspring.fires (
    spec_id bigint      NOT NULL,
    slot_at timestamptz NOT NULL,
    since   timestamptz,
    last_id bigint      NOT NULL DEFAULT 0,
    PRIMARY KEY (spec_id, slot_at)
) WITH (fillfactor = 50);

-- The ledger. Its key is the promise: one row for a slot, for ever.
CREATE TABLE mainspring.slots (
    schedule_id bigint      NOT NULL,
    slot_at     timestamptz NOT NULL,
    decided_at  timestamptz NOT NULL,
    since       timestamptz,
    job_id      bigint,
    disposition smallint    NOT NULL,
    reason      text,
    PRIMARY KEY (schedule_id, slot_at)
) PARTITION BY RANGE (slot_at);
CREATE TABLE mainspring.slots_default PARTITION OF mainspring.slots DEFAULT;

-- One partition a day, made ahead. Rows that came before their partition wait in the default one
-- and are moved over, so a store that nobody tended for a month loses nothing.
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
