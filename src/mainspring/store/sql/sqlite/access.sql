-- name: token
SELECT *, 1 AS alive, last_used_at IS NULL OR last_used_at <= :now - 60000000 AS worth_noting
FROM tokens WHERE digest = :digest AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > :now);

-- name: session_on_record
SELECT s.*, (SELECT t.expires_at FROM tokens t WHERE t.id = s.token_id) AS token_expires_at,
       s.seen_at <= :now - 60000000 AS worth_noting FROM sessions s
WHERE s.digest = :digest AND s.seen_at > :now - :idle AND s.opened_at > :now - :longest
  AND (s.token_id IS NULL OR EXISTS (
      SELECT 1 FROM tokens t
      WHERE t.id = s.token_id AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > :now)));
