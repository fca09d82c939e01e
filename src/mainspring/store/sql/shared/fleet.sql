-- name: join_fleet
INSERT INTO mainspring.processes (id, role, name, queues, tasks, version, tzdata, started_at, lease_until, lease)
VALUES (:id, :role, :name, :queues, :tasks, :version, :tzdata,
        :now, :now + :lease::interval, :lease::interval);

-- name: leave_clean
DELETE FROM mainspring.processes WHERE id = :id;

-- name: beat
UPDATE mainspring.processes
SET lease_until = :now + :lease::interval, lease = :lease::interval, holding = :holding, skew = :told::timestamptz - :now
WHERE id = :id AND NOT dead
RETURNING id;

-- name: held_claims
SELECT id, fence FROM mainspring.jobs WHERE id = ANY (:ids::bigint[]) AND worker_id = :id;

-- name: leave_claims
-- The process may still have claims. Its row stays, marked as dead, until the reaper has given the claims back. A claim
-- may even be under way: FOR UPDATE waits for its end, as in end_processes.
WITH me AS (SELECT id FROM mainspring.processes WHERE id = :id FOR UPDATE)
UPDATE mainspring.processes AS m SET dead = true FROM me WHERE m.id = me.id;

-- name: dead_processes
-- `late` says whether there are processes whose lease has ended and that are not marked as dead.
SELECT :now AS at, EXISTS (SELECT 1 FROM mainspring.processes WHERE dead) AS dead,
       EXISTS (SELECT 1 FROM mainspring.processes WHERE NOT dead AND lease_until <= :now) AS late;

-- name: processes
SELECT id, role, name, queues, tasks, version, tzdata, started_at, lease_until, skew, cardinality(holding) AS holding,
       NOT dead AND lease_until > :now AS alive
FROM mainspring.processes ORDER BY started_at, id;
