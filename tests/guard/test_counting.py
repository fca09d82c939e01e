"""The counters count: the same work gives the same counts, and a little more work is seen."""

from __future__ import annotations

import asyncio
import struct
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from benchmarks.bench import Bench
from benchmarks.guard.baseline import changes
from benchmarks.guard.counts import Counts, least
from benchmarks.guard.interpreter import executing
from benchmarks.guard.measure import slope
from benchmarks.guard.meters import Meter, PostgresMeter, sqlite_meter
from benchmarks.guard.relay import Frontend, relayed
from benchmarks.guard.workloads import WORKLOADS
from mainspring.clock import SystemClock
from mainspring.store.opener import open_store
from mainspring.store.postgres.queue import PostgresQueue
from mainspring.store.sqlite.queue import SQLiteQueue

ONE_BY_ONE = next(each for each in WORKLOADS if each.name == "enqueue one by one")
BEFORE = {"drain": Counts(instructions=1000, calls=50, statements=2, trips=1, log=500)}


def changed(**now: float) -> list[tuple[str, bool]]:
    counts = {**vars(BEFORE["drain"]), **now}
    return [(each.kind, each.grew) for each in changes(BEFORE, {"drain": Counts(**counts)})]


def test_a_tenth_more_is_let_through_and_a_quarter_less() -> None:
    assert changed(instructions=1100, calls=37.5, statements=2.2, log=375) == []
    assert changed(instructions=1101) == [("instructions", True)]
    assert changed(statements=2.3, log=374) == [("statements", True), ("log", False)]


def test_a_count_that_was_zero_may_not_come_up() -> None:
    before = {"rest": Counts(statements=3)}

    found = list(changes(before, {"rest": Counts(statements=3, log=20, trips=1)}))

    assert [each.sentence for each in found] == ["rest: from nothing more trips, 0 before, 1 now"]
    assert [each.kind for each in changes(before, {"rest": Counts(statements=3, log=21)})] == ["log"]


def test_a_workload_that_came_or_went_is_told() -> None:
    assert {each.kind for each in changes(BEFORE, {})} == {*vars(BEFORE["drain"])}
    assert {each.workload for each in changes(BEFORE, {**BEFORE, "new": Counts(calls=1)})} == {"new"}


def test_of_several_rounds_the_least_of_each_count_is_kept() -> None:
    assert least([Counts(1, 5, 2), Counts(2, 4, 2)]) == Counts(1, 4, 2)


def test_instructions_of_the_same_work_are_the_same_and_grow_with_it() -> None:
    def counted(turns: int) -> tuple[int, int]:
        with executing() as executed:
            asyncio.run(work(turns))
        return executed.taken()

    async def work(turns: int) -> None:
        for _ in range(turns):
            await asyncio.get_running_loop().run_in_executor(None, lambda: [ord(c) for c in "abc"])

    counted(1)
    one, again, two = counted(1), counted(1), counted(2)

    # A thread may be asked twice whether it is awake.
    assert one[0] == pytest.approx(again[0], rel=0.02)
    assert two[1] - one[1] >= 3
    assert two[0] > one[0]


@pytest.mark.parametrize("step", [1, 3, 1000])
def test_messages_are_counted_however_the_bytes_come(step: int) -> None:
    def message(kind: bytes, body: bytes) -> bytes:
        return kind + struct.pack(">i", 4 + len(body)) + body

    secure = struct.pack(">ii", 8, 80877103)
    startup = struct.pack(">ii", 8 + 12, 3 << 16) + b"user\0QQQQQQ\0"
    rest = message(b"Q", b"BEGIN\0") + message(b"P", b"SQQE") + message(b"E", b"") + message(b"S", b"")
    sent, seen = secure + startup + rest + message(b"d", b"Q" * 500) + message(b"X", b""), Counter[str]()

    frontend = Frontend(seen)
    for start in range(0, len(sent), step):
        frontend.feed(sent[start : start + step])

    assert seen == {"Q": 1, "P": 1, "E": 1, "S": 1, "d": 1, "X": 1}


def with_one_more(monkeypatch: pytest.MonkeyPatch, jobs: type[Any], statement: str) -> None:
    """Have every insert ask for one thing more."""
    insert = jobs.insert

    async def slower(self: Any, *arguments: Any, **options: Any) -> Any:
        if jobs is SQLiteQueue:
            await self._database.read(lambda session: session.rows(statement, at=None))
        else:
            await self._database.relaxed(statement, at=None)
        return await insert(self, *arguments, **options)

    monkeypatch.setattr(jobs, "insert", slower)


def caught(before: Counts, now: Counts) -> set[str]:
    return {each.kind for each in changes({"": before}, {"": now}) if each.grew}


def migrate(meter: Meter) -> None:
    async def migrated() -> None:
        store = open_store(meter.bench.url, clock=SystemClock())
        await store.migrate()
        await store.close()

    asyncio.run(migrated())


def test_one_more_statement_is_caught_on_sqlite(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with sqlite_meter(tmp_path) as meter:
        migrate(meter)
        before = slope(meter, ONE_BY_ONE, repeats=1)
        with_one_more(monkeypatch, SQLiteQueue, "clock")
        now = slope(meter, ONE_BY_ONE, repeats=1)

    assert {"statements", "instructions", "calls"} <= caught(before, now)
    assert now.statements - before.statements == 3  # BEGIN and COMMIT are statements, too


def test_one_more_statement_is_caught_on_postgresql(monkeypatch: pytest.MonkeyPatch, databases: Any) -> None:
    name = databases.create(owner="guard")
    try:
        with relayed(databases.url(name)) as relay:
            meter = PostgresMeter(Bench("postgresql", relay.url), relay, databases.url(name))
            before = slope(meter, ONE_BY_ONE, repeats=1)
            with_one_more(monkeypatch, PostgresQueue, "now")
            now = slope(meter, ONE_BY_ONE, repeats=1)
    finally:
        databases.drop(name)

    assert {"statements", "trips", "instructions", "calls"} <= caught(before, now)
    assert now.statements - before.statements == pytest.approx(1, abs=0.1)
