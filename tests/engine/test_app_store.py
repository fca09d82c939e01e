"""How an app opens its store, and what it says about schedules it does not know."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from mainspring import Mainspring
from mainspring.errors import SchemaMismatch
from mainspring.telemetry.events import (
    Event,
    ProcessStopping,
    SchedulesUndeclared,
    SchedulesWritten,
    Telemetry,
)
from mainspring.telemetry.log import log_event

Run = Callable[[Any], Any]


def with_schedules(url: str, *names: str, heard: list[Event]) -> Mainspring:
    app = Mainspring._with(url, telemetry=Telemetry(heard.append))

    @app.task
    def tick() -> None: ...

    for name in names:
        app.schedule(name, tick, every="1h")
    return app


async def written(app: Mainspring) -> None:
    async with app:
        await app._write_schedules()


def test_code_is_refused_by_a_postgresql_schema_that_is_behind(
    run: Run, new_database: Callable[..., str]
) -> None:
    app = Mainspring(new_database(migrated=False))
    task = app.task(name="tick")(lambda: None)

    async def enqueue() -> None:
        await task.aenqueue()

    with pytest.raises(SchemaMismatch, match="mainspring db migrate"):
        run(enqueue())


def test_an_unprepared_sqlite_store_is_left_as_it_is(run: Run, tmp_path: Any) -> None:
    app = Mainspring(f"sqlite:///{tmp_path / 'x.db'}")

    async def look() -> None:
        try:
            await (await app._store(prepare=False)).verify()
        finally:
            await app.aclose()

    with pytest.raises(SchemaMismatch):
        run(look())


def test_schedules_that_left_the_code_are_told_at_the_start(run: Run, database_url: str) -> None:
    heard: list[Event] = []
    run(written(with_schedules(database_url, "a", "b", heard=heard)))
    assert not [each for each in heard if isinstance(each, SchedulesUndeclared)]

    run(written(with_schedules(database_url, "a", heard=heard)))

    assert heard[-1] == SchedulesUndeclared(names=("b",))


def test_of_many_schedules_that_left_the_code_a_few_are_told(
    run: Run, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[Event] = []
    names = [f"s{number:02}" for number in range(25)]
    run(written(with_schedules(database_url, *names, heard=heard)))

    run(written(with_schedules(database_url, "s00", heard=heard)))

    assert heard[-1] == SchedulesUndeclared(names=tuple(names[1:21]), more=True)
    log_event(heard[-1])
    assert "s19, s20 and more; `mainspring schedules delete NAME` takes one away" in caplog.text


def test_of_many_schedules_that_are_written_a_few_are_told(
    run: Run, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[Event] = []
    names = [f"s{number:02}" for number in range(25)]
    run(written(with_schedules(database_url, *names, heard=heard)))

    assert heard == [SchedulesWritten(names=tuple(names[:20]), count=25)]
    with caplog.at_level(logging.INFO, "mainspring"):
        log_event(heard[0])
        log_event(SchedulesWritten(names=("b",), count=1))
    assert caplog.messages == [
        f"schedules written: {', '.join(names[:20])} and 5 more",
        "schedules written: b",
    ]


def test_the_log_says_how_to_take_them_away(caplog: pytest.LogCaptureFixture) -> None:
    log_event(SchedulesUndeclared(names=("b",)))

    [record] = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage() == (
        "schedules on record that this app does not declare: b; `mainspring schedules delete b` takes it away"
    )


@pytest.mark.parametrize(("running", "said"), [(1, "1 running job gets 30s"), (2, "2 running jobs get 30s")])
def test_the_log_counts_in_words_and_names_the_second_stop(
    caplog: pytest.LogCaptureFixture, running: int, said: str
) -> None:
    with caplog.at_level(logging.INFO, "mainspring"):
        log_event(ProcessStopping(running=running, grace=timedelta(seconds=30)))

    assert said in caplog.text
    assert "second Ctrl-C" in caplog.text
