"""The contract of alerts and their notes, on every store."""

from __future__ import annotations

import asyncio

import pytest

from mainspring.model.alert import (
    AlertChange,
    AlertFilter,
    AlertMove,
    NewNote,
    NoteEnd,
    NoteKind,
    NoteState,
    Rule,
    Severity,
    Trouble,
)
from tests.support.desk import DAY, HOUR, MINUTE, SECOND


class Book:
    """Alerts of one store, stamped and run to their end."""

    def __init__(self, desk):
        self.desk = desk

    def trouble(self, subject="t", **fields):
        given = {
            "rule": Rule.FAILED,
            "severity": Severity.WARNING,
            "since": self.desk.now,
            "sentence": "dead",
        }
        return Trouble(**given | {"subject": subject} | fields)

    def note(self, kind=NoteKind.OPENED, **fields):
        given = {"target": "k", "shown": "https://h/***", "due_at": self.desk.now}
        return NewNote(kind=kind, **given | fields)

    def open(self, subject="t", *notes, uid=7):
        change = AlertChange(uid=uid, trouble=self.trouble(subject), move=AlertMove.OPENED, notes=notes)
        assert self.change(change) == 1
        return next(each for each in self.standing() if each.subject == subject)

    def move(self, alert, move, *notes, **fields):
        return self.change(AlertChange(alert_id=alert.id, move=move, notes=notes, **fields))

    def change(self, *changes):
        return self.run("change", changes)

    def standing(self):
        return self.desk.run(self.desk.store.alerts.standing())

    def due(self):
        return self.run("due_notes", limit=100)

    def begin(self, *notes, batch="b", lasts=MINUTE):
        return self.run("begin_notes", [each.id for each in notes], batch=batch, lasts=lasts)

    def end(self, *notes, batch="b", **fields):
        return self.run("end_notes", NoteEnd(note_ids=tuple(n.id for n in notes), batch=batch, **fields))

    def notes(self, alert):
        return self.desk.run(self.desk.store.alerts.notes(alert.id))

    def all(self, **which):
        return [each.subject for each in self.desk.run(self.desk.store.alerts.find(AlertFilter(**which)))]

    def run(self, method, *args, **kwargs):
        return self.desk.run(
            getattr(self.desk.store.alerts, method)(*args, **kwargs, at=self.desk.clock.stamp())
        )


@pytest.fixture
def book(desk):
    return Book(desk)


def test_an_alert_opens_once_with_its_notes(desk, book):
    alert = book.open("t", book.note(), book.note(target="l", shown="log"))
    again = AlertChange(uid=8, trouble=book.trouble(), move=AlertMove.OPENED, notes=(book.note(),))

    assert book.change(again) == 0
    assert (alert.rule, alert.subject, alert.severity, alert.sentence) == ("failed", "t", "warning", "dead")
    assert (alert.uid, alert.since, alert.seen_at, alert.opened_at) == (7, desk.now, desk.now, desk.now)
    assert (alert.clearing_at, alert.closed_at, alert.repeats, alert.acked_at) == (None, None, 0, None)
    [first, second] = book.due()
    assert (first.alert, first.kind, first.target, first.shown) == (alert, "opened", "k", "https://h/***")
    assert (first.state, first.tries, first.batch, first.created_at) == ("waiting", 0, None, desk.now)
    assert (second.target, second.shown) == ("l", "log")


def test_one_that_is_only_seen_is_told_of_to_nobody_until_it_opens(desk, book):
    assert book.change(AlertChange(uid=1, trouble=book.trouble())) == 1
    [seen] = book.standing()
    assert (seen.opened_at, book.all()) == (None, [])

    desk.advance(MINUTE)
    worse = book.trouble(severity=Severity.CRITICAL, sentence="deader")
    assert book.move(seen, AlertMove.OPENED, book.note(), trouble=worse) == 1
    assert book.move(seen, AlertMove.OPENED, book.note(target="other"), trouble=worse) == 0
    [opened] = book.standing()
    assert (opened.opened_at, opened.seen_at) == (desk.now, desk.now - MINUTE)
    assert (opened.severity, opened.sentence) == ("critical", "deader")
    assert (book.all(), len(book.due())) == (["t"], 1)
    assert book.move(opened, AlertMove.FORGOTTEN) == 0


def test_one_that_passed_is_forgotten(desk, book):
    book.change(AlertChange(uid=1, trouble=book.trouble()))

    assert book.move(book.standing()[0], AlertMove.FORGOTTEN) == 1
    assert book.standing() == []


