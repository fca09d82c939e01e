"""Audits: good histories have no finding, and each way to break one is found."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mainspring.admin.slot_verification.verification import (
    History,
    Kind,
    Passed,
    Range,
    Unjudged,
    Verification,
    verify,
)
from mainspring.admin.slot_verification.verifier import Report, SlotVerifier
from mainspring.errors import NotFound
from mainspring.model.schedule import (
    Change,
    Disposition,
    Misfire,
    NewSchedule,
    Overlap,
    Schedule,
    ScheduleVersion,
    Skipped,
    Slot,
)
from mainspring.scheduler.scheduler import Scheduler
from mainspring.store.opener import open_store
from mainspring.telemetry.events import Telemetry
from mainspring.testing.clock import START, ManualClock
from mainspring.triggers.cron import Cron
from mainspring.triggers.intervals import Every
from tests.support.desk import Desk

SECOND, MINUTE, HOUR, DAY = (timedelta(seconds=each) for each in (1, 60, 3600, 86400))
MINUTELY, FIVE = Cron("* * * * *", "UTC"), Cron("*/5 * * * *", "UTC")


def at(minutes: float) -> datetime:
    return START + minutes * MINUTE


def schedule(trigger: Any = MINUTELY, **fields: Any) -> Schedule:
    given: dict[str, Any] = dict.fromkeys(
        ["max_fires", "fires_left", "paused_at", "paused_by", "pause_note", "next_at"]
    )
    given |= {"id": 1, "name": "s", "task": "t", "payload": b"{}", "queue": "default", "priority": 0}
    given |= {"misfire": Misfire.LATEST, "catch_up": DAY, "overlap": Overlap.SKIP, "overlap_limit": 1}
    given |= {"max_attempts": 1, "offset": timedelta(), "jitter": timedelta(), "skips": 0, "edited": False}
    given |= {"version": 1, "active_from": START}
    encoded = trigger if isinstance(trigger, str) else trigger.encode()
    return Schedule(**{**given, "trigger": encoded, **fields})


def version(minutes: float, change: Change = Change.CREATED, trigger: Any = MINUTELY, **fields: Any) -> Any:
    return ScheduleVersion(
        schedule=schedule(trigger, **fields),
        version=1,
        change=change,
        changed_at=at(minutes),
        author="ann",
        note=None,
    )


def row(minutes: float, *, late: timedelta = timedelta(), job: int | None = 0, **fields: Any) -> Slot:
    given = {"disposition": Disposition.FIRED, "reason": None, "since": None, "job_id": job or int(minutes)}
    return Slot(schedule="s", slot_at=at(minutes), decided_at=at(minutes) + late, **{**given, **fields})


def skipped(minutes: float, reason: Skipped, **fields: Any) -> Slot:
    return msgspec.structs.replace(
        row(minutes, **fields), disposition=Disposition.SKIPPED, reason=reason, job_id=None
    )


def judged(
    rows: list[Slot],
    *,
    versions: tuple[ScheduleVersion, ...] = (version(0),),
    now: float = 12,
    start: float = 0,
    most: int = 1000,
    late: timedelta = MINUTE,
    **fields: Any,
) -> Verification:
    history = History(name="s", versions=versions, schedule=None, rows=tuple(rows))
    return verify(
        msgspec.structs.replace(history, **fields),
        Range(start=at(start), end=at(10), now=at(now), late=late),
        most=most,
    )


def kinds(found: Verification) -> list[tuple[str, float, int]]:
    return [(each.kind.value, (each.slot_at - START) / MINUTE, each.count) for each in found.findings]


GOOD = [row(n) for n in range(1, 11)]


def test_a_good_history_has_no_finding() -> None:
    found = judged(GOOD, made={at(n): frozenset({n}) for n in range(1, 11)})

    assert (found.slots, found.findings, found.cut_at) == (10, (), None)


def test_a_slot_without_a_row_is_missed() -> None:
    found = judged([each for each in GOOD if each.slot_at != at(4)])

    assert kinds(found) == [("missed", 4, 1)]
    assert found.findings[0].detail == "no row stands for it"


def test_missed_slots_in_a_row_are_one_finding() -> None:
    [finding] = judged(GOOD[:3] + GOOD[6:]).findings

    assert (finding.kind, finding.slot_at, finding.until, finding.count) == (Kind.MISSED, at(4), at(6), 3)


def test_a_row_stands_for_those_since() -> None:
    assert judged([*GOOD[:3], row(7, since=at(4)), *GOOD[7:]]).findings == ()
    assert kinds(judged([*GOOD[:3], row(7, since=at(5)), *GOOD[7:]])) == [("missed", 4, 1)]


def test_dropped_slots_are_told_and_those_that_somebody_asked_for_are_not() -> None:
    late = 2 * MINUTE
    dropped = [skipped(n, Skipped.TOO_LATE, late=late) for n in (4, 5)]
    found = judged([*GOOD[:3], *dropped, *GOOD[5:]])

    assert kinds(found) == [("dropped", 4, 2)], "and not late"
    assert found.findings[0].until == at(5)
    asked = [skipped(n, Skipped.MISFIRE, late=late) for n in (4, 5)]
    assert {kind for kind, _, _ in kinds(judged([*GOOD[:3], *asked, *GOOD[5:]]))} == {"late"}


def test_a_row_that_was_dropped_stands_for_each_slot_since() -> None:
    row = skipped(7, Skipped.BREAKER, since=at(4))

    [finding] = judged([*GOOD[:3], row, *GOOD[7:]]).findings

    assert (finding.kind, finding.slot_at, finding.until, finding.count) == (Kind.DROPPED, at(4), at(7), 4)
    assert "schedules go-on" in finding.detail


def test_a_backfill_ends_the_finding_slot_by_slot() -> None:
    def again(minutes: int, **fields: Any) -> Slot:
        return row(minutes, late=HOUR, disposition=Disposition.BACKFILLED, **fields)

    dropped = skipped(7, Skipped.BREAKER, since=at(4))
    assert kinds(judged([*GOOD[:3], again(4), dropped, *GOOD[7:]])) == [("dropped", 5, 3)]
    run = again(7, since=at(4), reason=Skipped.BREAKER)
    assert kinds(judged([*GOOD[:3], again(4), run, *GOOD[7:]])) == [("dropped", 5, 2)]
    assert kinds(judged([*GOOD[:3], again(4), again(5), again(6), run, *GOOD[7:]])) == []


def test_a_missed_slot_that_made_a_job_says_so() -> None:
    [finding] = judged(GOOD[:9], made={at(10): frozenset({10})}).findings

    assert finding.detail == "no row stands for it, though it made job 10"


def test_two_jobs_for_a_slot_are_doubled() -> None:
    found = judged(GOOD, made={at(3): frozenset({3, 99})})

    assert kinds(found) == [("doubled", 3, 1)]
    assert found.findings[0].detail == "it made jobs 3, 99"


def test_two_rows_for_a_slot_are_doubled() -> None:
    assert kinds(judged([*GOOD, row(3, job=99)])) == [("doubled", 3, 1)]


def test_a_slot_with_a_row_that_another_stands_for_is_doubled() -> None:
    assert kinds(judged([*GOOD[:5], row(6, since=at(5)), *GOOD[6:]])) == [("doubled", 5, 1)]


def test_a_row_that_is_no_slot_is_unexpected() -> None:
    assert kinds(judged([*GOOD, row(3.5)])) == [("unexpected", 3.5, 1)]


def test_a_job_of_a_skipped_slot_is_unexpected() -> None:
    rows = [*GOOD[:2], skipped(3, Skipped.OVERLAP), *GOOD[3:]]

    assert judged(rows).findings == ()
    assert kinds(judged(rows, made={at(3): frozenset({3})})) == [("unexpected", 3, 1)]


def test_a_row_before_the_schedule_was_created_is_unexpected() -> None:
    assert kinds(judged(GOOD, versions=(version(3),))) == [("unexpected", n, 1) for n in (1, 2, 3)]


def test_a_row_before_versions_were_kept_is_nobodys_mistake() -> None:
    assert judged(GOOD, versions=(version(3, Change.CHANGED),)).findings == ()
    assert judged(GOOD, versions=(), schedule=schedule()).findings == ()
    assert judged(GOOD[:5], versions=(), schedule=schedule()).slots == 10


def test_a_slot_decided_before_it_came_is_early() -> None:
    found = judged([*GOOD[:2], row(3, late=-SECOND), *GOOD[3:]])

    assert kinds(found) == [("early", 3, 1)]
    assert found.findings[0].detail == "decided 1s before it came"


def test_a_slot_decided_long_after_it_came_is_late() -> None:
    rows = [row(1), row(2, late=MINUTE), row(3, late=MINUTE + SECOND), *GOOD[3:]]

    assert kinds(judged(rows)) == [("late", 3, 1)]
    assert kinds(judged(rows, late=30 * SECOND)) == [("late", 2, 1), ("late", 3, 1)]


def test_a_job_that_is_nowhere_is_lost() -> None:
    assert kinds(judged(GOOD, nowhere=frozenset({7}))) == [("lost", 7, 1)]


def test_a_fired_slot_that_names_no_job_is_lost() -> None:
    nameless = msgspec.structs.replace(GOOD[2], job_id=None)

    assert kinds(judged([*GOOD[:2], nameless, *GOOD[3:]])) == [("lost", 3, 1)]


def test_a_trigger_that_cannot_be_read_is_told() -> None:
    assert kinds(judged(GOOD, versions=(version(0, trigger="every minute"),))) == [("unreadable", 0, 1)]


def test_each_version_has_its_own_slots() -> None:
    versions = (version(0), version(4.5, Change.CHANGED, FIVE))

    assert judged([*GOOD[:4], row(5), row(10)], versions=versions).findings == ()
    assert kinds(judged([*GOOD[:4], row(5), row(6), row(10)], versions=versions)) == [("unexpected", 6, 1)]
    assert kinds(judged([*GOOD[:4], row(5)], versions=versions)) == [("missed", 10, 1)]


def test_slots_are_judged_right_up_to_a_change() -> None:
    for beside in (SECOND / 1000, 0.9 * SECOND, 1.1 * SECOND):
        after = (version(0), version(4 + beside / MINUTE, Change.CHANGED, FIVE))

        assert judged([*GOOD[:4], row(5), row(10)], versions=after).findings == ()
        assert kinds(judged([*GOOD[:3], row(5), row(10)], versions=after)) == [("missed", 4, 1)]
        before = (version(0), version(4 - beside / MINUTE, Change.CHANGED, FIVE))
        assert judged([*GOOD[:3], row(5), row(10)], versions=before).findings == ()
        assert kinds(judged([*GOOD[:4], row(5), row(10)], versions=before)) == [("unexpected", 4, 1)]


def test_the_slot_of_the_instant_of_a_change_is_the_old_ones() -> None:
    versions = (version(0), version(4, Change.CHANGED, FIVE))

    assert judged([*GOOD[:4], row(5), row(10)], versions=versions).findings == ()
    assert kinds(judged([*GOOD[:3], row(5), row(10)], versions=versions)) == [("missed", 4, 1)]


def test_slots_of_a_pause_that_goes_on_are_not_missed_and_not_passed_over_in_silence() -> None:
    versions = (version(0), version(2.5, Change.PAUSED, paused_at=at(2.5)))
    found = judged([*GOOD[:2], skipped(3, Skipped.PAUSED)], versions=versions)

    assert found.findings == ()
    assert found.unjudged == (Passed(why=Unjudged.PAUSED, first=at(4), last=at(10), count=7),)
    older = judged(GOOD[:2], versions=(), schedule=schedule(paused_at=at(2.5)))
    assert [(each.why, each.count) for each in older.unjudged] == [(Unjudged.PAUSED, 8)]


def test_a_slot_nobody_had_decided_when_the_trigger_changed_says_so() -> None:
    versions = (version(0), version(4.5, Change.CHANGED, FIVE))
    [finding] = judged([*GOOD[:2], row(5), row(10)], versions=versions).findings

    assert (finding.count, finding.detail) == (
        2,
        "nobody had decided it when the schedule was changed at 2030-01-01 00:04:30Z",
    )


def test_slots_of_a_deleted_schedule_are_nobodys() -> None:
    versions = (version(0), version(4.5, Change.DELETED))

    assert judged(GOOD[:4], versions=versions).slots == 4
    assert judged(GOOD[:4], versions=versions).findings == ()
    assert kinds(judged(GOOD[:5], versions=versions)) == [("unexpected", 5, 1)]


def test_every_slot_of_a_pause_is_on_record_as_paused() -> None:
    versions = (
        version(0),
        version(2.5, Change.PAUSED, paused_at=at(2.5)),
        version(7.5, Change.RESUMED),
    )
    paused = [skipped(n, Skipped.PAUSED) for n in range(3, 8)]

    assert judged([*GOOD[:2], *paused, *GOOD[7:]], versions=versions).findings == ()
    assert kinds(judged([*GOOD[:2], *paused[:2], *GOOD[7:]], versions=versions)) == [("missed", 5, 3)]
    hole = [*GOOD[:2], *paused[:1], *paused[2:], *GOOD[7:]]
    assert kinds(judged(hole, versions=versions)) == [("missed", 4, 1)]


def test_a_slot_that_is_only_just_due_is_not_missed() -> None:
    recent = judged(GOOD[:9], now=10.5)
    assert recent.findings == ()
    assert recent.unjudged == (Passed(why=Unjudged.RECENT, first=at(10), last=at(10), count=1),)
    assert kinds(judged(GOOD[:9], now=11)) == [("missed", 10, 1)]
    assert judged(GOOD[:5], now=5.5).slots == 5


def test_a_slot_that_is_still_to_be_decided_says_so() -> None:
    [finding] = judged(GOOD[:6], schedule=schedule(next_at=at(7))).findings

    assert (finding.count, finding.detail) == (4, "nobody has decided it yet")


def test_only_the_range_is_judged() -> None:
    assert kinds(judged(GOOD[:2] + GOOD[5:], start=5)) == [("missed", 5, 1)]


def test_the_walk_is_bounded_and_says_where_it_ended() -> None:
    found = judged(GOOD, most=4)

    assert (found.slots, found.cut_at, found.findings) == (4, at(5), ())


# On the stores, after real ticks.


class Life:
    """A scheduler on a desk, and the audit of what it did."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.scheduler = Scheduler(desk.store, desk.clock, Telemetry(), poll=SECOND, chunk=100)

    def put(self, name: str, trigger: Any, **fields: Any) -> None:
        first = trigger.next_after(self.desk.now)
        new = NewSchedule(
            name=name, task="t", trigger=trigger.encode(), payload=b"{}", next_at=first, **fields
        )
        following = trigger.next_after(first)
        self.desk.schedule_all(msgspec.structs.replace(new, following_at=following))

    def live(self, minutes: int) -> None:
        for _ in range(minutes * 6):
            self.desk.advance(10 * SECOND)
            self.desk.run(self.scheduler.tick())

    def verify(self, **options: Any) -> Report:
        return self.desk.run(SlotVerifier(self.desk.store, self.desk.clock, keep=30 * DAY).verify(**options))


