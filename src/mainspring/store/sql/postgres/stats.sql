-- name: add_stats
-- In the order of the key, so that two processes do not wait for each other. Days begin at midnight in UTC.
INSERT INTO mainspring.stats AS s (span, at, task, queue, counts, waits, tooks, mark)
SELECT w.span, date_bin(w.span * interval '1 minute', coalesce(:at::timestamptz, now()), timestamptz '2000-01-01 00:00:00+00'),
       n.task, n.queue, n.counts, n.waits, n.tooks,
       CASE WHEN n.task = '' THEN (pg_current_wal_lsn() - pg_lsn '0/0')::bigint END
FROM jsonb_to_recordset(:tallies::jsonb) AS n (task text, queue text, counts int[], waits int[], tooks int[])
CROSS JOIN unnest(:spans::int[]) AS w (span)
ORDER BY w.span, n.task, n.queue
ON CONFLICT (span, at, task, queue) DO UPDATE
SET counts = mainspring.added(s.counts, excluded.counts), waits = mainspring.added(s.waits, excluded.waits),
    tooks = mainspring.added(s.tooks, excluded.tooks), mark = greatest(s.mark, excluded.mark);

-- name: stats
SELECT date_bin(:step::interval, at, :since::timestamptz) AS at,
       CASE :by::text WHEN 'task' THEN task WHEN 'queue' THEN queue ELSE '' END AS key, max(mark) AS mark,
       ARRAY[sum(counts[1]), sum(counts[2]), sum(counts[3]), sum(counts[4]), sum(counts[5]), sum(counts[6]),
             sum(counts[7]), sum(counts[8]), sum(counts[9]), sum(counts[10]), sum(counts[11]), sum(counts[12]),
             sum(counts[13]), sum(counts[14]), sum(counts[15]), sum(counts[16])] AS counts,
       ARRAY[sum(waits[1]), sum(waits[2]), sum(waits[3]), sum(waits[4]), sum(waits[5]), sum(waits[6]), sum(waits[7]),
             sum(waits[8]), sum(waits[9]), sum(waits[10]), sum(waits[11]), sum(waits[12]), sum(waits[13]),
             sum(waits[14]), sum(waits[15]), sum(waits[16]), sum(waits[17]), sum(waits[18]), sum(waits[19]),
             sum(waits[20]), sum(waits[21]), sum(waits[22]), sum(waits[23]), sum(waits[24]), sum(waits[25]),
             sum(waits[26])] AS waits,
       ARRAY[sum(tooks[1]), sum(tooks[2]), sum(tooks[3]), sum(tooks[4]), sum(tooks[5]), sum(tooks[6]), sum(tooks[7]),
             sum(tooks[8]), sum(tooks[9]), sum(tooks[10]), sum(tooks[11]), sum(tooks[12]), sum(tooks[13]),
             sum(tooks[14]), sum(tooks[15]), sum(tooks[16]), sum(tooks[17]), sum(tooks[18]), sum(tooks[19]),
             sum(tooks[20]), sum(tooks[21]), sum(tooks[22]), sum(tooks[23]), sum(tooks[24]), sum(tooks[25]),
             sum(tooks[26])] AS tooks
FROM mainspring.stats
WHERE span = :span AND at >= :since AND at < :until::timestamptz
  AND CASE WHEN :one::text IS NULL THEN task NOT IN ('', '*') ELSE task = :one END
  AND (:task::text IS NULL OR task = :task) AND (:queue::text IS NULL OR queue = :queue)
GROUP BY 1, 2 ORDER BY 1, 2;
