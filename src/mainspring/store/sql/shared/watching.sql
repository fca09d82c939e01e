-- name: watch_lost
SELECT role, name, max(lost_at) AS lost_at FROM mainspring.lost_members
WHERE lost_at > :now - :lost_window::interval
GROUP BY role, name ORDER BY 3 DESC LIMIT :most + 1;

-- name: watch_gaps
SELECT began_at, ended_at FROM mainspring.gaps
WHERE ended_at > :now - :failed_window::interval ORDER BY began_at LIMIT :most;
