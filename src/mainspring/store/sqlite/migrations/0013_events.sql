-- Events. Until somebody has sent one there is no row. A job waits as long as it has not been claimed again: until
-- its fence is another.
CREATE TABLE events (
    job_id  INTEGER NOT NULL,               -- whose; 0: everybody's
    name    TEXT    NOT NULL,
    payload BLOB    NOT NULL,
    sent_at INTEGER NOT NULL,
    PRIMARY KEY (job_id, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE event_waits (
    job_id INTEGER NOT NULL PRIMARY KEY,
    name   TEXT    NOT NULL,
    fence  INTEGER NOT NULL
) STRICT;
CREATE INDEX event_waits_name ON event_waits (name);
