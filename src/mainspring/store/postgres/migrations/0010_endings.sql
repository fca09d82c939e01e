-- Deadlines of jobs. A claim changes no such column, so claims stay HOT; most jobs have none, and are in no index for it.
ALTER TABLE mainspring.jobs ADD COLUMN expires_at timestamptz;
CREATE INDEX jobs_expiring ON mainspring.jobs (expires_at) WHERE expires_at IS NOT NULL;
ALTER TABLE mainspring.dead_jobs ADD COLUMN expires_at timestamptz;
ALTER TABLE mainspring.schedules ADD COLUMN expires_after interval;

-- How many died lately, without reading all that ever did.
CREATE INDEX dead_jobs_died ON mainspring.dead_jobs (died_at);
