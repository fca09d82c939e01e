-- name: note_gap
-- What was counted meanwhile was counted by somebody who ran.
INSERT INTO gaps (began_at, ended_at)
SELECT began_at, ended_at FROM (
    SELECT m.at AS began_at, min(:now, coalesce((
        SELECT s.at FROM stats s WHERE s.span = 1 AND s.at > m.at AND s.at < :now ORDER BY s.at LIMIT 1
    ), :now)) AS ended_at
    FROM watch_mark m
)
WHERE ended_at - began_at >= :outage
ON CONFLICT DO NOTHING;

-- name: mark_watch
INSERT INTO watch_mark AS m (one, since, at) VALUES (1, :now, :now)
ON CONFLICT (one) DO UPDATE
SET since = CASE WHEN excluded.at - m.at > :restart THEN excluded.at ELSE m.since END, at = max(m.at, excluded.at)
RETURNING since;

-- name: prune_gaps
DELETE FROM gaps WHERE ended_at < :now - :keep;

-- name: standing_alerts
SELECT * FROM alerts WHERE closed_at IS NULL ORDER BY id;

-- name: add_alert
INSERT INTO alerts (uid, rule, subject, severity, sentence, since, seen_at, opened_at)
VALUES (:uid, :rule, :subject, :severity, :sentence, :since, :now,
        CASE WHEN :opened THEN :now END)
ON CONFLICT DO NOTHING
RETURNING id;

-- name: move_alert
UPDATE alerts SET
    opened_at = CASE WHEN :move = 'opened' THEN :now ELSE opened_at END,
    clearing_at = CASE :move WHEN 'clearing' THEN :now WHEN 'standing' THEN NULL ELSE clearing_at END,
    closed_at = CASE WHEN :move = 'closed' THEN :now END,
    repeats = repeats + CASE WHEN :move = 'repeated' THEN 1 ELSE 0 END,
    repeated_at = CASE WHEN :move = 'repeated' THEN :now ELSE repeated_at END,
    severity = coalesce(:severity, severity), sentence = coalesce(:sentence, sentence)
WHERE id = :id AND closed_at IS NULL
  AND CASE :move WHEN 'opened' THEN opened_at IS NULL
                 WHEN 'closed' THEN clearing_at IS NOT NULL
                 WHEN 'clearing' THEN clearing_at IS NULL
                 WHEN 'standing' THEN clearing_at IS NOT NULL
                 ELSE repeats = :place - 1 END
RETURNING id;

-- name: forget_alert
DELETE FROM alerts WHERE id = :id AND opened_at IS NULL RETURNING id;

-- name: add_note
INSERT INTO alert_notes (alert_id, kind, place, target, shown, due_at, created_at)
VALUES (:alert_id, :kind, :place, :target, :shown, :due_at, :now)
ON CONFLICT DO NOTHING;

-- name: due_notes
SELECT * FROM alert_notes
WHERE ended_at IS NULL AND due_at <= :now
ORDER BY due_at, id LIMIT :limit;

-- name: begin_notes
UPDATE alert_notes
SET state = 'sending', batch = :batch, tries = tries + 1, due_at = :now + :lasts
WHERE id IN (SELECT value FROM json_each(:ids)) AND ended_at IS NULL AND due_at <= :now
RETURNING id;

-- name: end_notes
UPDATE alert_notes
SET state = :state, problem = :problem,
    ended_at = CASE WHEN :again_in IS NULL THEN :now END,
    due_at = :now + coalesce(:again_in, 0)
WHERE id IN (SELECT value FROM json_each(:ids)) AND batch = :batch AND state = 'sending' AND ended_at IS NULL
RETURNING id;

-- name: alerts_by_id
SELECT * FROM alerts WHERE id IN (SELECT value FROM json_each(:ids)) ORDER BY id;

-- name: list_alerts
SELECT * FROM alerts
WHERE opened_at IS NOT NULL AND id < coalesce(:before, 9223372036854775807)
  AND (:open IS NULL OR (closed_at IS NULL) = :open)
  AND (:rule IS NULL OR rule = :rule) AND (:subject IS NULL OR subject = :subject)
ORDER BY id DESC LIMIT :limit;

-- name: alert_notes
SELECT * FROM alert_notes WHERE alert_id = :alert_id ORDER BY id;

-- name: undelivered_notes
SELECT * FROM alert_notes WHERE problem IS NOT NULL ORDER BY id DESC LIMIT :limit;

-- name: ack_alert
UPDATE alerts SET acked_at = :now, acked_by = :author
WHERE id = :id AND opened_at IS NOT NULL AND closed_at IS NULL AND acked_at IS NULL
RETURNING id;

-- name: prune_notes
DELETE FROM alert_notes
WHERE alert_id IN (SELECT id FROM alerts
                   WHERE closed_at IS NOT NULL AND closed_at < :now - :keep);

-- name: prune_alerts
DELETE FROM alerts
WHERE closed_at IS NOT NULL AND closed_at < :now - :keep
RETURNING id;

-- name: prune_lost
DELETE FROM lost_members WHERE lost_at < :now - :keep;
