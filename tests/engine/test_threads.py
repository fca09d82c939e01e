"""ThreadPool for plain functions."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from mainspring.worker.threads import ThreadPool
from tests.engine.kit import until

SIZE = 4


class Told:
    """How calls ended."""

    def __init__(self) -> None:
        self.ends: list[tuple[Any, BaseException | None]] = []

    def __call__(self, value: Any, error: BaseException | None) -> None:
        self.ends.append((value, error))


def test_what_a_function_returns_or_raises_is_told_on_the_event_loop(run: Any) -> None:
    async def story() -> None:
        threads, here, where = ThreadPool(SIZE), threading.get_ident(), set[int]()
        told = Told()

        def end(value: Any, error: BaseException | None) -> None:
            where.add(threading.get_ident())
            told(value, error)

        threads.start(threading.get_ident, end)
        threads.start(lambda: 1 // 0, end)
        await until(lambda: len(told.ends) == 2)
        values, errors = zip(*told.ends, strict=True)

        assert where == {here}
        assert here not in values
        assert sorted(type(error).__name__ for error in errors) == ["NoneType", "ZeroDivisionError"]
        threads.close()

    run(story())


def test_functions_that_take_long_are_spread_over_all_threads_and_no_more(run: Any) -> None:
    async def story() -> None:
        threads, gate, told = ThreadPool(SIZE), threading.Event(), Told()
        begun: list[int] = []

        def waits() -> None:
            gate.wait(20)

        for number in range(3 * SIZE):
            threads.start(waits, told, lambda number=number: begun.append(number))  # type: ignore[misc]
        await until(lambda: len(begun) == SIZE)
        assert begun == list(range(SIZE)), "in the order in which they came"
        assert told.ends == []

        gate.set()
        await until(lambda: len(told.ends) == 3 * SIZE)
        threads.close()

    run(story())


def test_calls_come_again_after_a_rest(run: Any) -> None:
    async def story() -> None:
        threads, told = ThreadPool(SIZE), Told()
        for round_ in range(1, 200):
            threads.start(lambda: None, told)
            await until(lambda round_=round_: len(told.ends) == round_)  # type: ignore[misc]
        threads.close()

    run(story())


def test_a_call_that_was_taken_back_in_time_never_begins(run: Any) -> None:
    async def story() -> None:
        threads, gate, told = ThreadPool(1), threading.Event(), Told()
        threads.start(lambda: gate.wait(20), told)
        second = threads.start(lambda: "never", told)
        third = threads.start(lambda: "last", told)
        assert second.take()
        assert not second.take()

        gate.set()
        await until(lambda: third.over)
        assert not third.take(), "it has begun"
        assert [value for value, _ in told.ends] == [True, "last"]
        threads.close()

    run(story())


def test_a_defect_in_who_is_told_keeps_nothing_from_the_others(run: Any) -> None:
    async def story() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        threads, gate, told = ThreadPool(1), threading.Event(), Told()

        def fails(value: Any, error: BaseException | None) -> None:
            raise ZeroDivisionError

        threads.start(lambda: gate.wait(20), fails)
        threads.start(lambda: 1, fails)
        threads.start(lambda: 2, told)
        gate.set()
        await until(lambda: told.ends)
        assert told.ends == [(2, None)]
        threads.close()

    run(story())


def test_threads_at_rest_end_when_it_closes(run: Any) -> None:
    async def story() -> None:
        threads, told = ThreadPool(SIZE), Told()
        before = threading.active_count()
        threads.start(lambda: None, told)
        await until(lambda: told.ends)
        threads.close()
        await until(lambda: threading.active_count() <= before)

    run(story())


class NoMore:
    """A system that has so many threads to give."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, left: int) -> None:
        self.left, self._start = left, threading.Thread.start
        monkeypatch.setattr(threading.Thread, "start", lambda thread: self.start(thread))

    def start(self, thread: threading.Thread) -> None:
        if not self.left:
            raise RuntimeError("can't start new thread")
        self.left -= 1
        self._start(thread)


def test_a_system_without_threads_refuses_the_call_and_the_next_one_is_tried_again(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        threads, told, system = ThreadPool(SIZE), Told(), NoMore(monkeypatch, 0)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            threads.start(lambda: "lost", told)
        system.left = SIZE
        threads.start(lambda: "kept", told)
        await until(lambda: told.ends)

        assert told.ends == [("kept", None)]
        threads.close()

    run(story())


def test_with_fewer_threads_than_were_asked_for_all_calls_are_done(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        threads, told, gate = ThreadPool(SIZE), Told(), threading.Event()
        NoMore(monkeypatch, 1)
        threads.start(lambda: gate.wait(20), told)
        for number in range(8):
            threads.start(lambda number=number: number, told)  # type: ignore[misc]
        gate.set()
        await until(lambda: len(told.ends) == 9)

        assert [value for value, _ in told.ends[1:]] == list(range(8))
        threads.start(lambda: "after a rest", told)
        await until(lambda: len(told.ends) == 10)
        threads.close()

    run(story())
