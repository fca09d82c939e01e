-- name: clock
-- A transaction reads the time once and passes it to its statements, because 'now' changes between two statements.
-- julianday() counts in milliseconds.
SELECT coalesce(:at, CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000) AS now;

-- name: lock_migrations
-- Nothing: one transaction writes at a time.

-- name: make_schema
-- Nothing: a file is a schema.

-- name: add_partitions
-- Nothing: history is one table.

-- name: make_migrations
CREATE TABLE IF NOT EXISTS migrations (
    version    INTEGER NOT NULL PRIMARY KEY,
    name       TEXT    NOT NULL,
    checksum   TEXT    NOT NULL,
    applied_at INTEGER NOT NULL,
    CHECK (applied_at BETWEEN -2208988800000000 AND 253402214400000000)
) STRICT;

-- name: migrations_exist
SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'migrations') AS yes;

-- name: data_version
-- The number changes when another connection, of this process or of another process, has committed.
PRAGMA data_version;

-- name: facts
SELECT sqlite_version() AS version;

-- name: journal_mode
PRAGMA journal_mode;
