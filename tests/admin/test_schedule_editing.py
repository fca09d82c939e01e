"""Schedules made and changed at run time, on both stores."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from mainspring import Mainspring, Retry
from mainspring.admin.audit_log import AuditEntryView
from mainspring.admin.schedules.draft import NO_BUSINESS_DAY, Written, WrittenView
from mainspring.admin.schedules.orders import ScheduleEffect, Schedules
from mainspring.admin.schedules.plan import Action, plan
from mainspring.admin.schedules.versions import step_in_words, steps
from mainspring.admin.views import to_json
from mainspring.errors import InvalidArgument, NotFound, Outdated, UnknownTask
from mainspring.model.schedule import Change, StoredCalendar
from mainspring.triggers.calendars import Calendar, from_dates
from tests.support.desk import HOUR, Desk
from tests.support.management import admin_of

BERLIN = "Europe/Berlin"
CRON = {"task": "work", "cron": "30 2 * * *", "tz": BERLIN, "gap": "skip", "fold": "both"}


@pytest.fixture
def app(desk: Desk) -> Mainspring:
    app = Mainspring._with("sqlite://:memory:", clock=desk.clock)

    @app.task(queue="slow", priority=5, retry=Retry(attempts=4))
    def work(n: int = 0) -> None: ...

    app.schedule("declared", work, every="1h")
    return app


def schedules(desk: Desk, by: str = "ann", app: Mainspring | None = None) -> Schedules:
    """Schedules in the name of this actor."""
    registry = None if app is None else app._registry
    return admin_of(desk.store, desk.clock, actor=by, registry=registry).schedules


@pytest.fixture
def create(desk: Desk) -> Any:
    def call(name: str = "s", options: Any = None, **more: Any) -> Written:
        return desk.run(schedules(desk).acreate(name, **(options or CRON), **more))

    return call


@pytest.fixture
def edit(desk: Desk) -> Any:
    def call(name: str = "s", *, by: str = "bob", **options: Any) -> Written:
        return desk.run(schedules(desk, by).aedit(name, **options))

    return call


def keep(desk: Desk, *calendars: Calendar) -> None:
    stored = [StoredCalendar(name=c.name, version=c.version, definition=c.encode()) for c in calendars]
    desk.run(desk.store.calendars.put(stored))


# Creating.


def test_a_schedule_is_made_with_everything_that_was_said(desk: Desk, create: Any) -> None:
    written = create(
        options={
            "task": "work",
            "every": "90m",
            "anchor": "2026-01-01T00:05:00Z",
            "start": "2026-01-01T00:00:00+01:00",
            "args": [1],
            "kwargs": {"dry": True},
            "misfire": "all",
            "catch_up": 3600,
            "allow": 3,
            "window": "10m",
            "jitter": "5s",
            "max_fires": 9,
            "expect_start_within": "11m",
            "expect_finish_by": 3600,
            "queue": "q",
            "priority": -7,
            "attempts": 2,
        },
        note="for the audit",
    )

    made = desk.the_schedule()
    assert made.payload == b'{"args":[1],"kwargs":{"dry":true}}'
    assert (made.task, made.queue, made.priority, made.max_attempts) == ("work", "q", -7, 2)
    assert (made.misfire, made.catch_up, made.overlap, made.overlap_limit) == ("all", HOUR, "allow", 3)
    assert (made.jitter, made.max_fires, made.fires_left) == (timedelta(seconds=5), 9, 9)
    assert (made.expect_start_within, made.expect_finish_by) == (timedelta(minutes=11), HOUR)
    assert timedelta() < made.offset < timedelta(minutes=10)
    assert (made.edited, made.version) == (True, 1)
    [version] = desk.versions()
    assert (version.change, version.author, version.note) == (Change.CREATED, "ann", "for the audit")
    assert written.fires[0].at == made.next_at
    assert made.next_at is not None
    assert made.next_at > desk.now


def test_a_made_schedule_fires(desk: Desk, create: Any) -> None:
    create(options={"task": "t", "every": "1h"})
    desk.advance(HOUR)

    desk.fire_due()

    assert [job.task for job in desk.jobs()] == ["t"]


def test_defaults_are_those_of_a_declaration(desk: Desk, app: Mainspring, create: Any) -> None:
    create()
    desk.run(schedules(desk, app=app).acreate("known", **CRON))

    made, other = desk.the_schedule(), desk.the_schedule("known")
    assert (made.queue, made.priority, made.max_attempts) == ("default", 0, 33)
    assert (other.queue, other.priority, other.max_attempts) == ("slow", 5, 4)
    declared = app._registry.schedules["declared"].new_schedule(desk.now)
    for field in (
        "misfire",
        "catch_up",
        "overlap",
        "overlap_limit",
        "offset",
        "jitter",
        "max_fires",
        "expect_start_within",
        "payload",
    ):
        assert getattr(made, field) == getattr(declared, field)


def test_a_name_that_is_taken_is_refused(desk: Desk, create: Any) -> None:
    create()

    with pytest.raises(InvalidArgument, match=r"schedule\.name: .*edit changes one that is there, got 's'"):
        create(options={"task": "other", "every": "1h"})

    assert desk.the_schedule().task == "work"


def test_a_name_taken_in_the_last_moment_is_refused_too(
    desk: Desk, create: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    create()

    async def nobody(name: str) -> None: ...

    monkeypatch.setattr(desk.store.schedules, "get", nobody)

    with pytest.raises(InvalidArgument, match=r"schedule\.name"):
        create(options={"task": "other", "every": "1h"})
    monkeypatch.undo()
    assert desk.the_schedule().task == "work"


def test_a_dry_run_says_the_same_and_writes_nothing(desk: Desk, create: Any) -> None:
    dry = to_json(WrittenView.of(create(dry_run=True)))

    assert desk.schedules() == []
    assert {**to_json(WrittenView.of(create())), "dry_run": True} == dry


@pytest.mark.parametrize(
    ("name", "options", "field"),
    [
        ("a b", CRON, "schedule.name"),
        ("s", {"cron": "@daily"}, "schedule.task"),
        ("s", {**CRON, "task": "a b"}, "schedule.task"),
        ("s", {**CRON, "task": 5}, "schedule.task"),
        ("s", {**CRON, "queue": "-q"}, "schedule.queue"),
        ("s", {**CRON, "priority": 1000}, "schedule.priority"),
        ("s", {**CRON, "priority": "5"}, "schedule.priority"),
        ("s", {**CRON, "attempts": 0}, "schedule.attempts"),
        ("s", {**CRON, "max_fires": 0}, "schedule.max_fires"),
        ("s", {**CRON, "misfire": "never"}, "schedule.misfire"),
        ("s", {**CRON, "catch_up": "soon"}, "schedule.catch_up"),
        ("s", {**CRON, "overlap": "allow"}, "schedule.allow"),
        ("s", {**CRON, "cron": "61 * * * *"}, "cron"),
        ("s", {**CRON, "cron": 5}, "cron"),
        ("s", {**CRON, "tz": "Berlin"}, "tz"),
        ("s", {**CRON, "tz": ["UTC"]}, "tz"),
        ("s", {**CRON, "gap": "jump"}, "gap"),
        ("s", {**CRON, "anchor": "2026-01-01T00:00:00Z"}, "anchor"),
        ("s", {**CRON, "start": "tomorrow"}, "start"),
        ("s", {**CRON, "start": "2026-01-01T00:00:00"}, "start"),
        ("s", {**CRON, "end": 5}, "end"),
        ("s", {**CRON, "args": "abc"}, "schedule.args"),
        ("s", {**CRON, "kwargs": [1]}, "schedule.kwargs"),
        ("s", {**CRON, "args": [2**70]}, "work.args[0]"),
        ("s", {**CRON, "nosuch": 1}, "schedule"),
        ("s", {"task": "work"}, "schedule"),
        ("s", {**CRON, "every": "1h"}, "schedule"),
        ("s", {"task": "work", "every": "soon"}, "every"),
        ("s", {"task": "work", "every": "1ms"}, "every"),
        ("s", {"task": "work", "at": []}, "at"),
        ("s", {"task": "work", "at": ["2026-02-30T00:00:00Z"]}, "at"),
        ("s", {"task": "work", "rrule": "FREQ=DAILY"}, "dtstart"),
        ("s", {"task": "work", "rrule": "FREQ=NEVER", "dtstart": "2026-01-01T09:00"}, "rrule"),
        ("s", {"task": "work", "rrule": 5, "dtstart": "2026-01-01T09:00"}, "rrule"),
        ("s", {**CRON, "calendar": "de"}, "calendar"),
        ("s", {**CRON, "calendar": ["de"]}, "calendar"),
        ("s", {**CRON, "on_holiday": "next"}, "on_holiday"),
    ],
)
def test_bad_input_names_its_field_and_writes_nothing(
    desk: Desk, create: Any, name: str, options: Any, field: str
) -> None:
    with pytest.raises(InvalidArgument) as refused:
        create(name, options)

    assert refused.value.field == field
    assert desk.schedules() == []


def test_a_refusal_reads_as_that_of_a_declaration(desk: Desk, app: Mainspring, create: Any) -> None:
    for wrong in (
        {"cron": "61 * * * *"},
        {"cron": "@daily", "tz": "Berlin"},
        {"every": "1h", "tz": BERLIN},
        {"every": "1h", "queue": "-q"},
        {"every": "1h", "misfire": "never"},
        {"every": "1h", "priority": 1000},
        {},
    ):
        with pytest.raises(InvalidArgument) as declared:
            app.schedule("s", app._registry.get("work"), **wrong)  # type: ignore[arg-type]
        with pytest.raises(InvalidArgument) as made:
            create(options={"task": "work", **wrong})
        assert str(made.value) == str(declared.value)


def test_with_an_app_the_task_and_its_arguments_are_checked(desk: Desk, app: Mainspring) -> None:
    editor = schedules(desk, app=app)

    with pytest.raises(UnknownTask, match="declared here: work"):
        desk.run(editor.acreate("s", **{**CRON, "task": "nosuch"}))
    with pytest.raises(InvalidArgument, match="only parameters it has"):
        desk.run(editor.acreate("s", **CRON, kwargs={"m": 1}))
    desk.run(editor.acreate("s", **CRON))
    with pytest.raises(InvalidArgument, match="at most 1 positional"):
        desk.run(editor.aedit("s", args=[1, 2]))


# Calendars.


def test_a_calendar_is_the_newest_of_its_name(desk: Desk, create: Any, edit: Any) -> None:
    old, new = (
        from_dates("de", [date(2026, 12, day)], version=v, tz=BERLIN) for v, day in ((9, 25), (10, 24))
    )
    keep(desk, new, old, from_dates("fr", []))

    written = create(options={"task": "work", "every": "1h", "calendar": "de"})

    assert '"version":10' in desk.the_schedule().trigger
    assert written.draft.tz() == BERLIN
    newest = from_dates("de", [], version=11)
    keep(desk, newest)
    edit(priority=3)
    assert '"version":10' in desk.the_schedule().trigger
    edit(calendar="de")
    assert '"version":11' in desk.the_schedule().trigger
    with pytest.raises(
        InvalidArgument, match=r"calendar: expected a calendar on record \(de, fr\), got 'es'"
    ):
        edit(calendar="es")


def test_slots_that_a_calendar_takes_away_are_marked(desk: Desk, create: Any) -> None:
    keep(desk, from_dates("de", [], weekend=(0, 1, 2, 3, 4, 5)))

    written = create(options={"task": "work", "cron": "@daily", "calendar": "de"})

    assert NO_BUSINESS_DAY in [fire.note for fire in written.fires]


# Editing.


def test_only_what_is_given_changes(desk: Desk, create: Any, edit: Any) -> None:
    create(options={**CRON, "args": [1], "kwargs": {"a": 2}, "window": "10m"})
    before = desk.the_schedule()
    desk.advance(timedelta(seconds=1))

    written = edit(tz="UTC")

    after = desk.the_schedule()
    assert after.trigger == '{"cron":"30 2 * * *","fold":"both","gap":"skip","tz":"UTC"}'
    assert [(each.field, each.was, each.now) for each in written.differences] == [("tz", BERLIN, "UTC")]
    assert (after.payload, after.offset, after.queue) == (before.payload, before.offset, before.queue)
    assert after.active_from == desk.now
    assert (written.version, after.version) == (2, 2)
    assert desk.versions()[-1].author == "bob"


def test_arguments_change_one_by_one(desk: Desk, create: Any, edit: Any) -> None:
    create(options={**CRON, "args": [1], "kwargs": {"a": 2}})

    edit(args=[5])
    assert desk.the_schedule().payload == b'{"args":[5],"kwargs":{"a":2}}'
    edit(kwargs=None)
    assert desk.the_schedule().payload == b'{"args":[5]}'


def test_another_kind_of_trigger_keeps_the_bounds(desk: Desk, create: Any, edit: Any) -> None:
    create(options={**CRON, "end": "2030-01-01T00:00:00Z"})

    written = edit(every="1h")

    assert desk.the_schedule().trigger == '{"bounded":{"every":3600.0},"end":"2030-01-01T00:00:00+00:00"}'
    assert {each.field: each.now for each in written.differences} == {
        "cron": None,
        "every": "1h",
        "tz": None,
        "gap": None,
        "fold": None,
    }


def test_every_stored_form_is_read_back_unchanged(desk: Desk, create: Any, edit: Any) -> None:
    keep(desk, from_dates("de", [date(2026, 12, 25)]))
    kinds: list[dict[str, Any]] = [
        CRON,
        {"every": "90m", "anchor": "2026-01-01T00:05:00Z"},
        {"at": ["2030-01-01T00:00:00Z", "2031-01-01T00:00:00Z"]},
        {
            "rrule": "FREQ=DAILY",
            "dtstart": "2026-01-05T09:00:00",
            "tz": BERLIN,
            "exdates": "2026-07-01T09:00:00",
            "rdates": ["2026-07-02T10:00:00Z"],
        },
    ]
    around: dict[str, Any] = {"start": "2026-01-01T00:00:00Z", "calendar": "de", "on_holiday": "next"}
    for number, kind in enumerate(kinds):
        create(f"s{number}", {"task": "work", **kind, **around})
        before = desk.the_schedule(f"s{number}")

        assert edit(f"s{number}").effect == "none"
        assert edit(f"s{number}", priority=3).effect == "changed"
        assert desk.the_schedule(f"s{number}").trigger == before.trigger


def test_what_is_so_already_is_no_new_version(desk: Desk, create: Any, edit: Any) -> None:
    create()

    written = edit(tz=BERLIN, cron="30 2 * * *", priority=0, attempts=33)

    assert (written.effect, written.differences, written.version) == ("none", (), 1)
    assert len(desk.versions()) == 1


def test_a_dry_edit_writes_nothing(desk: Desk, create: Any) -> None:
    create()

    written = desk.run(schedules(desk, "bob").aedit("s", priority=9, dry_run=True))

    assert [(each.field, each.was, each.now) for each in written.differences] == [("priority", 0, 9)]
    assert (desk.the_schedule().priority, len(desk.versions())) == (0, 1)


def test_an_edit_keeps_a_pause_and_the_fires_left(desk: Desk, create: Any, edit: Any) -> None:
    create(options={"task": "t", "every": "1h", "max_fires": 5})
    desk.advance(HOUR)
    desk.fire_due()
    desk.pause()

    assert edit(priority=9).paused
    after = desk.the_schedule()
    assert (after.fires_left, after.paused_by) == (4, "ann")


def test_what_was_due_before_a_new_trigger_is_decided_by_the_old_one(
    desk: Desk, create: Any, edit: Any
) -> None:
    create(options={"task": "t", "every": "1h"})
    create("other", {"task": "t", "every": "30m"})
    desk.advance(HOUR)

    edit(every="30m")
    desk.fire_due()

    assert [each.slot_at for each in desk.slots()] == [desk.now]
    assert len(desk.slots("other")) == 1


def test_there_must_be_one_to_edit(edit: Any) -> None:
    with pytest.raises(NotFound, match="nosuch"):
        edit("nosuch", priority=3)


def test_the_second_of_two_editors_is_told(
    desk: Desk, create: Any, edit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    create()
    read = desk.the_schedule()
    edit(priority=1, by="bob")

    async def as_it_was(name: str) -> Any:
        return read

    with pytest.raises(Outdated, match="it is at version 2, and not at 1"):
        desk.run(schedules(desk, "eve").aedit("s", priority=2, expected_version=1))
    monkeypatch.setattr(desk.store.schedules, "get", as_it_was)
    with pytest.raises(Outdated, match="at version 1 when it was read, and is at version 2 now"):
        edit(priority=2, by="eve")
    monkeypatch.undo()
    assert desk.the_schedule().priority == 1
    assert desk.run(schedules(desk, "eve").aedit("s", priority=2, expected_version=2)).version == 3


def test_a_trigger_of_another_version_is_refused_not_lost(desk: Desk, edit: Any) -> None:
    desk.schedule(trigger='{"moon":"full"}')

    with pytest.raises(InvalidArgument, match="trigger"):
        edit(priority=3)


# Code and people.


def test_an_edited_schedule_is_kept_from_code_until_it_is_handed_back(
    desk: Desk, app: Mainspring, edit: Any
) -> None:
    def declare() -> list[str]:
        return desk.schedule_all(app._registry.schedules["declared"].new_schedule(desk.now))

    def action() -> Action:
        return plan(app._registry.schedules, desk.schedules(), desk.now)[0].action

    eve = schedules(desk, "eve")
    declare()
    edit("declared", every="2h")
    assert (declare(), action()) == ([], Action.KEEP)

    done = desk.run(eve.arevert(["declared"], note="over"))
    again = desk.run(eve.arevert(["declared"]))

    assert [(each.effect, each.why) for each in (*done, *again)] == [
        (ScheduleEffect.REVERTED, ""),
        (ScheduleEffect.NONE, "is code's already"),
    ]
    assert (action(), declare(), action()) == (Action.CHANGE, ["declared"], Action.SAME)
    assert [step_in_words(each) for each in steps(desk.versions("declared"))] == [
        "created",
        "changed: trigger every 1h -> every 2h",
        "reverted",
        "changed: trigger every 2h -> every 1h",
    ]
    with pytest.raises(NotFound):
        desk.run(eve.arevert(["nosuch"]))


def test_what_few_words_hide_is_a_difference_too(desk: Desk, create: Any, edit: Any) -> None:
    create()
    edit(gap="shift")

    [_, step] = steps(desk.versions())
    assert [each.field for each in step.differences] == ["trigger"]


def test_the_next_fires_are_told_in_the_zone_of_the_schedule(desk: Desk, create: Any) -> None:
    written = create(options={"task": "work", "cron": "0 9 * * *", "tz": BERLIN})

    assert len(written.fires) == 3
    assert {fire.local.hour for fire in written.fires} == {9}
    assert all(fire.at.tzinfo is UTC and isinstance(fire.at, datetime) for fire in written.fires)


def test_pruning_logs_how_many_due_slots_each_schedule_loses(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    app = Mainspring()

    @app.task
    def t() -> None: ...

    gone = app.schedule("gone", t, every="1m").new_schedule(desk.now)
    alone = app.schedule("alone", t, every="10m").new_schedule(desk.now)
    desk.schedule_all(gone, alone, desk.new_schedule("strange", trigger='{"newer": 1}'))
    desk.advance(5 * timedelta(minutes=1))
    admin = admin_of(desk.store, desk.clock, registry=Mainspring()._registry)

    found = desk.run(admin.schedules.aapply(prune=True))

    assert {each.name: (each.dropped, each.at_least) for each in found} == {
        "alone": (0, False),
        "gone": (5, False),
        "strange": (2, False),
    }
    told = [record for record in caplog.records if record.levelname == "WARNING"]
    why = "due and not yet decided when the schedule was deleted; no job was made"
    assert [record.getMessage() for record in told] == [
        f"gone: 5 slots were {why}",
        f"strange: 2 slots were {why}",
    ]
    [action] = desk.run(admin.audit_log.afind())
    assert AuditEntryView.of(action).result == {"changed": 3, "dropped_slots": 7}
