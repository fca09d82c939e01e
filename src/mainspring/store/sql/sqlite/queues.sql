-- name: claims_under_way
-- None: one transaction writes at a time, so a claim of now began after the pause was written.
SELECT 0 AS claims;

-- name: jobs_size
-- Jobs are always counted.
SELECT 0 AS pages;
