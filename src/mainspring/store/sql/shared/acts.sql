-- name: head
SELECT id, digest FROM mainspring.acts_head;

-- name: move_head
UPDATE mainspring.acts_head SET id = :id, digest = :digest;

-- name: acts_page
SELECT * FROM mainspring.acts WHERE order_id IS NULL AND id < :before ORDER BY id DESC LIMIT :limit;

-- name: acts_of_kind
SELECT * FROM mainspring.acts WHERE order_id IS NULL AND act = :act AND id < :before ORDER BY id DESC LIMIT :limit;

-- name: act_ends
SELECT * FROM mainspring.acts WHERE order_id = ANY (:ids::bigint[]);

-- name: acts_after
SELECT * FROM mainspring.acts WHERE id > :after ORDER BY id LIMIT :limit;
