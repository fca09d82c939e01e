-- name: put_calendar
INSERT INTO mainspring.calendars (name, version, definition) VALUES (:name, :version, :definition) ON CONFLICT DO NOTHING;

-- name: calendars
SELECT name, version, definition FROM mainspring.calendars ORDER BY name, version;