def test_it_closes_after_it_was_not_seen_and_may_then_open_anew(desk, book):
    alert = book.open()
    assert book.move(alert, AlertMove.CLOSED, book.note(NoteKind.RECOVERED)) == 0
    assert book.move(alert, AlertMove.CLEARING) == 1
    assert book.standing()[0].clearing_at == desk.now
    assert book.move(alert, AlertMove.STANDING) == 1
    assert book.standing()[0].clearing_at is None
    book.move(alert, AlertMove.CLEARING)

    assert book.move(alert, AlertMove.CLOSED, book.note(NoteKind.RECOVERED)) == 1
    assert book.move(alert, AlertMove.CLOSED, book.note(NoteKind.RECOVERED)) == 0
    assert (book.standing(), [each.kind for each in book.due()]) == ([], ["recovered"])
    assert desk.run(desk.store.alerts.get(alert.id)).closed_at == desk.now
    assert book.open().id > alert.id
    assert (book.all(open=True), book.all(open=False), book.all(rule=Rule.MISSED)) == (["t"], ["t"], [])


def test_a_repeat_is_written_once(desk, book):
    alert = book.open()
    note = book.note(NoteKind.REPEATED, place=1)
    desk.advance(HOUR)

    assert book.move(alert, AlertMove.REPEATED, note, place=1) == 1
    assert book.move(alert, AlertMove.REPEATED, note, place=1) == 0
    [standing] = book.standing()
    assert (standing.repeats, standing.repeated_at, len(book.due())) == (1, desk.now, 1)


def test_a_note_is_due_at_its_time_and_again_when_nobody_ends_it(desk, book):
    book.open("t", book.note(due_at=desk.now + HOUR))
    assert book.due() == []

    desk.advance(HOUR)
    [note] = book.due()
    assert book.begin(note) == [note.id]
    assert (book.begin(note), book.due()) == ([], [])

    desk.advance(MINUTE)
    [again] = book.due()
    assert (again.state, again.batch, again.tries) == (NoteState.SENDING, "b", 1)
    assert book.begin(again, batch="c") == [note.id]
    assert book.end(note, batch="b") == 0
    assert book.end(note, batch="c") == 1
    desk.advance(DAY)
    assert book.due() == []
    [sent] = book.notes(note.alert)
    assert (sent.state, sent.ended_at, sent.tries) == (NoteState.SENT, desk.now - DAY, 2)


def test_a_note_that_failed_is_tried_again_and_given_up(desk, book):
    alert = book.open("t", book.note())
    [note] = book.due()
    book.begin(note)
    assert book.end(note, problem="no", again_in=10 * SECOND) == 1
    assert book.due() == []
    [waiting] = desk.run(desk.store.alerts.undelivered_notes(limit=5))
    assert (waiting.state, waiting.problem, waiting.batch) == (NoteState.WAITING, "no", "b")

    desk.advance(10 * SECOND)
    book.begin(*book.due())
    assert book.end(note, problem="never") == 1
    [failed] = book.notes(alert)
    assert (failed.state, failed.problem, failed.ended_at) == (NoteState.FAILED, "never", desk.now)
    assert book.due() == []


def test_somebody_knows_of_an_open_alert_once(desk, book):
    alert = book.open()

    assert book.run("acknowledge", alert.id, author="ann") is True
    assert book.run("acknowledge", alert.id, author="bob") is False
    assert book.run("acknowledge", 10**9, author="ann") is False
    [acked] = book.standing()
    assert (acked.acked_by, acked.acked_at) == ("ann", desk.now)


def test_pages_go_back_from_the_newest(desk, book):
    first, second = book.open("a"), book.open("b")

    assert book.all() == ["b", "a"]
    assert (book.all(limit=1), book.all(before=second.id), book.all(subject="a")) == (["b"], ["a"], ["a"])
    assert desk.run(desk.store.alerts.get(first.id)) == first
    assert desk.run(desk.store.alerts.get(10**9)) is None


def test_what_was_closed_long_ago_is_dropped_with_its_notes(desk, book):
    alert = book.open("old", book.note())
    standing = book.open("standing")
    book.move(alert, AlertMove.CLEARING)
    book.move(alert, AlertMove.CLOSED)
    desk.join(1)
    desk.lose(1)
    desk.advance(DAY)
    assert book.run("prune", keep=DAY + MINUTE) == 0

    desk.advance(HOUR)
    assert book.run("prune", keep=DAY) == 1
    assert (book.notes(alert), book.standing()) == ([], [standing])
    assert desk.run(desk.store.alerts.get(alert.id)) is None
    assert book.due() == []


def test_two_who_keep_alerts_at_once_write_each_move_once(desk, book, run):
    alert = book.open()
    book.move(alert, AlertMove.CLEARING)
    closing = AlertChange(alert_id=alert.id, move=AlertMove.CLOSED, notes=(book.note(NoteKind.RECOVERED),))

    async def both():
        at = desk.clock.stamp()
        return await asyncio.gather(*(desk.store.alerts.change([closing], at=at) for _ in range(2)))

    assert sorted(run(both())) == [0, 1]
    assert len(book.due()) == 1
