-- What somebody expects of a schedule's slots; most schedules have neither, and are in no index for it.
ALTER TABLE mainspring.schedules ADD COLUMN expect_start_within interval;
ALTER TABLE mainspring.schedules ADD COLUMN expect_finish_by interval;
CREATE INDEX schedules_expecting ON mainspring.schedules (id) WHERE expect_start_within IS NOT NULL OR expect_finish_by IS NOT NULL;

-- Processes whose lease ended without a word: their own rows are gone as soon as their jobs are given back.
CREATE TABLE mainspring.lost_members (
    id      bigint      NOT NULL PRIMARY KEY,
    role    text        NOT NULL,
    name    text        NOT NULL,
    lost_at timestamptz NOT NULL
);
CREATE INDEX lost_members_at ON mainspring.lost_members (lost_at);

CREATE TABLE mainspring.alerts (
    id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    uid         bigint      NOT NULL,   -- random: names it to receivers, whatever becomes of the database
    rule        text        NOT NULL,
    subject     text        NOT NULL,
    severity    text        NOT NULL,
    sentence    text        NOT NULL,
    since       timestamptz NOT NULL,   -- when what is wrong began
    seen_at     timestamptz NOT NULL,   -- when it was first seen
    opened_at   timestamptz,            -- null: not yet seen for long enough
    clearing_at timestamptz,            -- not seen since then
    closed_at   timestamptz,
    repeats     integer     NOT NULL DEFAULT 0,
    repeated_at timestamptz,
    acked_at    timestamptz,
    acked_by    text
);
CREATE UNIQUE INDEX alerts_open ON mainspring.alerts (rule, subject) WHERE closed_at IS NULL;
CREATE INDEX alerts_closed ON mainspring.alerts (closed_at) WHERE closed_at IS NOT NULL;

-- What is to be said of it, and to whom: written with the alert, sent afterwards.
CREATE TABLE mainspring.alert_notes (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    alert_id   bigint      NOT NULL,
    kind       text        NOT NULL,
    place      integer     NOT NULL,    -- of repeats, which
    target     text        NOT NULL,    -- a digest of its address
    shown      text        NOT NULL,    -- the address without secrets
    state      text        NOT NULL DEFAULT 'waiting',
    due_at     timestamptz NOT NULL,    -- while it is sent: when it is taken as not sent
    batch      text,                    -- the id of the message, the same for every try
    tries      integer     NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL,
    ended_at   timestamptz,
    problem    text,
    UNIQUE (alert_id, kind, place, target)
);
CREATE INDEX alert_notes_due ON mainspring.alert_notes (due_at) WHERE ended_at IS NULL;
