-- name: clock
-- Read once a transaction and handed to its statements, for 'now' moves on between two of them.
-- julianday() counts in milliseconds.
SELECT coalesce(:at, CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000) AS now;

-- name: begin_migrations
CREATE TABLE IF NOT EXISTS migrations (
    version    INTEGER NOT NULL PRIMARY KEY,
    name       TEXT    NOT NULL,
    checksum   TEXT    NOT NULL,
    applied_at INTEGER NOT NULL
) STRICT;

-- name: migrations_exist
SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'migrations') AS yes;

-- name: record_migration
INSERT INTO migrations (version, name, checksum, applied_at) VALUES (:version, :name, :checksum, :now);

-- name: data_version
-- Changes whenever another connection, of this process or another, has committed.
PRAGMA data_version;

-- name: identity
SELECT id FROM database_identity;

-- name: change_identity
UPDATE database_identity SET id = :id
WHERE :force OR NOT EXISTS (SELECT 1 FROM members WHERE NOT dead AND lease_until > :now);

-- name: facts
SELECT sqlite_version() AS version;

-- name: journal_mode
PRAGMA journal_mode;
