-- A herd is fired by several schedulers at once: a fire is a range of its spec's schedules, and one with many left is cut in
-- two. The one that ends with the last schedule there may ever be is the first of its slot.
ALTER TABLE mainspring.fires ADD COLUMN until_id bigint NOT NULL DEFAULT 9223372036854775807;
-- The sum keeps it to the one statement that looks for the oldest. The key comes last: on an empty table all ways cost the
-- same, and the latest is taken.
DROP INDEX mainspring.fires_oldest;
CREATE INDEX fires_oldest ON mainspring.fires (slot_at, (spec_id + 0), until_id);
ALTER TABLE mainspring.fires DROP CONSTRAINT fires_pkey, ADD CONSTRAINT fires_pkey PRIMARY KEY (spec_id, slot_at, until_id);
