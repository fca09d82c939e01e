"""From troubles to alerts and notes: when they open, close and repeat, and how they go out."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mainspring.config import AlertsConfig
from mainspring.model.alert import (
    Alert,
    AlertChange,
    AlertMove,
    AlertNote,
    Message,
    NoteKind,
    NoteState,
    Rule,
    Severity,
    Trouble,
)
from mainspring.rules.alerts import (
    Addressee,
    Judge,
    deliveries,
    message_json,
    message_part,
    message_text,
    message_title,
    next_try,
    quiet_until,
)
from mainspring.rules.troubles import OTHERS

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
CONFIG = AlertsConfig()
LOG, HOOK = Addressee(key="log", shown="log", patient=False), Addressee(key="k", shown="https://h/***")


def trouble(**fields: Any) -> Trouble:
    given = {
        "rule": Rule.FAILED,
        "subject": "t",
        "severity": Severity.WARNING,
        "since": NOW,
        "sentence": "dead",
    }
    return Trouble(**given | fields)


def alert(**fields: Any) -> Alert:
    given: dict[str, Any] = {"id": 5, "uid": 255, "rule": Rule.FAILED, "subject": "t", "sentence": "dead"}
    given |= {"severity": Severity.WARNING, "since": NOW, "seen_at": NOW, "opened_at": NOW, "repeats": 0}
    given |= dict.fromkeys(("clearing_at", "closed_at", "repeated_at", "acked_at", "acked_by"))
    return Alert(**given | fields)


def note(number: int = 1, **fields: Any) -> AlertNote:
    given: dict[str, Any] = {"id": number, "alert": alert(id=number, uid=number), "kind": NoteKind.OPENED}
    given |= {"place": 0, "target": "k", "shown": "https://h/***", "state": NoteState.WAITING, "due_at": NOW}
    given |= {"batch": None, "tries": 0, "created_at": NOW, "ended_at": None, "problem": None}
    return AlertNote(**given | fields)


def judged(
    standing: list[Alert], troubles: list[Trouble], *, after: timedelta = timedelta(), **config: Any
) -> list[AlertChange]:
    judge = Judge(replace(CONFIG, **config), [LOG, HOOK], lambda: 1)
    return judge.changes(standing, troubles, NOW + after)


def moves(changes: list[AlertChange]) -> list[tuple[AlertMove | None, int]]:
    return [(each.move, len(each.notes)) for each in changes]


def test_a_trouble_opens_once_and_each_target_is_told() -> None:
    [opened] = judged([], [trouble()])

    assert (opened.move, opened.uid, opened.trouble) == (AlertMove.OPENED, 1, trouble())
    assert [(each.target, each.kind, each.due_at) for each in opened.notes] == [
        ("log", NoteKind.OPENED, NOW),
        ("k", NoteKind.OPENED, NOW),
    ]
    assert judged([alert()], [trouble()]) == []


def test_one_that_is_held_back_opens_when_it_was_seen_for_long_enough() -> None:
    held, seen = trouble(hold=MINUTE), alert(opened_at=None)

    assert moves(judged([], [held])) == [(None, 0)]
    assert judged([seen], [held], after=MINUTE - SECOND) == []
    assert moves(judged([seen], [held], after=MINUTE)) == [(AlertMove.OPENED, 2)]
    assert moves(judged([seen], [], after=SECOND)) == [(AlertMove.FORGOTTEN, 0)]


def test_a_hold_counts_from_the_record_where_there_is_one() -> None:
    held = trouble(hold=MINUTE, recorded=True, since=NOW - MINUTE + SECOND)

    assert moves(judged([], [held])) == [(None, 0)]
    assert moves(judged([], [held], after=SECOND)) == [(AlertMove.OPENED, 2)]


def test_a_start_is_no_outage_and_what_was_seen_before_a_break_counts_no_more() -> None:
    judge = Judge(CONFIG, [LOG, HOOK], lambda: 1)
    starting, held = trouble(after_start=True), trouble(hold=30 * SECOND)
    long_ago = alert(opened_at=None, seen_at=NOW - HOUR)

    for age, opens in ((MINUTE - SECOND, False), (MINUTE, True)):
        changes = judge.changes([long_ago], [starting], NOW, watched_since=NOW - age)
        assert moves(changes) == ([(AlertMove.OPENED, 2)] if opens else [])
        assert moves(judge.changes([], [starting], NOW, watched_since=NOW - age)) == [
            (AlertMove.OPENED, 2) if opens else (None, 0)
        ]
    assert judge.changes([long_ago], [held], NOW, watched_since=NOW - 29 * SECOND) == []
    assert moves(judge.changes([long_ago], [held], NOW, watched_since=NOW - 30 * SECOND)) == [
        (AlertMove.OPENED, 2)
    ]


def test_an_alert_of_a_list_that_was_cut_stands_though_it_is_not_seen() -> None:
    judge = Judge(replace(CONFIG, recover_after=timedelta()), [LOG, HOOK], lambda: 1)

    assert judge.changes([alert(), alert(id=6, opened_at=None)], [], NOW, cut=(Rule.FAILED,)) == []
    assert judge.changes([alert()], [], NOW, cut=(Rule.MISSED,)) != []
    others = alert(subject=OTHERS)
    assert moves(judge.changes([others], [], NOW, cut=())) == [(AlertMove.CLEARING, 0), (AlertMove.CLOSED, 2)]


def test_what_is_told_afterwards_does_not_recover() -> None:
    over = alert(rule=Rule.OUTAGE, clearing_at=NOW - HOUR)

    assert moves(judged([over], [])) == [(AlertMove.CLOSED, 0)]


def test_it_recovers_when_it_was_not_seen_for_long_enough() -> None:
    clearing = alert(clearing_at=NOW)

    assert moves(judged([alert()], [])) == [(AlertMove.CLEARING, 0)]
    assert judged([clearing], [], after=15 * SECOND - SECOND) == []
    [closed] = judged([clearing], [], after=15 * SECOND)
    assert (closed.move, {each.kind for each in closed.notes}) == (AlertMove.CLOSED, {NoteKind.RECOVERED})
    assert moves(judged([clearing], [trouble()], after=HOUR)) == [(AlertMove.STANDING, 0)]
    assert moves(judged([alert()], [], recover_after=timedelta())) == [
        (AlertMove.CLEARING, 0),
        (AlertMove.CLOSED, 2),
    ]


def test_it_is_repeated_only_if_asked_for_and_nobody_knows() -> None:
    assert judged([alert()], [trouble()], after=100 * HOUR) == []
    assert judged([alert()], [trouble()], after=HOUR - SECOND, repeat=HOUR) == []
    [again] = judged([alert(repeats=1, repeated_at=NOW)], [trouble()], after=HOUR, repeat=HOUR)
    assert (again.move, again.place, {each.place for each in again.notes}) == (AlertMove.REPEATED, 2, {2})
    assert judged([alert(acked_at=NOW)], [trouble()], after=HOUR, repeat=HOUR) == []


def test_quiet_hours_hold_back_what_is_not_critical_but_not_the_log() -> None:
    quiet = {"quiet": "11:00-13:30", "quiet_zone": "UTC"}

    [opened] = judged([], [trouble()], **quiet)
    assert [each.due_at for each in opened.notes] == [NOW, NOW + 90 * MINUTE]
    [critical] = judged([], [trouble(severity=Severity.CRITICAL)], **quiet)
    assert {each.due_at for each in critical.notes} == {NOW}


@pytest.mark.parametrize(
    ("now", "ends"),
    [
        ("2026-01-10T20:59:59+00:00", None),
        ("2026-01-10T21:00:00+00:00", "2026-01-11T06:00:00+00:00"),
        ("2026-01-11T05:59:59+00:00", "2026-01-11T06:00:00+00:00"),
        ("2026-01-11T06:00:00+00:00", None),
        # The clocks go forward, then back: the night is an hour shorter, then an hour longer.
        ("2026-03-28T23:00:00+00:00", "2026-03-29T05:00:00+00:00"),
        ("2026-10-24T20:00:00+00:00", "2026-10-25T06:00:00+00:00"),
    ],
)
def test_quiet_hours_go_by_the_wall_clock(now: str, ends: str | None) -> None:
    config = replace(CONFIG, quiet="22:00-07:00", quiet_zone="Europe/Berlin")

    assert quiet_until(config, datetime.fromisoformat(now)) == (ends and datetime.fromisoformat(ends))


@pytest.mark.parametrize(
    ("night", "ends"),
    [
        # 02:30 does not come on the first of these nights, and comes twice on the second.
        ("2026-03-29T00:30:00+00:00", "2026-03-29T01:30:00+00:00"),
        ("2026-10-24T23:30:00+00:00", "2026-10-25T01:30:00+00:00"),
        ("2026-10-25T01:10:00+00:00", "2026-10-25T01:30:00+00:00"),
    ],
)
def test_an_end_that_the_clocks_skip_or_repeat_is_the_later_one(night: str, ends: str) -> None:
    config = replace(CONFIG, quiet="23:00-02:30", quiet_zone="Europe/Berlin")

    assert quiet_until(config, datetime.fromisoformat(night)) == datetime.fromisoformat(ends)


def test_notes_go_one_by_one_until_there_are_too_many() -> None:
    few = deliveries([note(each) for each in range(1, 4)], replace(CONFIG, storm=3))
    many = deliveries([note(each) for each in range(1, 5)], replace(CONFIG, storm=3))

    assert [each.batch for each in few] == [f"{number:016x}.opened" for number in (1, 2, 3)]
    assert [(each.batch, len(each.notes)) for each in many] == [("0000000000000001.opened+3", 4)]


def test_what_was_held_back_goes_together_and_what_was_tried_goes_as_it_went() -> None:
    held = [note(each, created_at=NOW - HOUR) for each in (1, 2)]
    tried = [note(3, batch="b", tries=1), note(4, batch="b", tries=1)]
    other = note(5, target="log")

    assert [
        (each.target, each.batch, len(each.notes)) for each in deliveries([*held, *tried, other], CONFIG)
    ] == [
        ("k", "b", 2),
        ("k", "0000000000000001.opened+1", 2),
        ("log", "0000000000000005.opened", 1),
    ]


def test_a_target_is_tried_again_ever_later_and_then_given_up() -> None:
    waits = [next_try(tries, CONFIG) for tries in range(1, 9)]

    assert waits[:3] == [10 * SECOND, 20 * SECOND, 40 * SECOND]
    assert waits[-2:] == [640 * SECOND, None]
    assert next_try(50, replace(CONFIG, attempts=100)) == 15 * MINUTE


def test_a_message_says_it_in_words_and_as_json() -> None:
    one = Message(id="i", parts=(message_part(note()),))
    two = Message(id="i", parts=(message_part(note()), message_part(note(2, kind=NoteKind.RECOVERED))))

    assert message_title(one) == "[mainspring] alert: failed t"
    assert message_text(two) == "alert (warning): dead\nrecovered (warning): dead"
    assert message_title(two) == "[mainspring] 1 alerts, 1 recovered"
    assert b'"type":"alert.opened"' in message_json(one, NOW)
    assert b'"type":"alert.summary"' in message_json(two, NOW)
    assert b'"key":"failed:t"' in message_json(one, NOW)
    assert "and 950 more" in message_text(Message(id="i", parts=(message_part(note()),) * 1000))
