-- The last pause that has ended: slots of it that nobody had opened are skipped as paused when somebody does.
ALTER TABLE schedules ADD COLUMN last_paused_at INTEGER;
ALTER TABLE schedules ADD COLUMN last_resumed_at INTEGER;
