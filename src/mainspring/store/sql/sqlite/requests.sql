-- name: request
SELECT digest, answer FROM requests WHERE caller = :caller AND key = :key;

-- name: add_request
INSERT INTO requests (caller, key, digest, answer, at) VALUES (:caller, :key, :digest, :answer, :now);
