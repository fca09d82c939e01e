-- name: skip_slots
UPDATE mainspring.schedules SET skips = skips + :count, version = version + 1 WHERE name = :name RETURNING name;

-- name: delete_schedules
DELETE FROM mainspring.schedules WHERE id = ANY (:ids::bigint[]) RETURNING name;
