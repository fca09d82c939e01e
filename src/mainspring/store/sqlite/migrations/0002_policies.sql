-- Policies of schedules, their versions, and what the ledger says about them; column for column PostgreSQL's.

ALTER TABLE schedules ADD COLUMN overlap       TEXT    NOT NULL DEFAULT 'skip';
ALTER TABLE schedules ADD COLUMN overlap_limit INTEGER NOT NULL DEFAULT 1;
ALTER TABLE schedules ADD COLUMN offset_by     INTEGER NOT NULL DEFAULT 0;
ALTER TABLE schedules ADD COLUMN jitter        INTEGER NOT NULL DEFAULT 0;
ALTER TABLE schedules ADD COLUMN max_fires     INTEGER;
ALTER TABLE schedules ADD COLUMN fires_left    INTEGER;
ALTER TABLE schedules ADD COLUMN skips         INTEGER NOT NULL DEFAULT 0;
ALTER TABLE schedules ADD COLUMN edited        INTEGER NOT NULL DEFAULT 0;
ALTER TABLE schedules ADD COLUMN paused_at     INTEGER;
ALTER TABLE schedules ADD COLUMN paused_by     TEXT;
ALTER TABLE schedules ADD COLUMN pause_note    TEXT;

CREATE TABLE schedule_versions (
    schedule_id INTEGER NOT NULL,
    version     INTEGER NOT NULL,
    name        TEXT    NOT NULL,
    change      TEXT    NOT NULL,
    changed_at  INTEGER NOT NULL,
    author      TEXT    NOT NULL,
    note        TEXT,
    definition  TEXT    NOT NULL,              -- the schedule as JSON, as it was from then on
    PRIMARY KEY (schedule_id, version)
) STRICT, WITHOUT ROWID;
CREATE INDEX schedule_versions_name ON schedule_versions (name);

-- Schedules that want every missed slot do not share a spec with those that want the newest. SQLite
-- cannot change a key in place, so the table is built anew; ids stay, for schedules and fires name them.
CREATE TABLE specs_with_catch_up (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    trigger      TEXT    NOT NULL,
    next_at      INTEGER,                      -- null: no slot is left
    following_at INTEGER,
    planned      INTEGER NOT NULL,             -- following_at is known
    catch_up     INTEGER NOT NULL DEFAULT -1000000,  -- negative: coalesce
    UNIQUE (trigger, catch_up)
) STRICT;
INSERT INTO specs_with_catch_up (id, trigger, next_at, following_at, planned)
SELECT id, trigger, next_at, following_at, planned FROM specs ORDER BY id;
DROP TABLE specs;
ALTER TABLE specs_with_catch_up RENAME TO specs;
CREATE INDEX specs_due ON specs (next_at);
CREATE INDEX specs_unplanned ON specs (id) WHERE NOT planned;

ALTER TABLE fires ADD COLUMN skip TEXT;
ALTER TABLE fires ADD COLUMN note TEXT;
ALTER TABLE slots ADD COLUMN blocker INTEGER;
ALTER TABLE slots ADD COLUMN note TEXT;

-- Live jobs by schedule, for overlap; and those held back until their predecessors have ended, whose
-- run_at is the end of time: PostgreSQL's jobs_held, a name that is taken here.
CREATE INDEX jobs_schedule ON jobs (schedule_id) WHERE schedule_id IS NOT NULL;
CREATE INDEX jobs_waiting ON jobs (schedule_id, id) WHERE run_at = 253370764800000000;

-- The oldest fire first, without sorting all that are open at the top of the hour.
CREATE INDEX fires_oldest ON fires (slot_at, spec_id);
