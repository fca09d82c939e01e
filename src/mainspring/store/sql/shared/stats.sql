-- name: prune_stats
DELETE FROM mainspring.stats WHERE span = :span AND at < :now - :keep::interval RETURNING span;
