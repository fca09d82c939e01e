"""The PostgreSQL dialect of the store."""
