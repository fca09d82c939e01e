-- name: token
SELECT *, true AS alive,
       last_used_at IS NULL OR last_used_at <= coalesce(:at::timestamptz, now()) - interval '1 minute' AS worth_noting
FROM mainspring.tokens
WHERE digest = :digest AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > coalesce(:at::timestamptz, now()));

-- name: session_on_record
SELECT s.*, (SELECT t.expires_at FROM mainspring.tokens t WHERE t.id = s.token_id) AS token_expires_at,
       s.seen_at <= coalesce(:at::timestamptz, now()) - interval '1 minute' AS worth_noting
FROM mainspring.sessions s
WHERE s.digest = :digest
  AND s.seen_at > coalesce(:at::timestamptz, now()) - :idle::interval
  AND s.opened_at > coalesce(:at::timestamptz, now()) - :longest::interval
  AND (s.token_id IS NULL OR EXISTS (
      SELECT 1 FROM mainspring.tokens t
      WHERE t.id = s.token_id AND t.revoked_at IS NULL
        AND (t.expires_at IS NULL OR t.expires_at > coalesce(:at::timestamptz, now()))));
