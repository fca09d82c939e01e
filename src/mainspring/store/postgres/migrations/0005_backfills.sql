-- Slots of the past, run on request. A backfill's jobs are told apart, for overlap takes no notice of them.
ALTER TABLE mainspring.jobs ADD COLUMN backfill_id bigint;
CREATE INDEX jobs_backfill ON mainspring.jobs (backfill_id) WHERE backfill_id IS NOT NULL;

CREATE TABLE mainspring.backfills (
    id           bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    schedule     text        NOT NULL,
    start_at     timestamptz NOT NULL,
    end_at       timestamptz NOT NULL,
    author       text        NOT NULL,
    max_active   int         NOT NULL,
    reverse      boolean     NOT NULL,
    reprocess    text        NOT NULL,
    created_at   timestamptz NOT NULL,
    ended_at     timestamptz,
    cancelled_by text
);
CREATE INDEX backfills_active ON mainspring.backfills (id) WHERE ended_at IS NULL;

CREATE TABLE mainspring.backfill_slots (
    backfill_id bigint      NOT NULL,
    place       int         NOT NULL,   -- the order in which they run
    schedule_id bigint      NOT NULL,
    slot_at     timestamptz NOT NULL,
    version     int         NOT NULL,
    seen_job_id bigint,                 -- what the ledger named when this was planned
    job_id      bigint,                 -- what was made of it; NULL with done: somebody else was faster
    done        boolean     NOT NULL DEFAULT false,
    PRIMARY KEY (backfill_id, place)
);
CREATE INDEX backfill_slots_pending ON mainspring.backfill_slots (backfill_id, place) WHERE NOT done;
CREATE INDEX backfill_slots_schedule ON mainspring.backfill_slots (schedule_id, slot_at);
