-- name: make_schema
CREATE SCHEMA IF NOT EXISTS mainspring;

-- name: make_migrations
CREATE TABLE IF NOT EXISTS mainspring.migrations (
    version    int         NOT NULL PRIMARY KEY,
    name       text        NOT NULL,
    checksum   text        NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);

-- name: lock_migrations
SELECT pg_advisory_xact_lock(5278430121);

-- name: migrations_exist
SELECT to_regclass('mainspring.migrations') IS NOT NULL AS yes;

-- name: notify
SELECT pg_notify('mainspring', '');

-- name: facts
SELECT current_setting('server_version') AS version, current_setting('synchronous_commit') AS synchronous_commit,
       current_setting('fsync') AS fsync, current_database() AS database, current_user AS "user";

-- name: session
SELECT pid, backend_start, now() AS began, current_setting('plan_cache_mode') AS plans,
       pg_postmaster_start_time() AS server_started, datid AS database
FROM pg_stat_activity WHERE pid = pg_backend_pid();

-- name: is_standby
SELECT pg_is_in_recovery();

-- name: end_session
-- A session that this process has lost may still run its statement. The session must have ended before its work can be
-- judged. The start of the session is part of its name, because the server uses process ids again.
SELECT bool_and(pg_terminate_backend(pid, 5000)) AS gone
FROM pg_stat_activity
WHERE pid = :pid AND backend_start = :started AND (:began::timestamptz IS NULL OR xact_start = :began);

-- name: end_marked
-- The same behind a pooler, where a session is ours for one transaction only. The mark in its statement identifies it.
SELECT bool_and(pg_terminate_backend(pid, 5000)) AS gone
FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle' AND starts_with(query, :mark);
