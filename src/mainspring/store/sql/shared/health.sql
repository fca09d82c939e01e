-- name: unreadable_rows
SELECT kind, ref, at FROM mainspring.unreadable_rows ORDER BY id DESC LIMIT 100;
