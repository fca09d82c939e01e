-- name: put_calendar
INSERT INTO calendars (name, version, definition) VALUES (:name, :version, :definition) ON CONFLICT DO NOTHING;

-- name: calendars
SELECT name, version, definition FROM calendars ORDER BY name, version;
