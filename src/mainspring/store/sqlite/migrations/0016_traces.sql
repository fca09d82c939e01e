-- The trace that a job goes on with: a W3C traceparent, and after a space a tracestate if there is one.
ALTER TABLE jobs ADD COLUMN trace TEXT;
ALTER TABLE dead_jobs ADD COLUMN trace TEXT;
