-- name: lock_head
SELECT id, digest, :now AS now FROM audit_log_head;

-- name: append_audit_log
INSERT INTO audit_log (id, at, phase, action, actor, role, via, object, details, order_id, address, digest)
VALUES (:id, :at, :phase, :action, :actor, :role, :via, :object, :details, :order_id, :address, :digest);

-- name: audit_log_of_object
SELECT * FROM audit_log
WHERE order_id IS NULL AND object = :object AND id < :before
  AND (:actor IS NULL OR +actor = :actor) AND (:action IS NULL OR +action = :action)
ORDER BY id DESC LIMIT :limit;

-- name: audit_log_of_actor
SELECT * FROM audit_log
WHERE order_id IS NULL AND actor = :actor AND id < :before AND (:action IS NULL OR +action = :action)
ORDER BY id DESC LIMIT :limit;
