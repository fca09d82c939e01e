-- name: table_health
SELECT coalesce(parent.relname, c.relname)::text AS name, sum(s.n_live_tup)::bigint AS rows, sum(s.n_dead_tup)::bigint AS dead_rows,
       sum(pg_table_size(c.oid))::bigint AS bytes, sum(pg_indexes_size(c.oid))::bigint AS index_bytes, sum(s.n_tup_upd)::bigint AS updates,
       sum(s.n_tup_hot_upd)::bigint AS hot_updates, max(greatest(s.last_vacuum, s.last_autovacuum)) AS vacuumed_at,
       max(greatest(s.last_analyze, s.last_autoanalyze)) AS analyzed_at
FROM pg_class c JOIN pg_stat_all_tables s ON s.relid = c.oid
LEFT JOIN pg_inherits i ON i.inhrelid = c.oid LEFT JOIN pg_class parent ON parent.oid = i.inhparent
WHERE c.relnamespace = 'mainspring'::regnamespace AND c.relkind = 'r'
GROUP BY 1 ORDER BY 1;

-- name: partition_health
SELECT p.table_name AS "table", count(c.oid)::int AS count, min(to_date(right(c.relname, 8), 'YYYYMMDD')) AS first,
       max(to_date(right(c.relname, 8), 'YYYYMMDD')) AS last,
       coalesce(greatest(max(to_date(right(c.relname, 8), 'YYYYMMDD')) - (now() AT TIME ZONE 'UTC')::date, 0), 0) AS ahead,
       CASE p.table_name
           WHEN 'runs' THEN (SELECT count(*) FROM (SELECT 1 FROM mainspring.runs_default LIMIT 1000) s)
           WHEN 'run_logs' THEN (SELECT count(*) FROM (SELECT 1 FROM mainspring.run_logs_default LIMIT 1000) s)
           ELSE (SELECT count(*) FROM (SELECT 1 FROM mainspring.slots_default LIMIT 1000) s)
       END::int AS strays
FROM unnest(ARRAY['run_logs', 'runs', 'slots']) AS p (table_name)
LEFT JOIN pg_inherits i ON i.inhparent = to_regclass('mainspring.' || p.table_name)
LEFT JOIN pg_class c ON c.oid = i.inhrelid AND c.relname ~ '_[0-9]{8}$'
GROUP BY p.table_name ORDER BY p.table_name;

-- name: server_health
SELECT pg_database_size(current_database()) AS bytes, (pg_current_wal_lsn() - pg_lsn '0/0')::bigint AS log_bytes,
       current_setting('max_connections')::int AS most_sessions,
       (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')::int AS sessions,
       (SELECT max(now() - query_start) FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid() AND backend_type = 'client backend') AS longest,
       (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND state IS NULL AND usename <> current_user)::int AS hidden;

-- name: snapshot_health
SELECT 'session ' || pid || coalesce(' of ' || nullif(application_name, ''), '') || coalesce(', ' || state, '') AS what, now() - xact_start AS age, NULL::bigint AS bytes
FROM pg_stat_activity WHERE (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL) AND pid <> pg_backend_pid() AND backend_type <> 'walsender'
UNION ALL
SELECT 'prepared transaction ' || gid, now() - prepared, NULL FROM pg_prepared_xacts
UNION ALL
SELECT 'replication slot ' || slot_name || CASE WHEN active THEN '' ELSE ', which nobody reads' END, NULL,
       (pg_current_wal_lsn() - coalesce(restart_lsn, pg_current_wal_lsn()))::bigint
FROM pg_replication_slots
ORDER BY age DESC NULLS LAST LIMIT 10;
