-- name: add_request
-- The row is locked, whether it is new or not. The answer has the row as it is after that.
INSERT INTO mainspring.requests AS r (caller, key, digest, at)
VALUES (:caller, :key, :digest, coalesce(:at::timestamptz, now()))
ON CONFLICT (caller, key) DO UPDATE SET key = r.key
RETURNING r.digest, r.answer;

-- name: answer_request
UPDATE mainspring.requests SET answer = :answer WHERE caller = :caller AND key = :key;
