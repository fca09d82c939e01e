-- name: file_health
SELECT (SELECT page_count FROM pragma_page_count) AS pages, (SELECT page_size FROM pragma_page_size) AS page_size,
       (SELECT freelist_count FROM pragma_freelist_count) AS free;

-- name: quick_check
PRAGMA quick_check;
