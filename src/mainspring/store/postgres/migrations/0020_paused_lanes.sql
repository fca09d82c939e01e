-- As before, but a lane that is made for a paused queue is paused, too.
CREATE OR REPLACE FUNCTION mainspring.put_job(new_task text, new_payload bytea, new_queue text, new_priority int,
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
    IF NOT EXISTS (SELECT 1 FROM mainspring.lanes l WHERE l.queue_id = queue AND l.priority = new_priority) THEN
        INSERT INTO mainspring.lanes (queue_id, priority, paused)
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