def live_through_everything(life: Life) -> None:
    """Ticks, an outage, a pause, a change of trigger, skips and a deletion."""
    life.put("every", Every(30 * SECOND), overlap=Overlap.ALLOW, overlap_limit=1000)
    life.put("all", MINUTELY, misfire=Misfire.ALL, overlap=Overlap.QUEUE_ALL)
    life.put("s", MINUTELY)
    life.put("few", MINUTELY, max_fires=3, overlap=Overlap.REPLACE)
    life.live(5)
    life.desk.advance(HOUR)
    life.live(5)
    life.desk.pause("s")
    life.live(5)
    life.desk.resume("s")
    life.live(5)
    life.put("s", FIVE)
    life.desk.skip(2, "all")
    life.live(20)
    life.desk.delete("few")
    life.live(2)


def test_real_ticks_through_everything_leave_nothing_to_find(desk: Desk) -> None:
    life = Life(desk)
    live_through_everything(life)

    report = life.verify()

    assert report.wrong(strict=False) == []
    assert {each.schedule for each in report.findings} == {"all"}  # late, after the outage
    assert [each.schedule for each in report.verifications] == ["all", "every", "few", "s"]  # few was deleted
    assert report.slots > 300
    assert "all accounted for; " in report.sentence(strict=False)
    assert life.verify(name="few").wrong(strict=False) == []
    assert life.verify(start=desk.now - 10 * MINUTE).findings == []


