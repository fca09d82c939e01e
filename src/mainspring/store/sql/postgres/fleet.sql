-- name: end_processes
-- FOR UPDATE conflicts with the KEY SHARE of a claim: no claim is under way while this statement decides.
WITH cut AS (
    -- No renewal writes such a late end: a clock was set, or an operator changed the row. A minute more is allowed, for a
    -- renewal that began after this statement.
    UPDATE mainspring.processes SET lease_until = coalesce(:at::timestamptz, now()) + least(lease, :longest::interval)
    WHERE NOT dead AND lease_until > coalesce(:at::timestamptz, now()) + least(lease, :longest::interval) + interval '1 minute'
), ended AS (
    SELECT id FROM mainspring.processes
    WHERE NOT dead AND lease_until <= coalesce(:at::timestamptz, now())
      AND (:since::timestamptz IS NULL
           OR (:last::timestamptz + :gap::interval >= coalesce(:at::timestamptz, now())
               AND :since::timestamptz + least(lease, :longest::interval) <= coalesce(:at::timestamptz, now())))
    FOR UPDATE SKIP LOCKED
), buried AS (
    UPDATE mainspring.processes m SET dead = true FROM ended WHERE m.id = ended.id RETURNING m.id, m.role, m.name
), noted AS (
    INSERT INTO mainspring.lost_processes (id, role, name, lost_at)
    SELECT id, role, name, coalesce(:at::timestamptz, now()) FROM buried
    ON CONFLICT DO NOTHING
)
SELECT name FROM buried;

-- name: reap_jobs
-- There is no index on worker_id, because such an index would prevent HOT claims. The jobs of a dead worker were due
-- before its lease ended. So the scan of each priority level stops at that moment, and reads no jobs that wait.
-- A crash is counted if it is on record that the run had begun. For a job that is not an orphaned job, the store does not
-- know whether its run had begun: the job becomes an orphaned job.
WITH gone AS MATERIALIZED (
    SELECT array_agg(id) AS ids, max(lease_until) AS ended FROM mainspring.processes WHERE dead
), lost AS MATERIALIZED (
    SELECT held.*, held.orphan IS NOT DISTINCT FROM held.fence AS begun FROM gone CROSS JOIN mainspring.priority_levels l
    CROSS JOIN LATERAL (
        SELECT j.* FROM mainspring.jobs j
        WHERE j.queue_id = l.queue_id AND j.priority = l.priority AND j.run_at <= gone.ended
          AND j.worker_id <> 0 AND j.worker_id = ANY (gone.ids)
        FOR UPDATE SKIP LOCKED
    ) held
    LIMIT :limit
), back AS (
    UPDATE mainspring.jobs
    SET worker_id = 0, crashes = crashes + (orphan IS NOT DISTINCT FROM fence)::int, orphan = coalesce(orphan, 0)
    WHERE id = ANY (ARRAY(SELECT id FROM lost WHERE NOT begun OR crashes + 1 < :crashes_allowed))
), doomed AS (
    DELETE FROM mainspring.jobs WHERE id = ANY (ARRAY(SELECT id FROM lost WHERE begun AND crashes + 1 >= :crashes_allowed))
), buried AS (
    INSERT INTO mainspring.dead_jobs (id, run_at, enqueued_at, died_at, schedule_id, slot_at, queue_id, task_id, fence, priority,
                                      max_attempts, failures, crashes, reason, payload, errors, expires_at, limit_set_id, workflow_id, trace)
    SELECT id, run_at, enqueued_at, coalesce(:at::timestamptz, now()), schedule_id, slot_at, queue_id, task_id, fence, priority,
           max_attempts, failures, crashes + 1, 'crashed', payload,
           coalesce(errors, '[]') || (:error::jsonb || jsonb_build_object('attempt', failures + 1, 'at', coalesce(:at::timestamptz, now()))),
           expires_at, limit_set_id, workflow_id, trace
    FROM lost WHERE begun AND crashes + 1 >= :crashes_allowed
), noted AS (
    -- An orphaned job whose run had not begun gets no row here: no run took place.
    INSERT INTO mainspring.runs (job_id, finished_at, started_at, enqueued_at, run_at, worker_id, schedule_id, slot_at, queue_id,
                                 task_id, fence, priority, max_attempts, failures, crashes, verdict)
    SELECT id, coalesce(:at::timestamptz, now()), claimed_at, enqueued_at, run_at, worker_id, schedule_id, slot_at, queue_id,
           task_id, fence, priority, max_attempts, failures, crashes + begun::int, 4
    FROM lost WHERE begun OR orphan IS NULL
)
SELECT id, begun AND crashes + 1 >= :crashes_allowed AS buried FROM lost;

-- name: forget_processes
-- Only when a plain read finds no claim of these processes, not even a claim that another session has locked.
DELETE FROM mainspring.processes m
WHERE m.dead AND NOT EXISTS (
    SELECT 1 FROM mainspring.priority_levels l CROSS JOIN LATERAL (
        SELECT 1 FROM mainspring.jobs j
        WHERE j.queue_id = l.queue_id AND j.priority = l.priority AND j.run_at <= m.lease_until AND j.worker_id = m.id
        LIMIT 1
    ) held
);

-- name: mark_orphans_dead
INSERT INTO mainspring.processes (id, role, name, queues, tasks, version, tzdata, started_at, lease_until, dead)
SELECT DISTINCT held.worker_id, 'worker', 'unknown', '{}'::text[], '{}'::text[], '', '',
       coalesce(:at::timestamptz, now()), coalesce(:at::timestamptz, now()), true
FROM mainspring.priority_levels l CROSS JOIN LATERAL (
    SELECT j.worker_id FROM mainspring.jobs j
    WHERE j.queue_id = l.queue_id AND j.priority = l.priority AND j.run_at <= coalesce(:at::timestamptz, now())
      AND j.worker_id <> 0
    OFFSET 0
) held
WHERE NOT EXISTS (SELECT 1 FROM mainspring.processes m WHERE m.id = held.worker_id)
ON CONFLICT DO NOTHING
RETURNING id;
