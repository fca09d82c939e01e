-- Filled by its feature.
SELECT 1;
