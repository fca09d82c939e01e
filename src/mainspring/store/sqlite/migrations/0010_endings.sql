-- Deadlines of jobs; most jobs have none, and are in no index for it.
ALTER TABLE jobs ADD COLUMN expires_at INTEGER;
CREATE INDEX jobs_expiring ON jobs (expires_at) WHERE expires_at IS NOT NULL;
ALTER TABLE dead_jobs ADD COLUMN expires_at INTEGER;
ALTER TABLE schedules ADD COLUMN expires_after INTEGER;

-- How many died lately, without reading all that ever did.
CREATE INDEX dead_jobs_died ON dead_jobs (died_at);
