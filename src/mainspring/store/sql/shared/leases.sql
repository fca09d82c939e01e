-- now() is the start of the statement, and the statement may have waited since then. So the end of a lease only moves
-- forward. Otherwise a late call could shorten a lease that a later call has renewed.

-- name: acquire_lease
-- If another holder has the lease, nothing is locked or written, because a caller that waits asks often. The clause on the
-- conflict decides: it reads the row when this statement has locked it.
INSERT INTO mainspring.leases AS l (name, token, holder_id, holder, expires_at, acquired_at)
SELECT :name, 1, :holder_id, :holder, :now + :ttl::interval, :now
WHERE NOT EXISTS (
    SELECT 1 FROM mainspring.leases h
    WHERE h.name = :name AND h.holder_id <> :holder_id AND h.expires_at > :now
)
ON CONFLICT (name) DO UPDATE SET
    -- A holder that asks again has lost the answer: it has the lease already.
    token = l.token + CASE WHEN l.holder_id = excluded.holder_id AND l.expires_at > excluded.acquired_at THEN 0 ELSE 1 END,
    acquired_at = CASE WHEN l.holder_id = excluded.holder_id AND l.expires_at > excluded.acquired_at
                       THEN l.acquired_at ELSE excluded.acquired_at END,
    expires_at = greatest(l.expires_at, excluded.expires_at),
    holder_id = excluded.holder_id,
    holder = excluded.holder
WHERE l.expires_at <= excluded.acquired_at OR l.holder_id = excluded.holder_id
RETURNING token, acquired_at, expires_at;

-- name: lease_holder
SELECT holder, expires_at, expires_at - :now AS remaining
FROM mainspring.leases WHERE name = :name;

-- name: leases
SELECT name, token, holder, acquired_at, expires_at, expires_at > :now AS held
FROM mainspring.leases ORDER BY name COLLATE "C";

-- name: renew_lease
UPDATE mainspring.leases SET expires_at = greatest(expires_at, :now + :ttl::interval)
WHERE name = :name AND holder_id = :holder_id AND token = :token AND expires_at > :now
RETURNING token;

-- name: release_lease
-- The lease has no holder from now on: a renewal that arrives late must not renew it.
UPDATE mainspring.leases SET expires_at = :now, holder_id = 0
WHERE name = :name AND holder_id = :holder_id AND token = :token AND expires_at > :now
RETURNING token;
