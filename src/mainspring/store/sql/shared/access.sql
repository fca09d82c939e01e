-- name: add_token
INSERT INTO mainspring.tokens (digest, name, role, scopes, hint, author, created_at, expires_at)
VALUES (:digest, :name, :role, :scopes::text[], :hint, :author, :now, :expires_at)
RETURNING *, expires_at IS NULL OR expires_at > :now AS alive;

-- name: tokens_on_record
SELECT *, revoked_at IS NULL AND (expires_at IS NULL OR expires_at > :now) AS alive
FROM mainspring.tokens ORDER BY id DESC;

-- name: token
SELECT *, true AS alive, last_used_at IS NULL OR last_used_at <= :now - :note_every::interval AS worth_noting
FROM mainspring.tokens
WHERE digest = :digest AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > :now);

-- name: note_token
UPDATE mainspring.tokens SET last_used_at = :now WHERE id = :id;

-- name: revoke_token
UPDATE mainspring.tokens SET revoked_at = :now
WHERE id = :id AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > :now)
RETURNING id;

-- name: close_sessions_of_token
DELETE FROM mainspring.sessions WHERE token_id = :id RETURNING id;

-- name: open_session
INSERT INTO mainspring.sessions (digest, name, role, scopes, token_id, opened_at, seen_at)
VALUES (:digest, :name, :role, :scopes::text[], :token_id, :now, :now)
RETURNING *, (SELECT t.expires_at FROM mainspring.tokens t WHERE t.id = sessions.token_id) AS token_expires_at;

-- name: session_on_record
SELECT s.*, (SELECT t.expires_at FROM mainspring.tokens t WHERE t.id = s.token_id) AS token_expires_at,
       s.seen_at <= :now - :note_every::interval AS worth_noting
FROM mainspring.sessions s
WHERE s.digest = :digest AND s.seen_at > :now - :idle::interval AND s.opened_at > :now - :longest::interval
  AND (s.token_id IS NULL OR EXISTS (
      SELECT 1 FROM mainspring.tokens t
      WHERE t.id = s.token_id AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > :now)));

-- name: forget_sessions
DELETE FROM mainspring.sessions WHERE opened_at < :now - :longest::interval RETURNING id;

-- name: note_session
UPDATE mainspring.sessions SET seen_at = :now WHERE id = :id;

-- name: close_session
DELETE FROM mainspring.sessions WHERE id = :id RETURNING id;

-- name: close_sessions_of
DELETE FROM mainspring.sessions WHERE name = :name RETURNING id;

-- name: open_sessions
SELECT s.*, (SELECT t.expires_at FROM mainspring.tokens t WHERE t.id = s.token_id) AS token_expires_at
FROM mainspring.sessions s
WHERE s.seen_at > :now - :idle::interval
  AND s.opened_at > :now - :longest::interval
  AND (s.token_id IS NULL OR EXISTS (
      SELECT 1 FROM mainspring.tokens t
      WHERE t.id = s.token_id AND t.revoked_at IS NULL
        AND (t.expires_at IS NULL OR t.expires_at > :now)))
ORDER BY s.id DESC;
