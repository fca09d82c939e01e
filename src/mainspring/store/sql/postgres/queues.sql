-- name: head_depth
-- The jobs at the head of each priority level, and whether there are more: for jobs that are due, and for other jobs.
WITH head AS MATERIALIZED (
    SELECT l.queue_id, j.task_id, j.worker_id, j.run_at, j.place > :most AS last FROM mainspring.priority_levels l CROSS JOIN LATERAL (
        SELECT task_id, worker_id, run_at, row_number() OVER (ORDER BY run_at, newest) AS place FROM (
            SELECT task_id, worker_id, run_at, id + 0 AS newest FROM mainspring.jobs
            WHERE queue_id = l.queue_id AND priority = l.priority AND run_at <= coalesce(:at::timestamptz, now())
            ORDER BY run_at, newest LIMIT :most + 1
        ) first
    ) j
), later AS MATERIALIZED (
    SELECT l.queue_id, j.task_id, j.run_at, j.place > :most AS last FROM mainspring.priority_levels l CROSS JOIN LATERAL (
        SELECT task_id, run_at, row_number() OVER (ORDER BY run_at, newest) AS place FROM (
            SELECT task_id, run_at, id + 0 AS newest FROM mainspring.jobs
            WHERE queue_id = l.queue_id AND priority = l.priority AND run_at > coalesce(:at::timestamptz, now())
            ORDER BY run_at, newest LIMIT :most + 1
        ) first
    ) j
)
SELECT (SELECT name FROM mainspring.queues WHERE id = queue_id) AS queue, (SELECT name FROM mainspring.tasks WHERE id = task_id) AS task,
       count(*) FILTER (WHERE worker_id = 0)::int AS ready, 0 AS delayed, count(*) FILTER (WHERE worker_id <> 0)::int AS running,
       min(run_at) FILTER (WHERE worker_id = 0) AS oldest_ready_at, queue_id IN (SELECT h.queue_id FROM head h WHERE h.last) AS about, true AS due
FROM head GROUP BY queue_id, task_id
UNION ALL
SELECT (SELECT name FROM mainspring.queues WHERE id = queue_id), (SELECT name FROM mainspring.tasks WHERE id = task_id), 0,
       count(*) FILTER (WHERE run_at <> timestamptz '9997-01-01 00:00:00+00')::int, count(*) FILTER (WHERE run_at = timestamptz '9997-01-01 00:00:00+00')::int, NULL,
       queue_id IN (SELECT l.queue_id FROM later l WHERE l.last), false
FROM later GROUP BY queue_id, task_id;

-- name: sampled_depth
-- An estimate where there are too many jobs to count: the jobs in some random pages, scaled to the whole table.
SELECT (SELECT name FROM mainspring.queues WHERE id = queue_id) AS queue, (SELECT name FROM mainspring.tasks WHERE id = task_id) AS task,
       (count(*) FILTER (WHERE worker_id = 0 AND run_at <= coalesce(:at::timestamptz, now())) * 100 / :percent::float8)::int AS ready,
       (count(*) FILTER (WHERE worker_id = 0 AND run_at > coalesce(:at::timestamptz, now()) AND run_at <> timestamptz '9997-01-01 00:00:00+00') * 100 / :percent)::int AS delayed,
       (count(*) FILTER (WHERE worker_id <> 0 OR run_at = timestamptz '9997-01-01 00:00:00+00') * 100 / :percent)::int AS running,
       NULL::timestamptz AS oldest_ready_at, false AS about
FROM mainspring.jobs TABLESAMPLE SYSTEM (:percent) GROUP BY queue_id, task_id;

-- name: jobs_size
SELECT pg_relation_size('mainspring.jobs') / current_setting('block_size')::int AS pages;

-- name: claims_under_way
-- Claims that began before this moment, by the server's own clock, and have not ended. They may not have seen the pause.
-- Behind a pooler, statements begin with a mark.
SELECT count(*)::int AS claims FROM pg_stat_activity
WHERE datname = current_database() AND application_name = 'mainspring' AND pid <> pg_backend_pid()
  AND xact_start <= :began AND state <> 'idle' AND query ~ '^(/[*][^*]*[*]/ )?WITH me AS MATERIALIZED';
