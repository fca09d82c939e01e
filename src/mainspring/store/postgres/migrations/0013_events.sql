-- Events. The row is where those who send and those who begin to wait meet: each locks it first, so that one of them
-- always sees the other. Until somebody has sent it there is no moment.
CREATE TABLE mainspring.events (
    job_id  bigint      NOT NULL,           -- whose; 0: everybody's
    name    text        NOT NULL,
    payload bytea,
    sent_at timestamptz,
    PRIMARY KEY (job_id, name)
);
-- A job waits as long as it has not been claimed again: until its fence is another.
CREATE TABLE mainspring.event_waits (
    job_id bigint NOT NULL PRIMARY KEY,
    name   text   NOT NULL,
    fence  int    NOT NULL
);
CREATE INDEX event_waits_name ON mainspring.event_waits (name);
