"""PostgreSQL adapter: SQL beside it, rows turned into model values, driver errors translated."""
