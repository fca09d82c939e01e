-- What happened, counted: by span (1, 10, 60 and 1440 minutes), task and queue. Not the record, which is runs and slots: a
-- process that is killed loses what it had not yet added. A row without a task and a queue is the fleet's own; one of
-- task and queue * is the sum of all others.
CREATE TABLE mainspring.stats (
    span   smallint    NOT NULL,      -- minutes
    at     timestamptz NOT NULL,      -- where they begin
    task   text        NOT NULL,
    queue  text        NOT NULL,
    counts int[]       NOT NULL,      -- by what is counted
    waits  int[]       NOT NULL,      -- how long jobs waited for a worker, or how late slots were: a histogram
    tooks  int[]       NOT NULL,      -- how long runs took: a histogram
    mark   bigint,                    -- how far the write-ahead log had come, in bytes
    PRIMARY KEY (span, at, task, queue)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 2000);

CREATE FUNCTION mainspring.added(int[], int[]) RETURNS int[]
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog AS $$
    SELECT array_agg(coalesce(a, 0) + coalesce(b, 0) ORDER BY place) FROM unnest($1, $2) WITH ORDINALITY AS n (a, b, place)
$$;

-- What each process had in hand when it last said that it lives, and how far its clock is from the database's.
ALTER TABLE mainspring.members ADD COLUMN skew interval, ADD COLUMN holding bigint[] NOT NULL DEFAULT '{}';

-- For lists of finished jobs. The sums keep each index to the statements that name it.
CREATE INDEX runs_task ON mainspring.runs (task_id, (job_id + 0));
CREATE INDEX runs_schedule ON mainspring.runs (schedule_id, (job_id + 0)) WHERE schedule_id IS NOT NULL;
CREATE INDEX runs_unusual ON mainspring.runs (verdict, (job_id + 0)) WHERE verdict <> 0;
CREATE INDEX unique_keys_name ON mainspring.unique_keys (name);

-- What dead letters are grouped by, read once when they come in rather than whenever somebody looks.
ALTER TABLE mainspring.dead_jobs
    ADD COLUMN error text GENERATED ALWAYS AS (coalesce(errors -> -1 ->> 'type', '')) STORED,
    ADD COLUMN line text GENERATED ALWAYS AS (left(split_part(coalesce(errors -> -1 ->> 'message', ''), chr(10), 1), 200)) STORED;

-- Nobody may write into the default partition between the move and the attachment: those rows would forbid it.
CREATE OR REPLACE FUNCTION mainspring.add_partitions(parent text, key text, first_day date, days int) RETURNS int
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
