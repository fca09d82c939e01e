-- name: now
SELECT :now AS now;

-- name: applied_migrations
SELECT version, checksum FROM mainspring.migrations;

-- name: record_migration
INSERT INTO mainspring.migrations (version, name, checksum, applied_at) VALUES (:version, :name, :checksum, :now);

-- name: identity
SELECT id::text AS id FROM mainspring.database_identity;

-- name: lock_identity
SELECT id::text AS id FROM mainspring.database_identity FOR UPDATE;

-- name: change_identity
UPDATE mainspring.database_identity SET id = :id::text::uuid
WHERE :force::boolean OR NOT EXISTS (SELECT 1 FROM mainspring.processes WHERE NOT dead AND lease_until > :now)
RETURNING id;
