-- name: acquire_lease
-- Plainly held: nothing is written, for whoever waits asks often.
INSERT INTO leases AS l (name, token, holder_id, holder, expires_at, acquired_at)
SELECT :name, 1, :holder_id, :holder, :now + :ttl, :now
WHERE NOT EXISTS (SELECT 1 FROM leases h WHERE h.name = :name AND h.holder_id <> :holder_id AND h.expires_at > :now)
ON CONFLICT (name) DO UPDATE SET
    -- A holder that asks again did not hear the answer: it has the lease already.
    token = l.token + CASE WHEN l.holder_id = excluded.holder_id AND l.expires_at > excluded.acquired_at THEN 0 ELSE 1 END,
    acquired_at = CASE WHEN l.holder_id = excluded.holder_id AND l.expires_at > excluded.acquired_at
                       THEN l.acquired_at ELSE excluded.acquired_at END,
    expires_at = max(l.expires_at, excluded.expires_at),
    holder_id = excluded.holder_id,
    holder = excluded.holder
WHERE l.expires_at <= excluded.acquired_at OR l.holder_id = excluded.holder_id
RETURNING token, acquired_at, expires_at;

-- name: lease_holder
SELECT holder, expires_at, expires_at - :now AS remaining FROM leases WHERE name = :name;

-- name: renew_lease
-- An end is only ever moved forward: a call that is late must not cut short what a later one has promised.
UPDATE leases SET expires_at = max(expires_at, :now + :ttl)
WHERE name = :name AND holder_id = :holder_id AND token = :token AND expires_at > :now;

-- name: release_lease
-- Nobody's from now on: a renewal that is still on its way must not bring it back.
UPDATE leases SET expires_at = :now, holder_id = 0
WHERE name = :name AND holder_id = :holder_id AND token = :token AND expires_at > :now;

-- name: leases
SELECT name, token, holder, acquired_at, expires_at, expires_at > :now AS held FROM leases ORDER BY name;
