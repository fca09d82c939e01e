-- name: lock_head
-- Whoever appends comes after whoever appended before, and is stamped after them.
SELECT id, digest, clock_timestamp() AS now FROM mainspring.acts_head FOR UPDATE;

-- name: append_acts
INSERT INTO mainspring.acts (id, at, phase, act, actor, role, via, target, details, order_id, address, digest)
SELECT * FROM unnest(
    :id::bigint[], :at::timestamptz[], :phase::text[], :act::text[], :actor::text[], :role::text[], :via::text[],
    :target::text[], :details::bytea[], :order_id::bigint[], :address::text[], :digest::bytea[]
);

-- name: acts_of_target
SELECT * FROM mainspring.acts
WHERE order_id IS NULL AND target = :target AND id < :before
  AND (:actor::text IS NULL OR actor = :actor) IS TRUE AND (:act::text IS NULL OR act = :act) IS TRUE
ORDER BY id DESC LIMIT :limit;

-- name: acts_of_actor
SELECT * FROM mainspring.acts
WHERE order_id IS NULL AND actor = :actor AND id < :before AND (:act::text IS NULL OR act = :act) IS TRUE
ORDER BY id DESC LIMIT :limit;
