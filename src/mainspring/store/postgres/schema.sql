CREATE SEQUENCE mainspring.job_ids AS bigint START 1 INCREMENT 1 CACHE 1;
CREATE TABLE mainspring.alert_notes (
    id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
    alert_id bigint NOT NULL,
    kind text NOT NULL,
    place integer NOT NULL,
    target text NOT NULL,
    shown text NOT NULL,
    state text DEFAULT 'waiting'::text NOT NULL,
    due_at timestamp with time zone NOT NULL,
    batch text,
    tries integer DEFAULT 0 NOT NULL,
    created_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    problem text,
    CONSTRAINT alert_notes_alert_id_kind_place_target_key UNIQUE (alert_id, kind, place, target),
    CONSTRAINT alert_notes_moments_readable CHECK ((((due_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (due_at <= '9999-12-31 00:00:00+00'::timestamp with time zone)) AND ((created_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (created_at <= '9999-12-31 00:00:00+00'::timestamp with time zone)) AND ((ended_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (ended_at <= '9999-12-31 00:00:00+00'::timestamp with time zone)))),
    CONSTRAINT alert_notes_pkey PRIMARY KEY (id)
);
CREATE INDEX alert_notes_due ON mainspring.alert_notes USING btree (due_at) WHERE (ended_at IS NULL);
CREATE TABLE mainspring.alerts (
    id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
    uid bigint NOT NULL,
    rule text NOT NULL,
    subject text NOT NULL,
    severity text NOT NULL,
    sentence text NOT NULL,
    since timestamp with time zone NOT NULL,
    seen_at timestamp with time zone NOT NULL,
    opened_at timestamp with time zone,
    clearing_at timestamp with time zone,
    closed_at timestamp with time zone,
    repeats integer DEFAULT 0 NOT NULL,
    repeated_at timestamp with time zone,
    acked_at timestamp with time zone,
    acked_by text,
    CONSTRAINT alerts_moments_readable CHECK ((((since >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (since <= '9999-12-31 00:00:00+00'::timestamp with time zone)) AND ((seen_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (seen_at <= '9999-12-31 00:00:00+00'::timestamp with time zone)) AND ((opened_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (opened_at <= '9999-12-31 00:00:00+00'::timestamp with time zone)) AND ((clearing_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (clearing_at <= '9999-12-31 00:00:00+00'::timestamp with time zone)) AND ((closed_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (closed_at <= '9999-12-31 00:00:00+00'::timestamp with time zone)) AND ((repeated_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (repeated_at <= '9999-12-31 00:00:00+00'::timestamp with time zone)) AND ((acked_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (acked_at <= '9999-12-31 00:00:00+00'::timestamp with time zone)))),
    CONSTRAINT alerts_pkey PRIMARY KEY (id)
);
CREATE INDEX alerts_closed ON mainspring.alerts USING btree (closed_at) WHERE (closed_at IS NOT NULL);
CREATE UNIQUE INDEX alerts_open ON mainspring.alerts USING btree (rule, subject) WHERE (closed_at IS NULL);
CREATE TABLE mainspring.audit_log (
    id bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    phase text NOT NULL,
    action text NOT NULL,
    actor text NOT NULL,
    role text NOT NULL,
    via text NOT NULL,
    object text NOT NULL,
    details bytea NOT NULL,
    order_id bigint,
    address text NOT NULL,
    digest bytea NOT NULL,
    CONSTRAINT audit_log_moments_readable CHECK (((at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (at <= '9999-12-31 00:00:00+00'::timestamp with time zone))),
    CONSTRAINT audit_log_phase_check CHECK ((phase = ANY (ARRAY['ordered'::text, 'done'::text, 'failed'::text, 'refused'::text]))),
    CONSTRAINT audit_log_pkey PRIMARY KEY (id)
);
CREATE INDEX audit_log_action ON mainspring.audit_log USING btree (action, id) WHERE (order_id IS NULL);
CREATE INDEX audit_log_actor ON mainspring.audit_log USING btree (actor, id) WHERE (order_id IS NULL);
CREATE INDEX audit_log_first ON mainspring.audit_log USING btree (id) WHERE (order_id IS NULL);
CREATE INDEX audit_log_object ON mainspring.audit_log USING btree (object, id) WHERE (order_id IS NULL);
CREATE UNIQUE INDEX audit_log_order ON mainspring.audit_log USING btree (order_id) WHERE (order_id IS NOT NULL);
CREATE TABLE mainspring.audit_log_head (
    one boolean DEFAULT true NOT NULL,
    id bigint NOT NULL,
    digest bytea NOT NULL,
    CONSTRAINT audit_log_head_one_check CHECK (one),
    CONSTRAINT audit_log_head_pkey PRIMARY KEY (one)
);
CREATE TABLE mainspring.backfill_slots (
    backfill_id bigint NOT NULL,
    place integer NOT NULL,
    schedule_id bigint NOT NULL,
    slot_at timestamp with time zone NOT NULL,
    version integer NOT NULL,
    seen_job_id bigint,
    job_id bigint,
    done boolean DEFAULT false NOT NULL,
    CONSTRAINT backfill_slots_moments_readable CHECK (((slot_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (slot_at <= '9999-12-31 00:00:00+00'::timestamp with time zone))),
    CONSTRAINT backfill_slots_pkey PRIMARY KEY (backfill_id, place)
);
CREATE INDEX backfill_slots_pending ON mainspring.backfill_slots USING btree (backfill_id, place) WHERE (NOT done);
CREATE INDEX backfill_slots_schedule ON mainspring.backfill_slots USING btree (schedule_id, slot_at);
CREATE TABLE mainspring.backfills (
    id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
    schedule text NOT NULL,
    start_at timestamp with time zone NOT NULL,
    end_at timestamp with time zone NOT NULL,
    author text NOT NULL,
    max_active integer NOT NULL,
    reverse boolean NOT NULL,
    reprocess text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    cancelled_by text,
    CONSTRAINT backfills_moments_readable CHECK ((((start_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (start_at <= '9999-12-31 00:00:00+00'::timestamp with time zone)) AND ((end_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (end_at <= '9999-12-31 00:00:00+00'::timestamp with time zone)) AND ((created_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (created_at <= '9999-12-31 00:00:00+00'::timestamp with time zone)) AND ((ended_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (ended_at <= '9999-12-31 00:00:00+00'::timestamp with time zone)))),
    CONSTRAINT backfills_pkey PRIMARY KEY (id)
);
CREATE INDEX backfills_active ON mainspring.backfills USING btree (id) WHERE (ended_at IS NULL);
CREATE TABLE mainspring.calendars (
    name text NOT NULL,
    version integer NOT NULL,
    definition text NOT NULL,
    CONSTRAINT calendars_pkey PRIMARY KEY (name, version)
);
CREATE TABLE mainspring.database_identity (
    one boolean DEFAULT true NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    CONSTRAINT database_identity_one_check CHECK (one),
    CONSTRAINT database_identity_pkey PRIMARY KEY (one)
);
CREATE TABLE mainspring.dead_jobs (
    id bigint NOT NULL,
    run_at timestamp with time zone NOT NULL,
    enqueued_at timestamp with time zone NOT NULL,
    died_at timestamp with time zone NOT NULL,
    schedule_id bigint,
    slot_at timestamp with time zone,
    queue_id integer NOT NULL,
    task_id integer NOT NULL,
    fence integer NOT NULL,
    priority smallint NOT NULL,
    max_attempts smallint NOT NULL,
    failures smallint NOT NULL,
    crashes smallint NOT NULL,
    reason text NOT NULL,
    payload bytea NOT NULL,
    errors jsonb NOT NULL,
    limit_set_id integer,
    expires_at timestamp with time zone,
    workflow_id bigint,
    trace text,
    error text DEFAULT COALESCE(((errors -> '-1'::integer) ->> 'type'::text), ''::text),
    line text DEFAULT "left"(split_part(COALESCE(((errors -> '-1'::integer) ->> 'message'::text), ''::text), chr(10), 1), 200),
    CONSTRAINT dead_jobs_moments_readable CHECK ((((run_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (run_at <= '9999-12-31 00:00:00+00'::timestamp with time zone)) AND ((enqueued_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (enqueued_at <= '9999-12-31 00:00:00+00'::timestamp with time zone)) AND ((died_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (died_at <= '9999-12-31 00:00:00+00'::timestamp with time zone)) AND ((slot_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (slot_at <= '9999-12-31 00:00:00+00'::timestamp with time zone)) AND ((expires_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (expires_at <= '9999-12-31 00:00:00+00'::timestamp with time zone)))),
    CONSTRAINT dead_jobs_pkey PRIMARY KEY (id)
);
CREATE INDEX dead_jobs_died ON mainspring.dead_jobs USING btree (died_at);
CREATE INDEX dead_jobs_schedule ON mainspring.dead_jobs USING btree (schedule_id, slot_at) WHERE ((schedule_id IS NOT NULL) AND (slot_at IS NOT NULL));
CREATE INDEX dead_jobs_task ON mainspring.dead_jobs USING btree (task_id, died_at);
CREATE TABLE mainspring.definitions (
    id integer GENERATED ALWAYS AS IDENTITY NOT NULL,
    name text NOT NULL,
    version integer NOT NULL,
    digest bytea NOT NULL,
    definition text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    CONSTRAINT definitions_moments_readable CHECK (((created_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (created_at <= '9999-12-31 00:00:00+00'::timestamp with time zone))),
    CONSTRAINT definitions_name_digest_key UNIQUE (name, digest),
    CONSTRAINT definitions_name_version_key UNIQUE (name, version),
    CONSTRAINT definitions_pkey PRIMARY KEY (id)
);
CREATE TABLE mainspring.ended_steps (
    id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
    workflow_id bigint NOT NULL,
    job_id bigint NOT NULL,
    CONSTRAINT ended_steps_pkey PRIMARY KEY (id)
) WITH (
    autovacuum_vacuum_cost_delay=0,
    autovacuum_vacuum_scale_factor=0,
    autovacuum_vacuum_threshold=2000,
    vacuum_truncate=off
);
CREATE TABLE mainspring.event_waits (
    job_id bigint NOT NULL,
    name text NOT NULL,
    fence integer NOT NULL,
    CONSTRAINT event_waits_pkey PRIMARY KEY (job_id)
);
CREATE INDEX event_waits_name ON mainspring.event_waits USING btree (name);
CREATE TABLE mainspring.events (
    job_id bigint NOT NULL,
    name text NOT NULL,
    payload bytea,
    sent_at timestamp with time zone,
    CONSTRAINT events_moments_readable CHECK (((sent_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (sent_at <= '9999-12-31 00:00:00+00'::timestamp with time zone))),
    CONSTRAINT events_pkey PRIMARY KEY (job_id, name)
);
CREATE TABLE mainspring.firings (
    spec_id bigint NOT NULL,
    slot_at timestamp with time zone NOT NULL,
    since timestamp with time zone,
    last_id bigint DEFAULT 0 NOT NULL,
    skip text,
    note text,
    until_id bigint DEFAULT '9223372036854775807'::bigint NOT NULL,
    previous_at timestamp with time zone,
    combined jsonb,
    CONSTRAINT firings_moments_readable CHECK ((((slot_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (slot_at <= '9999-12-31 00:00:00+00'::timestamp with time zone)) AND ((since >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (since <= '9999-12-31 00:00:00+00'::timestamp with time zone)) AND ((previous_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (previous_at <= '9999-12-31 00:00:00+00'::timestamp with time zone)))),
    CONSTRAINT firings_pkey PRIMARY KEY (spec_id, slot_at, until_id)
) WITH (
    fillfactor=50
);
CREATE INDEX firings_oldest ON mainspring.firings USING btree (slot_at, ((spec_id + 0)), until_id);
CREATE TABLE mainspring.gaps (
    began_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone NOT NULL,
    CONSTRAINT gaps_moments_readable CHECK ((((began_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (began_at <= '9999-12-31 00:00:00+00'::timestamp with time zone)) AND ((ended_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (ended_at <= '9999-12-31 00:00:00+00'::timestamp with time zone)))),
    CONSTRAINT gaps_pkey PRIMARY KEY (began_at)
);
CREATE TABLE mainspring.jobs (
    id bigint NOT NULL,
    run_at timestamp with time zone NOT NULL,
    enqueued_at timestamp with time zone NOT NULL,
    claimed_at timestamp with time zone DEFAULT '1970-01-01 00:00:00+00'::timestamp with time zone NOT NULL,
    worker_id bigint DEFAULT 0 NOT NULL,
    schedule_id bigint,
    slot_at timestamp with time zone,
    queue_id integer NOT NULL,
    task_id integer NOT NULL,
    fence integer DEFAULT 0 NOT NULL,
    priority smallint NOT NULL,
    max_attempts smallint NOT NULL,
    failures smallint DEFAULT 0 NOT NULL,
    crashes smallint DEFAULT 0 NOT NULL,
    payload bytea NOT NULL,
    errors jsonb,
    backfill_id bigint,
    limit_set_id integer,
    due_at timestamp with time zone,
    expires_at timestamp with time zone,
    workflow_id bigint,
    trace text,
    orphan integer,
    previous_at timestamp with time zone,
    CONSTRAINT jobs_moments_readable CHECK ((((run_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (run_at <= '9999-12-31 00:00:00+00'::timestamp with time zone)) AND ((enqueued_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (enqueued_at <= '9999-12-31 00:00:00+00'::timestamp with time zone)) AND ((claimed_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (claimed_at <= '9999-12-31 00:00:00+00'::timestamp with time zone)) AND ((slot_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (slot_at <= '9999-12-31 00:00:00+00'::timestamp with time zone)) AND ((due_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (due_at <= '9999-12-31 00:00:00+00'::timestamp with time zone)) AND ((expires_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (expires_at <= '9999-12-31 00:00:00+00'::timestamp with time zone)) AND ((previous_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (previous_at <= '9999-12-31 00:00:00+00'::timestamp with time zone)))),
    CONSTRAINT jobs_numbers_readable CHECK ((((fence >= 0) AND (fence <= 2147483646)) AND ((failures >= 0) AND (failures <= 32766)) AND ((crashes >= 0) AND (crashes <= 32766)) AND ((max_attempts >= 1) AND (max_attempts <= 32766)))),
    CONSTRAINT jobs_pkey PRIMARY KEY (id)
) WITH (
    autovacuum_analyze_scale_factor=0,
    autovacuum_analyze_threshold=20000,
    autovacuum_vacuum_cost_delay=0,
    autovacuum_vacuum_insert_scale_factor=0,
    autovacuum_vacuum_insert_threshold=50000,
    autovacuum_vacuum_scale_factor=0,
    autovacuum_vacuum_threshold=2000,
    fillfactor=50,
    vacuum_truncate=off,
    toast.autovacuum_vacuum_scale_factor=0,
    toast.autovacuum_vacuum_threshold=2000,
    toast.vacuum_truncate=off
);
CREATE INDEX jobs_backfill ON mainspring.jobs USING btree (backfill_id) WHERE (backfill_id IS NOT NULL);
CREATE INDEX jobs_expiring ON mainspring.jobs USING btree (expires_at) WHERE (expires_at IS NOT NULL);
CREATE INDEX jobs_held ON mainspring.jobs USING btree (schedule_id, id) WHERE (run_at = '9999-01-01 00:00:00+00'::timestamp with time zone);
CREATE INDEX jobs_limited ON mainspring.jobs USING btree (limit_set_id, priority DESC, due_at, id) WHERE (run_at = '9998-01-01 00:00:00+00'::timestamp with time zone);
CREATE INDEX jobs_orphans ON mainspring.jobs USING btree (queue_id, priority, crashes, run_at, id) WHERE (orphan IS NOT NULL);
CREATE INDEX jobs_ready ON mainspring.jobs USING btree (queue_id, priority, run_at, ((id + 0))) WITH (fillfactor='90', deduplicate_items=off);
CREATE INDEX jobs_schedule ON mainspring.jobs USING btree (schedule_id) WHERE (schedule_id IS NOT NULL);
CREATE TABLE mainspring.leases (
    name text NOT NULL,
    token bigint NOT NULL,
    holder_id bigint NOT NULL,
    holder text NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    acquired_at timestamp with time zone NOT NULL,
    CONSTRAINT leases_moments_readable CHECK ((((expires_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (expires_at <= '9999-12-31 00:00:00+00'::timestamp with time zone)) AND ((acquired_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (acquired_at <= '9999-12-31 00:00:00+00'::timestamp with time zone)))),
    CONSTRAINT leases_numbers_readable CHECK (((token >= 0) AND (token <= '9223372036854775806'::bigint))),
    CONSTRAINT leases_pkey PRIMARY KEY (name)
);
CREATE TABLE mainspring.limit_holders (
    limit_key_id integer NOT NULL,
    job_id bigint NOT NULL,
    CONSTRAINT limit_holders_pkey PRIMARY KEY (limit_key_id, job_id)
);
CREATE TABLE mainspring.limit_keys (
    id integer GENERATED ALWAYS AS IDENTITY NOT NULL,
    name text NOT NULL,
    key text NOT NULL,
    concurrency integer,
    rate integer,
    period interval,
    burst integer NOT NULL,
    open_window integer,
    tokens double precision DEFAULT 0 NOT NULL,
    refilled_at timestamp with time zone,
    CONSTRAINT limit_keys_moments_readable CHECK (((refilled_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (refilled_at <= '9999-12-31 00:00:00+00'::timestamp with time zone))),
    CONSTRAINT limit_keys_name_key_key UNIQUE (name, key),
    CONSTRAINT limit_keys_numbers_readable CHECK (((concurrency >= 0) AND (rate >= 0) AND (burst >= 0) AND (open_window >= 0) AND ((tokens >= ('-1000000000000000'::numeric)::double precision) AND (tokens <= ('1000000000000000'::numeric)::double precision)))),
    CONSTRAINT limit_keys_pkey PRIMARY KEY (id)
);
CREATE TABLE mainspring.limit_sets (
    id integer GENERATED ALWAYS AS IDENTITY NOT NULL,
    limit_keys text NOT NULL,
    CONSTRAINT limit_sets_limit_keys_key UNIQUE (limit_keys),
    CONSTRAINT limit_sets_pkey PRIMARY KEY (id)
);
CREATE TABLE mainspring.lost_processes (
    id bigint NOT NULL,
    role text NOT NULL,
    name text NOT NULL,
    lost_at timestamp with time zone NOT NULL,
    CONSTRAINT lost_processes_moments_readable CHECK (((lost_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (lost_at <= '9999-12-31 00:00:00+00'::timestamp with time zone))),
    CONSTRAINT lost_processes_pkey PRIMARY KEY (id)
);
CREATE INDEX lost_processes_at ON mainspring.lost_processes USING btree (lost_at);
CREATE TABLE mainspring.migrations (
    version integer NOT NULL,
    name text NOT NULL,
    checksum text NOT NULL,
    applied_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT migrations_moments_readable CHECK (((applied_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (applied_at <= '9999-12-31 00:00:00+00'::timestamp with time zone))),
    CONSTRAINT migrations_pkey PRIMARY KEY (version)
);
CREATE TABLE mainspring.priority_levels (
    queue_id integer NOT NULL,
    priority smallint NOT NULL,
    paused boolean DEFAULT false NOT NULL,
    CONSTRAINT priority_levels_pkey PRIMARY KEY (queue_id, priority)
);
CREATE TABLE mainspring.processes (
    id bigint NOT NULL,
    role text NOT NULL,
    name text NOT NULL,
    queues text[] NOT NULL,
    tasks text[] NOT NULL,
    version text NOT NULL,
    tzdata text NOT NULL,
    started_at timestamp with time zone NOT NULL,
    lease_until timestamp with time zone NOT NULL,
    dead boolean DEFAULT false NOT NULL,
    skew interval,
    holding bigint[] DEFAULT '{}'::bigint[] NOT NULL,
    lease interval DEFAULT '00:00:15'::interval NOT NULL,
    CONSTRAINT processes_lease_readable CHECK (((lease >= '00:00:00'::interval) AND (lease <= '3660000 days'::interval))),
    CONSTRAINT processes_moments_readable CHECK ((((started_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (started_at <= '9999-12-31 00:00:00+00'::timestamp with time zone)) AND ((lease_until >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (lease_until <= '9999-12-31 00:00:00+00'::timestamp with time zone)))),
    CONSTRAINT processes_pkey PRIMARY KEY (id)
) WITH (
    fillfactor=50
);
CREATE TABLE mainspring.progress (
    job_id bigint NOT NULL,
    fence integer NOT NULL,
    fraction double precision NOT NULL,
    note text NOT NULL,
    at timestamp with time zone NOT NULL,
    CONSTRAINT progress_moments_readable CHECK (((at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (at <= '9999-12-31 00:00:00+00'::timestamp with time zone))),
    CONSTRAINT progress_pkey PRIMARY KEY (job_id)
) WITH (
    autovacuum_vacuum_scale_factor=0,
    autovacuum_vacuum_threshold=2000,
    fillfactor=50
);
CREATE TABLE mainspring.queue_pauses (
    queue text NOT NULL,
    paused_at timestamp with time zone NOT NULL,
    paused_by text NOT NULL,
    note text,
    CONSTRAINT queue_pauses_moments_readable CHECK (((paused_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (paused_at <= '9999-12-31 00:00:00+00'::timestamp with time zone))),
    CONSTRAINT queue_pauses_pkey PRIMARY KEY (queue)
);
CREATE TABLE mainspring.queues (
    id integer GENERATED ALWAYS AS IDENTITY NOT NULL,
    name text NOT NULL,
    CONSTRAINT queues_name_key UNIQUE (name),
    CONSTRAINT queues_pkey PRIMARY KEY (id)
);
CREATE TABLE mainspring.requests (
    caller text NOT NULL,
    key text NOT NULL,
    digest bytea NOT NULL,
    answer bytea,
    at timestamp with time zone NOT NULL,
    CONSTRAINT requests_moments_readable CHECK (((at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (at <= '9999-12-31 00:00:00+00'::timestamp with time zone))),
    CONSTRAINT requests_pkey PRIMARY KEY (caller, key)
);
CREATE INDEX requests_at ON mainspring.requests USING btree (at);
CREATE TABLE mainspring.run_logs (
    job_id bigint NOT NULL,
    finished_at timestamp with time zone NOT NULL,
    worker_id bigint NOT NULL,
    fence integer NOT NULL,
    text text NOT NULL
) PARTITION BY RANGE (finished_at);
CREATE INDEX run_logs_job ON ONLY mainspring.run_logs USING btree (job_id);
CREATE TABLE mainspring.run_logs_default PARTITION OF mainspring.run_logs DEFAULT;
CREATE INDEX run_logs_default_job_id_idx ON mainspring.run_logs_default USING btree (job_id);
CREATE TABLE mainspring.runs (
    job_id bigint NOT NULL,
    finished_at timestamp with time zone NOT NULL,
    started_at timestamp with time zone,
    enqueued_at timestamp with time zone NOT NULL,
    run_at timestamp with time zone NOT NULL,
    worker_id bigint NOT NULL,
    schedule_id bigint,
    slot_at timestamp with time zone,
    queue_id integer NOT NULL,
    task_id integer NOT NULL,
    fence integer NOT NULL,
    priority smallint NOT NULL,
    max_attempts smallint NOT NULL,
    failures smallint NOT NULL,
    crashes smallint NOT NULL,
    verdict smallint NOT NULL,
    payload bytea,
    result bytea,
    error jsonb
) PARTITION BY RANGE (finished_at);
CREATE INDEX runs_job ON ONLY mainspring.runs USING btree (job_id);
CREATE INDEX runs_results ON ONLY mainspring.runs USING btree (finished_at) WHERE (result <> '\x'::bytea);
CREATE INDEX runs_schedule ON ONLY mainspring.runs USING btree (schedule_id, ((job_id + 0))) WHERE (schedule_id IS NOT NULL);
CREATE INDEX runs_task ON ONLY mainspring.runs USING btree (task_id, ((job_id + 0)));
CREATE INDEX runs_unusual ON ONLY mainspring.runs USING btree (verdict, ((job_id + 0))) WHERE (verdict <> 0);
CREATE TABLE mainspring.runs_default PARTITION OF mainspring.runs DEFAULT;
CREATE INDEX runs_default_finished_at_idx ON mainspring.runs_default USING btree (finished_at) WHERE (result <> '\x'::bytea);
CREATE INDEX runs_default_job_id_idx ON mainspring.runs_default USING btree (job_id);
CREATE INDEX runs_default_schedule_id_expr_idx ON mainspring.runs_default USING btree (schedule_id, ((job_id + 0))) WHERE (schedule_id IS NOT NULL);
CREATE INDEX runs_default_task_id_expr_idx ON mainspring.runs_default USING btree (task_id, ((job_id + 0)));
CREATE INDEX runs_default_verdict_expr_idx ON mainspring.runs_default USING btree (verdict, ((job_id + 0))) WHERE (verdict <> 0);
CREATE TABLE mainspring.schedule_versions (
    schedule_id bigint NOT NULL,
    version integer NOT NULL,
    name text NOT NULL,
    change text NOT NULL,
    changed_at timestamp with time zone NOT NULL,
    author text NOT NULL,
    note text,
    definition text NOT NULL,
    CONSTRAINT schedule_versions_moments_readable CHECK (((changed_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (changed_at <= '9999-12-31 00:00:00+00'::timestamp with time zone))),
    CONSTRAINT schedule_versions_pkey PRIMARY KEY (schedule_id, version)
);
CREATE INDEX schedule_versions_name ON mainspring.schedule_versions USING btree (name);
CREATE TABLE mainspring.schedules (
    id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
    name text NOT NULL,
    spec_id bigint NOT NULL,
    task_id integer NOT NULL,
    queue_id integer NOT NULL,
    priority smallint NOT NULL,
    max_attempts smallint NOT NULL,
    payload bytea NOT NULL,
    misfire text NOT NULL,
    catch_up interval NOT NULL,
    version integer DEFAULT 1 NOT NULL,
    active_from timestamp with time zone NOT NULL,
    overlap text DEFAULT 'skip'::text NOT NULL,
    overlap_limit integer DEFAULT 1 NOT NULL,
    offset_by interval DEFAULT '00:00:00'::interval NOT NULL,
    jitter interval DEFAULT '00:00:00'::interval NOT NULL,
    max_fires integer,
    fires_left integer,
    skips integer DEFAULT 0 NOT NULL,
    edited boolean DEFAULT false NOT NULL,
    paused_at timestamp with time zone,
    paused_by text,
    pause_note text,
    last_paused_at timestamp with time zone,
    last_resumed_at timestamp with time zone,
    limit_set_id integer,
    expires_after interval,
    expect_start_within interval,
    expect_finish_by interval,
    CONSTRAINT schedules_lengths_readable CHECK ((((catch_up >= '00:00:00'::interval) AND (catch_up <= '3660000 days'::interval)) AND ((offset_by >= '00:00:00'::interval) AND (offset_by <= '3660000 days'::interval)) AND ((jitter >= '00:00:00'::interval) AND (jitter <= '3660000 days'::interval)) AND ((expires_after >= '00:00:00'::interval) AND (expires_after <= '3660000 days'::interval)))),
    CONSTRAINT schedules_moments_readable CHECK ((((active_from >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (active_from <= '9999-12-31 00:00:00+00'::timestamp with time zone)) AND ((paused_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (paused_at <= '9999-12-31 00:00:00+00'::timestamp with time zone)) AND ((last_paused_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (last_paused_at <= '9999-12-31 00:00:00+00'::timestamp with time zone)) AND ((last_resumed_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (last_resumed_at <= '9999-12-31 00:00:00+00'::timestamp with time zone)))),
    CONSTRAINT schedules_name_key UNIQUE (name),
    CONSTRAINT schedules_numbers_readable CHECK ((((max_attempts >= 1) AND (max_attempts <= 32766)) AND (overlap_limit >= 0) AND (skips >= 0))),
    CONSTRAINT schedules_pkey PRIMARY KEY (id),
    CONSTRAINT schedules_words_readable CHECK (((misfire = ANY (ARRAY['latest'::text, 'all'::text, 'skip'::text])) AND (overlap = ANY (ARRAY['skip'::text, 'queue_one'::text, 'queue_all'::text, 'allow'::text, 'replace'::text]))))
);
CREATE INDEX schedules_expecting ON mainspring.schedules USING btree (id) WHERE ((expect_start_within IS NOT NULL) OR (expect_finish_by IS NOT NULL));
CREATE INDEX schedules_skips ON mainspring.schedules USING btree (spec_id, skips) WHERE (skips > 0);
CREATE INDEX schedules_spec ON mainspring.schedules USING btree (spec_id, ((id + 0)));
CREATE TABLE mainspring.sessions (
    id bigint GENERATED BY DEFAULT AS IDENTITY NOT NULL,
    digest bytea NOT NULL,
    name text NOT NULL,
    role text NOT NULL,
    scopes text[] NOT NULL,
    token_id bigint,
    opened_at timestamp with time zone NOT NULL,
    seen_at timestamp with time zone NOT NULL,
    CONSTRAINT sessions_digest_check CHECK ((length(digest) = 32)),
    CONSTRAINT sessions_digest_key UNIQUE (digest),
    CONSTRAINT sessions_moments_readable CHECK ((((opened_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (opened_at <= '9999-12-31 00:00:00+00'::timestamp with time zone)) AND ((seen_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (seen_at <= '9999-12-31 00:00:00+00'::timestamp with time zone)))),
    CONSTRAINT sessions_pkey PRIMARY KEY (id),
    CONSTRAINT sessions_role_check CHECK ((role = ANY (ARRAY['viewer'::text, 'operator'::text, 'admin'::text])))
);
CREATE INDEX sessions_opened ON mainspring.sessions USING btree (opened_at);
CREATE INDEX sessions_token ON mainspring.sessions USING btree (token_id);
CREATE TABLE mainspring.slots (
    schedule_id bigint NOT NULL,
    slot_at timestamp with time zone NOT NULL,
    decided_at timestamp with time zone NOT NULL,
    since timestamp with time zone,
    job_id bigint,
    disposition smallint NOT NULL,
    reason text,
    blocker bigint,
    note text,
    CONSTRAINT slots_pkey PRIMARY KEY (schedule_id, slot_at)
) PARTITION BY RANGE (slot_at);
CREATE INDEX slots_dropped ON ONLY mainspring.slots USING btree (schedule_id, decided_at) WHERE ((disposition = 1) AND (reason = ANY (ARRAY['too_late'::text, 'breaker'::text])));
CREATE TABLE mainspring.slots_default PARTITION OF mainspring.slots DEFAULT;
CREATE INDEX slots_default_schedule_id_decided_at_idx ON mainspring.slots_default USING btree (schedule_id, decided_at) WHERE ((disposition = 1) AND (reason = ANY (ARRAY['too_late'::text, 'breaker'::text])));
CREATE TABLE mainspring.specs (
    id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
    trigger text NOT NULL,
    next_at timestamp with time zone,
    following_at timestamp with time zone,
    planned boolean NOT NULL,
    catch_up interval DEFAULT '-00:00:01'::interval NOT NULL,
    last_at timestamp with time zone,
    CONSTRAINT specs_catch_up_readable CHECK (((catch_up >= '-00:00:01'::interval) AND (catch_up <= '3660000 days'::interval))),
    CONSTRAINT specs_moments_readable CHECK ((((next_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (next_at <= '9999-12-31 00:00:00+00'::timestamp with time zone)) AND ((following_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (following_at <= '9999-12-31 00:00:00+00'::timestamp with time zone)) AND ((last_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (last_at <= '9999-12-31 00:00:00+00'::timestamp with time zone)))),
    CONSTRAINT specs_pkey PRIMARY KEY (id),
    CONSTRAINT specs_trigger_key UNIQUE (trigger, catch_up)
) WITH (
    fillfactor=70
);
CREATE INDEX specs_due ON mainspring.specs USING btree (next_at);
CREATE INDEX specs_unplanned ON mainspring.specs USING btree (id) WHERE (NOT planned);
CREATE TABLE mainspring.stats (
    span smallint NOT NULL,
    at timestamp with time zone NOT NULL,
    task text NOT NULL,
    queue text NOT NULL,
    counts integer[] NOT NULL,
    waits integer[] NOT NULL,
    tooks integer[] NOT NULL,
    mark bigint,
    CONSTRAINT stats_moments_readable CHECK (((at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (at <= '9999-12-31 00:00:00+00'::timestamp with time zone))),
    CONSTRAINT stats_pkey PRIMARY KEY (span, at, task, queue)
) WITH (
    autovacuum_vacuum_scale_factor=0.05,
    autovacuum_vacuum_threshold=2000,
    fillfactor=70
);
CREATE TABLE mainspring.steps (
    job_id bigint NOT NULL,
    name text NOT NULL,
    value bytea,
    done_at timestamp with time zone NOT NULL,
    CONSTRAINT steps_moments_readable CHECK (((done_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (done_at <= '9999-12-31 00:00:00+00'::timestamp with time zone))),
    CONSTRAINT steps_pkey PRIMARY KEY (job_id, name)
);
CREATE TABLE mainspring.tasks (
    id integer GENERATED ALWAYS AS IDENTITY NOT NULL,
    name text NOT NULL,
    CONSTRAINT tasks_name_key UNIQUE (name),
    CONSTRAINT tasks_pkey PRIMARY KEY (id)
);
CREATE TABLE mainspring.tokens (
    id bigint GENERATED BY DEFAULT AS IDENTITY NOT NULL,
    digest bytea NOT NULL,
    name text NOT NULL,
    role text NOT NULL,
    scopes text[] NOT NULL,
    hint text NOT NULL,
    author text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone,
    last_used_at timestamp with time zone,
    revoked_at timestamp with time zone,
    CONSTRAINT tokens_digest_check CHECK ((length(digest) = 32)),
    CONSTRAINT tokens_digest_key UNIQUE (digest),
    CONSTRAINT tokens_moments_readable CHECK ((((created_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (created_at <= '9999-12-31 00:00:00+00'::timestamp with time zone)) AND ((expires_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (expires_at <= '9999-12-31 00:00:00+00'::timestamp with time zone)) AND ((last_used_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (last_used_at <= '9999-12-31 00:00:00+00'::timestamp with time zone)) AND ((revoked_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (revoked_at <= '9999-12-31 00:00:00+00'::timestamp with time zone)))),
    CONSTRAINT tokens_pkey PRIMARY KEY (id),
    CONSTRAINT tokens_role_check CHECK ((role = ANY (ARRAY['viewer'::text, 'operator'::text, 'admin'::text])))
);
CREATE TABLE mainspring.unique_keys (
    key bytea NOT NULL,
    name text NOT NULL,
    job_id bigint NOT NULL,
    until timestamp with time zone,
    CONSTRAINT unique_keys_moments_readable CHECK (((until >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (until <= '9999-12-31 00:00:00+00'::timestamp with time zone))),
    CONSTRAINT unique_keys_pkey PRIMARY KEY (key)
);
CREATE INDEX unique_keys_name ON mainspring.unique_keys USING btree (name);
CREATE TABLE mainspring.unreadable_rows (
    id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
    kind text NOT NULL,
    ref text NOT NULL,
    content jsonb NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT unreadable_rows_moments_readable CHECK (((at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (at <= '9999-12-31 00:00:00+00'::timestamp with time zone))),
    CONSTRAINT unreadable_rows_pkey PRIMARY KEY (id)
);
CREATE TABLE mainspring.watch_mark (
    one boolean DEFAULT true NOT NULL,
    since timestamp with time zone NOT NULL,
    at timestamp with time zone NOT NULL,
    CONSTRAINT watch_mark_moments_readable CHECK ((((since >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (since <= '9999-12-31 00:00:00+00'::timestamp with time zone)) AND ((at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (at <= '9999-12-31 00:00:00+00'::timestamp with time zone)))),
    CONSTRAINT watch_mark_one_check CHECK (one),
    CONSTRAINT watch_mark_pkey PRIMARY KEY (one)
);
CREATE TABLE mainspring.workflow_orders (
    workflow_id bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    action text NOT NULL,
    author text NOT NULL,
    note text,
    CONSTRAINT workflow_orders_moments_readable CHECK (((at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (at <= '9999-12-31 00:00:00+00'::timestamp with time zone)))
);
CREATE INDEX workflow_orders_workflow ON mainspring.workflow_orders USING btree (workflow_id, at);
CREATE TABLE mainspring.workflow_steps (
    id bigint NOT NULL,
    workflow_id bigint NOT NULL,
    ended_at timestamp with time zone,
    place integer NOT NULL,
    item integer,
    waits integer NOT NULL,
    items_failed integer DEFAULT 0 NOT NULL,
    fence integer DEFAULT 0 NOT NULL,
    state smallint DEFAULT 0 NOT NULL,
    cause text,
    result bytea,
    error jsonb,
    CONSTRAINT workflow_steps_moments_readable CHECK (((ended_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (ended_at <= '9999-12-31 00:00:00+00'::timestamp with time zone))),
    CONSTRAINT workflow_steps_numbers_readable CHECK (((state >= 0) AND (state <= 5))),
    CONSTRAINT workflow_steps_pkey PRIMARY KEY (id)
) WITH (
    fillfactor=70
);
CREATE INDEX workflow_steps_place ON mainspring.workflow_steps USING btree (workflow_id, place, item);
CREATE TABLE mainspring.workflows (
    id bigint NOT NULL,
    started_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    paused_at timestamp with time zone,
    parent_id bigint,
    forked_from bigint,
    definition_id integer NOT NULL,
    nodes_left integer NOT NULL,
    nodes_failed integer DEFAULT 0 NOT NULL,
    state smallint DEFAULT 0 NOT NULL,
    name text NOT NULL,
    stopping text,
    params bytea NOT NULL,
    step_ids bigint[] NOT NULL,
    CONSTRAINT workflows_moments_readable CHECK ((((started_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (started_at <= '9999-12-31 00:00:00+00'::timestamp with time zone)) AND ((ended_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (ended_at <= '9999-12-31 00:00:00+00'::timestamp with time zone)) AND ((paused_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (paused_at <= '9999-12-31 00:00:00+00'::timestamp with time zone)))),
    CONSTRAINT workflows_numbers_readable CHECK (((state >= 0) AND (state <= 3))),
    CONSTRAINT workflows_pkey PRIMARY KEY (id)
) WITH (
    fillfactor=70
);
CREATE INDEX workflows_ended ON mainspring.workflows USING btree (ended_at) WHERE (ended_at IS NOT NULL);
CREATE INDEX workflows_name ON mainspring.workflows USING btree (name, id);
CREATE INDEX workflows_running ON mainspring.workflows USING btree (id) WHERE (state = 0);
CREATE TRIGGER audit_log_head_rises BEFORE UPDATE ON mainspring.audit_log_head FOR EACH ROW WHEN ((new.id <= old.id)) EXECUTE FUNCTION refuse_change();
CREATE TRIGGER audit_log_head_stays BEFORE DELETE OR TRUNCATE ON mainspring.audit_log_head FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER audit_log_stand BEFORE DELETE OR UPDATE ON mainspring.audit_log FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER audit_log_stay BEFORE TRUNCATE ON mainspring.audit_log FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER jobs_ended AFTER DELETE ON mainspring.jobs FOR EACH ROW WHEN (((old.workflow_id IS NOT NULL) OR (old.run_at = '9997-01-01 00:00:00+00'::timestamp with time zone))) EXECUTE FUNCTION note_ending();
CREATE FUNCTION mainspring.add_partitions(parent text, key text, first_day date, days integer) RETURNS integer
LANGUAGE plpgsql SET search_path=pg_catalog AS $$
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
CREATE FUNCTION mainspring.added(integer[], integer[]) RETURNS integer[]
LANGUAGE sql SET search_path=pg_catalog AS $$
    SELECT array_agg(coalesce(a, 0) + coalesce(b, 0) ORDER BY place) FROM unnest($1, $2) WITH ORDINALITY AS n (a, b, place)
$$;
CREATE FUNCTION mainspring.drop_partitions(parent text, key text, keep_from timestamp with time zone) RETURNS integer
LANGUAGE plpgsql SET search_path=pg_catalog AS $$
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
CREATE FUNCTION mainspring.enqueue(task text, payload jsonb DEFAULT '{}'::jsonb, queue text DEFAULT 'default'::text, priority integer DEFAULT 0, run_at timestamp with time zone DEFAULT NULL::timestamp with time zone, delay interval DEFAULT NULL::interval, max_attempts integer DEFAULT 1) RETURNS bigint
LANGUAGE plpgsql SET search_path=pg_catalog AS $$
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
CREATE FUNCTION mainspring.is_failure(failure jsonb) RETURNS boolean
LANGUAGE sql AS $$
    SELECT failure IS NULL OR jsonb_typeof(failure) = 'object'
        AND coalesce(jsonb_typeof(failure -> 'type'), '') = 'string' AND coalesce(jsonb_typeof(failure -> 'message'), '') = 'string'
        AND coalesce(jsonb_typeof(failure -> 'traceback'), 'string') = 'string'
        AND (failure -> 'attempt' IS NULL OR coalesce(failure ->> 'attempt', '') ~ '^-?[0-9]{1,18}$')
        AND coalesce(failure ->> 'at', '2000-01-01T') ~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}T'
$$;
CREATE FUNCTION mainspring.note_ending() RETURNS trigger
LANGUAGE plpgsql AS $$
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
CREATE FUNCTION mainspring.put_job(new_task text, new_payload bytea, new_queue text, new_priority integer, new_run_at timestamp with time zone, new_delay interval, new_max_attempts integer, stamp timestamp with time zone, new_trace text DEFAULT NULL::text) RETURNS bigint
LANGUAGE plpgsql SET search_path=pg_catalog AS $$
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
CREATE FUNCTION mainspring.refuse_change() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit log is append-only: % of % is refused', lower(TG_OP), TG_TABLE_NAME;
END
$$;
