-- name: lock_head
SELECT id, digest, :now AS now FROM acts_head;

-- name: append_acts
INSERT INTO acts (id, at, phase, act, actor, role, via, target, details, order_id, address, digest)
VALUES (:id, :at, :phase, :act, :actor, :role, :via, :target, :details, :order_id, :address, :digest);

-- name: acts_of_target
SELECT * FROM acts
WHERE order_id IS NULL AND target = :target AND id < :before
  AND (:actor IS NULL OR +actor = :actor) AND (:act IS NULL OR +act = :act)
ORDER BY id DESC LIMIT :limit;

-- name: acts_of_actor
SELECT * FROM acts
WHERE order_id IS NULL AND actor = :actor AND id < :before AND (:act IS NULL OR +act = :act)
ORDER BY id DESC LIMIT :limit;
