-- name: now
SELECT :now AS now;

-- name: applied_migrations
SELECT version, checksum FROM mainspring.migrations;
