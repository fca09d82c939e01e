-- Keys of jobs that must not be doubled. Only jobs that have one touch this table, and only when they are inserted:
-- whether a key is taken is read off the job it names.
CREATE TABLE unique_keys (
    key    BLOB    NOT NULL PRIMARY KEY,   -- SHA-256
    name   TEXT    NOT NULL,               -- for people
    job_id INTEGER NOT NULL,
    until  INTEGER                         -- kept so long, whatever becomes of the job
) STRICT, WITHOUT ROWID;
