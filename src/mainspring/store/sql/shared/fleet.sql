-- name: join_fleet
INSERT INTO mainspring.members (id, role, name, queues, tasks, version, tzdata, started_at, lease_until, lease)
VALUES (:id, :role, :name, :queues, :tasks, :version, :tzdata,
        :now, :now + :lease::interval, :lease::interval);

-- name: leave_clean
DELETE FROM mainspring.members WHERE id = :id;
