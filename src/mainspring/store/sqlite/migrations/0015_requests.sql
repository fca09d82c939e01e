-- Requests that carry a key of their caller's, and what was answered: who asks again is answered the same.
CREATE TABLE requests (
    caller TEXT    NOT NULL,
    key    TEXT    NOT NULL,
    digest BLOB    NOT NULL,                -- SHA-256 of what was asked for
    answer BLOB    NOT NULL,                -- JSON: a job's id, whether it was made, whether replaced
    at     INTEGER NOT NULL,
    PRIMARY KEY (caller, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX requests_at ON requests (at);
