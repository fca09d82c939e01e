-- Policies of schedules, their versions, and what the ledger says about them.

ALTER TABLE mainspring.schedules
    ADD COLUMN overlap       text        NOT NULL DEFAULT 'skip',
    ADD COLUMN overlap_limit int         NOT NULL DEFAULT 1,
    ADD COLUMN offset_by     interval    NOT NULL DEFAULT '0',
    ADD COLUMN jitter        interval    NOT NULL DEFAULT '0',
    ADD COLUMN max_fires     int,
    ADD COLUMN fires_left    int,
    ADD COLUMN skips         int         NOT NULL DEFAULT 0,
    ADD COLUMN edited        boolean     NOT NULL DEFAULT false,
    ADD COLUMN paused_at     timestamptz,
    ADD COLUMN paused_by     text,
    ADD COLUMN pause_note    text;

CREATE TABLE mainspring.schedule_versions (
    schedule_id bigint      NOT NULL,
    version     int         NOT NULL,
    name        text        NOT NULL,
    change      text        NOT NULL,
    changed_at  timestamptz NOT NULL,
    author      text        NOT NULL,
    note        text,
    definition  text        NOT NULL,   -- the schedule as JSON, as it was from then on
    PRIMARY KEY (schedule_id, version)
);
CREATE INDEX schedule_versions_name ON mainspring.schedule_versions (name);

-- Schedules that want every missed slot do not share a spec with those that want the newest.
ALTER TABLE mainspring.specs ADD COLUMN catch_up interval NOT NULL DEFAULT '-1 second';  -- negative: coalesce
ALTER TABLE mainspring.specs DROP CONSTRAINT specs_trigger_key;
ALTER TABLE mainspring.specs ADD CONSTRAINT specs_trigger_key UNIQUE (trigger, catch_up);

ALTER TABLE mainspring.fires ADD COLUMN skip text, ADD COLUMN note text;
ALTER TABLE mainspring.slots ADD COLUMN blocker bigint, ADD COLUMN note text;

-- Live jobs by schedule, for overlap; and those held back until their predecessors have ended, whose
-- run_at is the end of time. A claim changes neither column, so claims stay HOT.
CREATE INDEX jobs_schedule ON mainspring.jobs (schedule_id) WHERE schedule_id IS NOT NULL;
CREATE INDEX jobs_held ON mainspring.jobs (schedule_id, id) WHERE run_at = timestamptz '9999-01-01 00:00:00+00';

-- The oldest fire first, without sorting all that are open at the top of the hour.
CREATE INDEX fires_oldest ON mainspring.fires (slot_at, spec_id);
-- `id + 0` for the reason jobs_ready has it: a schedule is looked up by its id in the key, never here.
DROP INDEX mainspring.schedules_spec;
CREATE INDEX schedules_spec ON mainspring.schedules (spec_id, (id + 0));
