-- name: lock_head
-- Transactions append one after the other, so the moment of an entry is later than the moment of the entry before.
SELECT id, digest, clock_timestamp() AS now FROM mainspring.audit_log_head FOR UPDATE;

-- name: append_audit_log
INSERT INTO mainspring.audit_log (id, at, phase, action, actor, role, via, object, details, order_id, address, digest)
SELECT * FROM unnest(
    :id::bigint[], :at::timestamptz[], :phase::text[], :action::text[], :actor::text[], :role::text[], :via::text[],
    :object::text[], :details::bytea[], :order_id::bigint[], :address::text[], :digest::bytea[]
);

-- name: audit_log_of_object
SELECT * FROM mainspring.audit_log
WHERE order_id IS NULL AND object = :object AND id < :before
  AND (:actor::text IS NULL OR actor = :actor) IS TRUE AND (:action::text IS NULL OR action = :action) IS TRUE
ORDER BY id DESC LIMIT :limit;

-- name: audit_log_of_actor
SELECT * FROM mainspring.audit_log
WHERE order_id IS NULL AND actor = :actor AND id < :before AND (:action::text IS NULL OR action = :action) IS TRUE
ORDER BY id DESC LIMIT :limit;
