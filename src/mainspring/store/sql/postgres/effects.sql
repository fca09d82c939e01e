-- name: put_jobs
-- In the caller's own transaction. The statement writes nothing into a schema that is older than this code.
SELECT n.place, mainspring.put_job(n.task, n.payload, n.queue, n.priority, n.run_at, n.delay, n.max_attempts, :at::timestamptz, n.trace) AS id
FROM unnest(:tasks::text[], :payloads::bytea[], :queues::text[], :priorities::int[], :run_ats::timestamptz[], :delays::interval[],
            :max_attempts::int[], :traces::text[])
  WITH ORDINALITY AS n (task, payload, queue, priority, run_at, delay, max_attempts, trace, place)
WHERE (SELECT max(version) FROM mainspring.migrations) >= :version::int;
