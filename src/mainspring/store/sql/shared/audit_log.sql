-- name: head
SELECT id, digest FROM mainspring.audit_log_head;

-- name: move_head
UPDATE mainspring.audit_log_head SET id = :id, digest = :digest;

-- name: audit_log_page
SELECT * FROM mainspring.audit_log WHERE order_id IS NULL AND id < :before ORDER BY id DESC LIMIT :limit;

-- name: audit_log_of_action
SELECT * FROM mainspring.audit_log WHERE order_id IS NULL AND action = :action AND id < :before ORDER BY id DESC LIMIT :limit;

-- name: audit_log_ends
SELECT * FROM mainspring.audit_log WHERE order_id = ANY (:ids::bigint[]);

-- name: audit_log_after
SELECT * FROM mainspring.audit_log WHERE id > :after ORDER BY id LIMIT :limit;
