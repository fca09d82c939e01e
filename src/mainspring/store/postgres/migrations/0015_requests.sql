-- Requests that carry a key of their caller's, and what was answered: who asks again is answered the same.
CREATE TABLE mainspring.requests (
    caller text        NOT NULL,
    key    text        NOT NULL,
    digest bytea       NOT NULL,            -- SHA-256 of what was asked for
    answer bytea,                           -- JSON: a job's id, whether it was made, whether replaced
    at     timestamptz NOT NULL,
    PRIMARY KEY (caller, key)
);
CREATE INDEX requests_at ON mainspring.requests (at);
