-- Keys of jobs that must not be doubled. Only jobs that have one touch this table, and only when they are inserted:
-- whether a key is taken is read off the job it names.
CREATE TABLE mainspring.unique_keys (
    key    bytea       NOT NULL PRIMARY KEY,   -- SHA-256
    name   text        NOT NULL,               -- for people
    job_id bigint      NOT NULL,
    until  timestamptz                         -- kept so long, whatever becomes of the job
);
