"""Awaited methods and their blocking twins: they answer the same, and an event loop is never blocked."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mainspring import Mainspring
from mainspring.admin.admin import Admin
from mainspring.admin.order import Noun
from mainspring.errors import InvalidArgument, NotFound, UsageError
from mainspring.testing.clock import ManualClock
from tests.support.door import make_app, seed
from tests.support.management import admin_of, awaited

EVERY = [(noun, name) for noun, found in awaited().items() for name in found]
READING = [
    *(("jobs", "afind"), ("jobs", "apage"), ("dead_letters", "afind"), ("dead_letters", "acount")),
    *(("dead_letters", "agroups"), ("schedules", "aall"), ("schedules", "apage"), ("schedules", "acounts")),
    *(("schedules", "asummary"), ("schedules", "alisted"), ("schedules", "aplan"), ("backfills", "anewest")),
    *(("workflows", "afind"), ("queues", "aall"), ("queues", "adepth"), ("limits", "afind")),
    *(("processes", "aall"), ("leases", "aall"), ("alerts", "afind"), ("alerts", "aundelivered")),
    *(("tokens", "aall"), ("sessions", "aall"), ("audit_log", "afind"), ("audit_log", "averify")),
    *(("database", "averify"), ("database", "aidentity"), ("database", "amigrate")),
]


@pytest.fixture
def app(database_url: str, clock: ManualClock) -> Iterator[Mainspring]:
    """With something of everything in its store, for callers that block."""
    app = make_app(database_url, clock=clock)
    app._portal.call(lambda: seed(app), instead="seed")
    yield app
    app.close()


def both(app: Mainspring, run: Callable[[Any], Any], noun: str, name: str, *args: Any) -> tuple[Any, Any]:
    """What the awaited method and its twin answer."""

    async def on_a_loop() -> Any:
        async with app:
            return await getattr(getattr(app.admin("ada"), noun), name)(*args)

    return run(on_a_loop()), getattr(getattr(app.admin("ada"), noun), name.removeprefix("a"))(*args)


@pytest.mark.parametrize(("noun", "name"), EVERY)
def test_every_awaited_method_has_a_blocking_twin(noun: str, name: str) -> None:
    kind: type[Noun] = type(getattr(admin_of(None, ManualClock()), noun))  # type: ignore[arg-type]
    first, twin = getattr(kind, name), getattr(kind, name.removeprefix("a"))

    assert name.startswith("a")
    assert inspect.signature(twin) == inspect.signature(first)
    assert (twin.__name__, twin.__doc__) == (name.removeprefix("a"), first.__doc__)
    assert twin.__qualname__ == f"{kind.__name__}.{twin.__name__}"
    assert not inspect.iscoroutinefunction(twin)
    assert first.__doc__


@pytest.mark.parametrize(("noun", "name"), EVERY)
def test_a_blocking_call_inside_an_event_loop_is_refused_before_it_begins(noun: str, name: str) -> None:
    app = Mainspring("sqlite://:memory:")

    async def inside() -> None:
        with pytest.raises(UsageError, match=rf"await {name}\(\)` instead"):
            getattr(getattr(app.admin("ada"), noun), name.removeprefix("a"))()

    asyncio.run(inside())
    assert app._in_memory is None


def test_an_admin_of_an_event_loop_has_no_blocking_calls(clock: ManualClock) -> None:
    admin: Admin = admin_of(None, clock)  # type: ignore[arg-type]

    with pytest.raises(UsageError, match=r"belongs to an event loop; use `await acancel\(\)` instead"):
        admin.jobs.cancel(1)


def test_both_answer_the_same_questions_alike(app: Mainspring, run: Callable[[Any], Any]) -> None:
    for noun, name in READING:
        first, second = both(app, run, noun, name)
        assert first == second, (noun, name)
    for noun, name, *args in (
        ("jobs", "aget", 2),
        ("jobs", "alogs", 1),
        ("jobs", "awhy", 3),
        ("dead_letters", "aget", 2),
        ("schedules", "aget", "nightly"),
        ("schedules", "asheet", "nightly"),
        ("schedules", "aversions", "nightly"),
        ("workflows", "aget", 5),
        ("workflows", "adefinition", 5),
        ("workflows", "anewest", "pair"),
        ("workflows", "astep", 5, "first"),
    ):
        first, second = both(app, run, str(noun), str(name), *args)
        assert first == second, (noun, name)
        assert first is not None


def test_both_give_orders_and_raise_alike(app: Mainspring, run: Callable[[Any], Any]) -> None:
    paused = both(app, run, "queues", "apause", "mail")
    assert paused == (True, False)
    assert [each.pause and each.pause.paused_by for each in app.queues.all() if each.name == "mail"] == [
        "ada"
    ]
    for call in (lambda: run(_on_a_loop(app)), lambda: app.jobs.cancel(4242)):
        with pytest.raises(NotFound, match="4242"):
            call()


async def _on_a_loop(app: Mainspring) -> None:
    async with app:
        await app.jobs.acancel(4242)


def test_an_app_has_the_nouns_that_programs_use_most(app: Mainspring) -> None:
    assert app.jobs.get(2).job.task == "fail"
    assert [each.id for each in app.dead_letters.find()] == [2]
    assert [each.name for each in app.schedules.all()] == ["nightly"]
    assert app.backfills.newest() == []
    assert [each.id for each in app.workflows.find()] == [5]
    assert "default" in [each.name for each in app.queues.all()]
    assert app.limits.find() == []
    assert [each.name for each in app.processes.all()] == ["w"]


def test_a_drain_takes_a_duration_in_words(app: Mainspring) -> None:
    assert app.queues.drain("mail", within="0s") == 0
    with pytest.raises(InvalidArgument, match="within"):
        app.queues.drain("mail", within="soon")


@pytest.mark.parametrize("name", ["", " ada", "a\nb", "x" * 101])
def test_the_name_of_an_actor_is_one_line(name: str) -> None:
    with pytest.raises(InvalidArgument, match="one line of 1 to 100 printable characters"):
        Mainspring("sqlite://:memory:").admin(name)


def test_a_program_brings_a_schema_up_to_date(empty_database_url: str, clock: ManualClock) -> None:
    with_none = make_app(empty_database_url, clock=clock)
    admin = with_none.admin("ada")
    try:
        applied = admin.database.migrate()
        assert applied
        assert admin.database.migrate() == []
        admin.database.verify()
        [migrated] = admin.audit_log.find()
        assert (migrated.entry.action, migrated.entry.actor, migrated.outcome) == (
            "db.migrate",
            "ada",
            "done",
        )
    finally:
        with_none.close()
