-- name: applied_migrations
SELECT version, checksum FROM mainspring.migrations;
