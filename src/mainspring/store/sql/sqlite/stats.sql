-- name: add_stats
-- Spans begin in the year 2000, as on PostgreSQL.
INSERT INTO stats (span, at, task, queue, counts, waits, tooks)
SELECT w.value, :now - (:now - 946684800000000) % (w.value * 60000000), json_extract(n.value, '$.task'), json_extract(n.value, '$.queue'),
       json_extract(n.value, '$.counts'), json_extract(n.value, '$.waits'), json_extract(n.value, '$.tooks')
FROM json_each(:tallies) n CROSS JOIN json_each(:spans) w
WHERE true
ON CONFLICT (span, at, task, queue) DO UPDATE
SET counts = (SELECT json_group_array(n) FROM (SELECT a.value + b.value AS n FROM json_each(stats.counts) a JOIN json_each(excluded.counts) b ON b.key = a.key ORDER BY a.key)),
    waits = (SELECT json_group_array(n) FROM (SELECT a.value + b.value AS n FROM json_each(stats.waits) a JOIN json_each(excluded.waits) b ON b.key = a.key ORDER BY a.key)),
    tooks = (SELECT json_group_array(n) FROM (SELECT a.value + b.value AS n FROM json_each(stats.tooks) a JOIN json_each(excluded.tooks) b ON b.key = a.key ORDER BY a.key));

-- name: stats
SELECT at - (at - :since) % :step AS at, CASE :by WHEN 'task' THEN task WHEN 'queue' THEN queue ELSE '' END AS key, counts, waits, tooks,
       NULL AS mark
FROM stats
WHERE span = :span AND at >= :since AND at < :until
  AND CASE WHEN :one IS NULL THEN task NOT IN ('', '*') ELSE task = :one END
  AND (:task IS NULL OR task = :task) AND (:queue IS NULL OR queue = :queue)
ORDER BY 1, 2;
