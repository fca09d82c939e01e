-- Steps that a job's runs have done, for good: a run that comes after looks here before it acts. `value` is
-- for what a step answered. A row goes when its job has left the queue, the dead letters and history.
CREATE TABLE mainspring.steps (
    job_id  bigint      NOT NULL,
    name    text        NOT NULL,
    value   bytea,
    done_at timestamptz NOT NULL,
    PRIMARY KEY (job_id, name)
);

-- One job, in the transaction of whoever calls. A name or a lane that is new is locked until that
-- transaction ends, so it is written only where it is not there yet.
CREATE FUNCTION mainspring.put_job(new_task text, new_payload bytea, new_queue text, new_priority int, new_run_at timestamptz,
                                   new_delay interval, new_max_attempts int, stamp timestamptz) RETURNS bigint
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
    IF NOT EXISTS (SELECT 1 FROM mainspring.lanes l WHERE l.queue_id = queue AND l.priority = new_priority) THEN
        INSERT INTO mainspring.lanes (queue_id, priority) VALUES (queue, new_priority) ON CONFLICT DO NOTHING;
    END IF;
    job := nextval('mainspring.job_ids');
    INSERT INTO mainspring.jobs (id, queue_id, task_id, priority, run_at, enqueued_at, max_attempts, payload)
    VALUES (job, queue, task, new_priority, coalesce(new_run_at, at + coalesce(new_delay, interval '0')), at, new_max_attempts,
            new_payload);
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