def test_an_outage_nobody_made_up_for_is_found(desk: Desk) -> None:
    life = Life(desk)
    life.put("s", MINUTELY)
    life.live(3)
    desk.advance(HOUR)

    [finding] = life.verify().findings

    assert (finding.kind, finding.count) == (Kind.MISSED, 59)
    assert finding.detail == "nobody has decided it yet"


def test_a_purged_dead_letter_is_not_lost(desk: Desk) -> None:
    from mainspring.model.run import Verdict

    life = Life(desk)
    life.put("s", MINUTELY)
    life.live(1)
    claim = desk.take()
    desk.end(claim, Verdict.DEAD)
    assert desk.purge(claim.job_id) == 1

    assert life.verify().findings == []


def test_what_the_ledger_no_longer_keeps_is_not_judged(desk: Desk) -> None:
    life = Life(desk)
    life.put("s", Every(HOUR))
    for _ in range(24 * 4):
        desk.advance(HOUR)
        desk.run(life.scheduler.tick())
    desk.prune(DAY)

    early = desk.run(SlotVerifier(desk.store, desk.clock, keep=DAY).verify(start=START))

    assert early.findings == []
    assert 24 <= early.slots <= 49
    assert early.notes == ("slots before 2030-01-04 are not judged: the ledger may have dropped them",)
    assert life.verify().wrong(strict=False) != []


