"""The SQLite adapter: one file, any number of processes on one host, or `:memory:` for tests."""
