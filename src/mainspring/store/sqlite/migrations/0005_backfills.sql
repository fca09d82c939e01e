-- Slots of the past, run on request. A backfill's jobs are told apart, for overlap takes no notice of them.
ALTER TABLE jobs ADD COLUMN backfill_id INTEGER;
CREATE INDEX jobs_backfill ON jobs (backfill_id) WHERE backfill_id IS NOT NULL;

CREATE TABLE backfills (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    schedule     TEXT    NOT NULL,
    start_at     INTEGER NOT NULL,
    end_at       INTEGER NOT NULL,
    author       TEXT    NOT NULL,
    max_active   INTEGER NOT NULL,
    reverse      INTEGER NOT NULL,
    reprocess    TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    ended_at     INTEGER,
    cancelled_by TEXT
) STRICT;
CREATE INDEX backfills_active ON backfills (id) WHERE ended_at IS NULL;

CREATE TABLE backfill_slots (
    backfill_id INTEGER NOT NULL,
    place       INTEGER NOT NULL,   -- the order in which they run
    schedule_id INTEGER NOT NULL,
    slot_at     INTEGER NOT NULL,
    version     INTEGER NOT NULL,
    seen_job_id INTEGER,            -- what the ledger named when this was planned
    job_id      INTEGER,            -- what was made of it; NULL with done: somebody else was faster
    done        INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (backfill_id, place)
) STRICT, WITHOUT ROWID;
CREATE INDEX backfill_slots_pending ON backfill_slots (backfill_id, place) WHERE NOT done;
CREATE INDEX backfill_slots_schedule ON backfill_slots (schedule_id, slot_at);
