-- name: unreadable_rows
SELECT kind AS "table", ref AS "key", at FROM mainspring.unreadable_rows ORDER BY id DESC LIMIT 100;