def test_a_schedule_nobody_knows_is_refused(desk: Desk) -> None:
    with pytest.raises(NotFound):
        Life(desk).verify(name="nobody")


# Broken by hand, on a file.

Break = Callable[[sqlite3.Connection], object]
BROKEN: dict[str, tuple[str, str]] = {
    "missed": ("DELETE FROM slots WHERE schedule_id = 1 AND slot_at = {slot}", "missed"),
    "doubled": (
        "INSERT INTO jobs (run_at, enqueued_at, schedule_id, slot_at, queue, task, priority, max_attempts,"
        " payload) SELECT run_at, enqueued_at, schedule_id, slot_at, queue, task, priority, max_attempts,"
        " payload FROM jobs WHERE schedule_id = 1 AND slot_at = {slot}",
        "doubled",
    ),
    "doubled row": (
        "INSERT INTO slots (schedule_id, slot_at, decided_at, job_id, disposition)"
        " SELECT 1, slot_at + 20000000, decided_at + 20000000, job_id, 0 FROM slots"
        " WHERE schedule_id = 1 AND slot_at = {slot}",
        "unexpected",
    ),
    "early": (
        "UPDATE slots SET decided_at = decided_at - 5000000 WHERE schedule_id = 1 AND slot_at = {slot}",
        "early",
    ),
    "lost": ("DELETE FROM jobs WHERE schedule_id = 1 AND slot_at = {slot}", "lost"),
}  # fmt: skip


@pytest.mark.parametrize("way", BROKEN)
def test_a_ledger_broken_by_hand_is_found(way: str, tmp_path: Path, run: Any, clock: ManualClock) -> None:
    path = tmp_path / "broken.db"
    store = open_store(f"sqlite:///{path}", clock=clock)
    try:
        run(store.migrate())
        life = Life(Desk(store, clock, run))
        life.put("s", MINUTELY, overlap=Overlap.ALLOW, overlap_limit=100)
        life.live(6)
        assert life.verify().findings == []
        statement, kind = BROKEN[way]
        slot = int((START + 3 * MINUTE).timestamp()) * 1_000_000
        with sqlite3.connect(path) as connection:
            assert connection.execute(statement.format(slot=slot)).rowcount == 1
        connection.close()

        report = life.verify()

        assert [each.kind for each in report.findings] == [kind]
        assert report.sentence(strict=False) == f"6 slots of 1 schedule: 1 {kind}"
    finally:
        run(store.close())
