-- name: purge_dead
DELETE FROM mainspring.dead_jobs WHERE id = ANY (:ids::bigint[]) RETURNING id;

-- name: known_ids
-- Wherever they now stand: a job that was inserted may have run and gone before anybody asks.
SELECT id FROM mainspring.jobs WHERE id = ANY (:ids::bigint[])
UNION SELECT id FROM mainspring.dead_jobs WHERE id = ANY (:ids::bigint[])
UNION SELECT job_id FROM mainspring.runs WHERE job_id = ANY (:ids::bigint[]);
