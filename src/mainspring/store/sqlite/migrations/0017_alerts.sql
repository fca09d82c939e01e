-- What somebody expects of a schedule's slots; most schedules have neither, and are in no index for it.
ALTER TABLE schedules ADD COLUMN expect_start_within INTEGER;
ALTER TABLE schedules ADD COLUMN expect_finish_by INTEGER;
CREATE INDEX schedules_expecting ON schedules (id) WHERE expect_start_within IS NOT NULL OR expect_finish_by IS NOT NULL;

-- Processes whose lease ended without a word: their own rows are gone as soon as their jobs are given back.
CREATE TABLE lost_members (
    id      INTEGER NOT NULL PRIMARY KEY,
    role    TEXT    NOT NULL,
    name    TEXT    NOT NULL,
    lost_at INTEGER NOT NULL
) STRICT;
CREATE INDEX lost_members_at ON lost_members (lost_at);

CREATE TABLE alerts (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    uid         INTEGER NOT NULL,   -- random: names it to receivers, whatever becomes of the database
    rule        TEXT    NOT NULL,
    subject     TEXT    NOT NULL,
    severity    TEXT    NOT NULL,
    sentence    TEXT    NOT NULL,
    since       INTEGER NOT NULL,   -- when what is wrong began
    seen_at     INTEGER NOT NULL,   -- when it was first seen
    opened_at   INTEGER,            -- null: not yet seen for long enough
    clearing_at INTEGER,            -- not seen since then
    closed_at   INTEGER,
    repeats     INTEGER NOT NULL DEFAULT 0,
    repeated_at INTEGER,
    acked_at    INTEGER,
    acked_by    TEXT
) STRICT;
CREATE UNIQUE INDEX alerts_open ON alerts (rule, subject) WHERE closed_at IS NULL;
CREATE INDEX alerts_closed ON alerts (closed_at) WHERE closed_at IS NOT NULL;

-- What is to be said of it, and to whom: written with the alert, sent afterwards.
CREATE TABLE alert_notes (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    alert_id   INTEGER NOT NULL,
    kind       TEXT    NOT NULL,
    place      INTEGER NOT NULL,    -- of repeats, which
    target     TEXT    NOT NULL,    -- a digest of its address
    shown      TEXT    NOT NULL,    -- the address without secrets
    state      TEXT    NOT NULL DEFAULT 'waiting',
    due_at     INTEGER NOT NULL,    -- while it is sent: when it is taken as not sent
    batch      TEXT,                -- the id of the message, the same for every try
    tries      INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    ended_at   INTEGER,
    problem    TEXT,
    UNIQUE (alert_id, kind, place, target)
) STRICT;
CREATE INDEX alert_notes_due ON alert_notes (due_at) WHERE ended_at IS NULL;
