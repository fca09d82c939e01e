-- name: purge_dead
DELETE FROM mainspring.dead_jobs WHERE id = ANY (:ids::bigint[]) RETURNING id;
