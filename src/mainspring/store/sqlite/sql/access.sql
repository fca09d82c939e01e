-- name: add_token
INSERT INTO tokens (digest, name, role, scopes, hint, author, created_at, expires_at)
VALUES (:digest, :name, :role, :scopes, :hint, :author, :now, :expires_at)
RETURNING *, expires_at IS NULL OR expires_at > :now AS alive;

-- name: tokens_on_record
SELECT *, revoked_at IS NULL AND (expires_at IS NULL OR expires_at > :now) AS alive FROM tokens ORDER BY id DESC;

-- name: token
SELECT *, 1 AS alive, last_used_at IS NULL OR last_used_at <= :now - 60000000 AS worth_noting
FROM tokens WHERE digest = :digest AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > :now);

-- name: note_token
UPDATE tokens SET last_used_at = :now WHERE id = :id;

-- name: revoke_token
UPDATE tokens SET revoked_at = :now
WHERE id = :id AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > :now)
RETURNING id;

-- name: close_sessions_of_token
DELETE FROM sessions WHERE token_id = :id RETURNING id;

-- name: open_session
INSERT INTO sessions (digest, name, role, scopes, token_id, opened_at, seen_at)
VALUES (:digest, :name, :role, :scopes, :token_id, :now, :now)
RETURNING *, (SELECT t.expires_at FROM tokens t WHERE t.id = sessions.token_id) AS token_expires_at;

-- name: forget_sessions
DELETE FROM sessions WHERE opened_at < :now - :longest RETURNING id;

-- name: session_on_record
SELECT s.*, (SELECT t.expires_at FROM tokens t WHERE t.id = s.token_id) AS token_expires_at,
       s.seen_at <= :now - 60000000 AS worth_noting FROM sessions s
WHERE s.digest = :digest AND s.seen_at > :now - :idle AND s.opened_at > :now - :longest
  AND (s.token_id IS NULL OR EXISTS (
      SELECT 1 FROM tokens t
      WHERE t.id = s.token_id AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > :now)));

-- name: note_session
UPDATE sessions SET seen_at = :now WHERE id = :id;

-- name: close_session
DELETE FROM sessions WHERE id = :id RETURNING id;

-- name: close_sessions_of
DELETE FROM sessions WHERE name = :name RETURNING id;

-- name: open_sessions
SELECT s.*, (SELECT t.expires_at FROM tokens t WHERE t.id = s.token_id) AS token_expires_at
FROM sessions s
WHERE s.seen_at > :now - :idle AND s.opened_at > :now - :longest
  AND (s.token_id IS NULL OR EXISTS (
      SELECT 1 FROM tokens t
      WHERE t.id = s.token_id AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > :now)))
ORDER BY s.id DESC;
