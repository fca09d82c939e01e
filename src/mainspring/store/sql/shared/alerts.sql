-- name: prune_gaps
DELETE FROM mainspring.gaps WHERE ended_at < :now - :keep::interval;

-- name: standing_alerts
SELECT * FROM mainspring.alerts WHERE closed_at IS NULL ORDER BY id;

-- name: add_alert
INSERT INTO mainspring.alerts (uid, rule, subject, severity, sentence, since, seen_at, opened_at)
VALUES (:uid, :rule, :subject, :severity, :sentence, :since, :now,
        CASE WHEN :opened::bool THEN :now END)
ON CONFLICT DO NOTHING
RETURNING id;

-- name: move_alert
UPDATE mainspring.alerts SET
    opened_at = CASE WHEN :move::text = 'opened' THEN :now ELSE opened_at END,
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
                 ELSE repeats = :place::int - 1 END
RETURNING id;

-- name: forget_alert
DELETE FROM mainspring.alerts WHERE id = :id AND opened_at IS NULL RETURNING id;

-- name: add_note
INSERT INTO mainspring.alert_notes (alert_id, kind, place, target, shown, due_at, created_at)
VALUES (:alert_id, :kind, :place, :target, :shown, :due_at, :now)
ON CONFLICT DO NOTHING;

-- name: due_notes
SELECT * FROM mainspring.alert_notes
WHERE ended_at IS NULL AND due_at <= :now
ORDER BY due_at, id LIMIT :limit;

-- name: begin_notes
UPDATE mainspring.alert_notes
SET state = 'sending', batch = :batch, tries = tries + 1, due_at = :now + :lasts::interval
WHERE id = ANY (:ids::bigint[]) AND ended_at IS NULL AND due_at <= :now
RETURNING id;

-- name: alerts_by_id
SELECT * FROM mainspring.alerts WHERE id = ANY (:ids::bigint[]) ORDER BY id;

-- name: list_alerts
SELECT * FROM mainspring.alerts
WHERE opened_at IS NOT NULL AND id < coalesce(:before, 9223372036854775807)
  AND (:open::bool IS NULL OR (closed_at IS NULL) = :open)
  AND (:rule::text IS NULL OR rule = :rule) AND (:subject::text IS NULL OR subject = :subject)
ORDER BY id DESC LIMIT :limit;

-- name: alert_notes
SELECT * FROM mainspring.alert_notes WHERE alert_id = :alert_id ORDER BY id;

-- name: undelivered_notes
SELECT * FROM mainspring.alert_notes WHERE problem IS NOT NULL ORDER BY id DESC LIMIT :limit;

-- name: ack_alert
UPDATE mainspring.alerts SET acked_at = :now, acked_by = :author
WHERE id = :id AND opened_at IS NOT NULL AND closed_at IS NULL AND acked_at IS NULL
RETURNING id;

-- name: prune_alerts
DELETE FROM mainspring.alerts
WHERE closed_at IS NOT NULL AND closed_at < :now - :keep::interval
RETURNING id;

-- name: prune_lost
DELETE FROM mainspring.lost_processes WHERE lost_at < :now - :keep::interval;

-- name: note_gap
-- Two processes that mark at the same time write the same gap. If anything was counted during the gap, a process ran then.
INSERT INTO mainspring.gaps (began_at, ended_at)
SELECT gap.began_at, gap.ended_at FROM (
    SELECT m.at AS began_at, least(:now, coalesce((
        SELECT s.at FROM mainspring.stats s WHERE s.span = 1 AND s.at > m.at AND s.at < :now ORDER BY s.at LIMIT 1
    ), :now)) AS ended_at
    FROM mainspring.watch_mark m
) gap
WHERE gap.ended_at - gap.began_at >= :outage::interval
ON CONFLICT DO NOTHING;

-- name: end_notes
UPDATE mainspring.alert_notes
SET state = :state, problem = :problem,
    ended_at = CASE WHEN :again_in::interval IS NULL THEN :now END,
    due_at = CASE WHEN :again_in::interval IS NULL THEN :now ELSE :now + :again_in::interval END
WHERE id = ANY (:ids::bigint[]) AND batch = :batch AND state = 'sending' AND ended_at IS NULL
RETURNING id;

-- name: prune_notes
DELETE FROM mainspring.alert_notes
WHERE alert_id IN (SELECT id FROM mainspring.alerts WHERE closed_at IS NOT NULL AND closed_at < :now - :keep::interval);

-- name: mark_watch
INSERT INTO mainspring.watch_mark AS m (one, since, at) VALUES (true, :now, :now)
ON CONFLICT (one) DO UPDATE
SET since = CASE WHEN excluded.at - m.at > :restart::interval THEN excluded.at ELSE m.since END,
    at = greatest(m.at, excluded.at)
RETURNING since;
