"""The SQLite dialect of the store: one file for any number of processes on one host, or `:memory:` for
tests."""
