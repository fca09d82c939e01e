-- name: request
SELECT digest, answer FROM requests WHERE caller = :caller AND key = :key;

-- name: add_request
INSERT INTO requests (caller, key, digest, answer, at) VALUES (:caller, :key, :digest, :answer, :now);

-- name: prune_requests
DELETE FROM requests WHERE (caller, key) IN (SELECT caller, key FROM requests WHERE at < :before LIMIT :limit);
