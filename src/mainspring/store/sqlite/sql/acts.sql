-- name: head
SELECT id, digest FROM acts_head;

-- name: append_acts
INSERT INTO acts (id, at, phase, act, actor, role, via, target, details, order_id, address, digest)
VALUES (:id, :at, :phase, :act, :actor, :role, :via, :target, :details, :order_id, :address, :digest);

-- name: move_head
UPDATE acts_head SET id = :id, digest = :digest;

-- name: acts_page
SELECT * FROM acts WHERE order_id IS NULL AND id < :before ORDER BY id DESC LIMIT :limit;

-- name: acts_of_target
SELECT * FROM acts
WHERE order_id IS NULL AND target = :target AND id < :before
  AND (:actor IS NULL OR +actor = :actor) AND (:act IS NULL OR +act = :act)
ORDER BY id DESC LIMIT :limit;

-- name: acts_of_actor
SELECT * FROM acts
WHERE order_id IS NULL AND actor = :actor AND id < :before AND (:act IS NULL OR +act = :act)
ORDER BY id DESC LIMIT :limit;

-- name: acts_of_kind
SELECT * FROM acts WHERE order_id IS NULL AND act = :act AND id < :before ORDER BY id DESC LIMIT :limit;

-- name: act_ends
SELECT * FROM acts WHERE order_id IN (SELECT value FROM json_each(:ids));

-- name: acts_after
SELECT * FROM acts WHERE id > :after ORDER BY id LIMIT :limit;
