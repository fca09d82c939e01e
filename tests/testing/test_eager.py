"""Eager mode: handlers run where they are enqueued."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from mainspring import Context, Mainspring, Retry
from mainspring.errors import InvalidArgument, UsageError
from mainspring.testing import RunFailed, eager


@pytest.fixture
def app(tmp_path: Path) -> Mainspring:
    return Mainspring(f"sqlite:///{tmp_path / 'real.db'}")


def test_a_handler_runs_at_once_and_on_this_thread(app: Mainspring, tmp_path: Path) -> None:
    seen: list[object] = []

    @app.task(queue="q")
    def plain(ctx: Context, rows: list[int]) -> None:
        seen.append((ctx.attempt, ctx.queue, rows, threading.current_thread() is threading.main_thread()))

    @app.task
    async def quick(word: str) -> None:
        seen.append(word)

    with eager(app):
        rows = [1]
        handle = plain.using(delay="1h").enqueue(rows)
        rows.append(2)
        quick.enqueue("b")
        app.enqueue_many([quick.job("c"), quick.job("d")])

    assert seen == [(1, "q", [1], True), "b", "c", "d"]
    assert (handle.id, handle.task, handle.queue) == (1, "plain", "q")
    assert list(tmp_path.iterdir()) == []


def test_what_it_raises_is_raised_at_once_and_nothing_is_tried_again(app: Mainspring) -> None:
    calls: list[int] = []

    @app.task(retry=Retry(attempts=5))
    def broken() -> None:
        calls.append(1)
        raise KeyError("boom")

    with eager(app), pytest.raises(KeyError, match="boom"):
        broken.enqueue()

    assert calls == [1]


def test_the_door_is_the_same(app: Mainspring) -> None:
    @app.task
    def plain(a: int) -> object:
        return {a}

    with eager(app):
        with pytest.raises(InvalidArgument, match=r"plain\.a: expected a value"):
            plain.enqueue()  # type: ignore[call-arg]
        with pytest.raises(RunFailed, match="result: expected a JSON value"):
            plain.enqueue(1)


def test_handlers_may_enqueue_in_their_turn(app: Mainspring) -> None:
    seen: list[str] = []

    @app.task
    def inner() -> None:
        seen.append("inner")

    @app.task
    def outer() -> None:
        inner.enqueue()
        seen.append("outer")

    @app.task
    async def outermost() -> None:
        await inner.aenqueue()
        with pytest.raises(UsageError, match="await aenqueue"):
            outer.enqueue()
        seen.append("outermost")

    with eager(app):
        outer.enqueue()
        outermost.enqueue()
        asyncio.run(outermost.aenqueue())  # type: ignore[arg-type]

    assert seen == ["inner", "outer", "inner", "outermost", "inner", "outermost"]


def test_afterwards_jobs_are_stored_again(app: Mainspring, tmp_path: Path) -> None:
    @app.task
    def plain() -> None:
        raise AssertionError("not here")

    with app:
        with pytest.raises(ZeroDivisionError), eager(app):
            _ = 1 / 0
        assert plain.enqueue().id == 1

    assert (tmp_path / "real.db").exists()


# Steps, sleeps and waits.


def stories(app: Mainspring, seen: list[object]) -> None:
    @app.task
    async def order(ctx: Context) -> None:
        seen.append(await ctx.astep("charge", lambda: {"paid": 9}))
        await ctx.asleep("3d")
        seen.append(await ctx.await_event("approved", timeout="7d", default="nobody"))

    @app.task
    def order_plain(ctx: Context) -> None:
        seen.append(ctx.step("charge", lambda: {"paid": 9}))
        ctx.sleep("3d")
        seen.append(ctx.wait_event("approved", timeout="7d", default="nobody"))

    @app.task
    async def endless(ctx: Context) -> None:
        seen.append(await ctx.await_event("approved"))


@pytest.mark.parametrize("name", ["order", "order_plain"])
def test_steps_are_called_sleeps_are_over_and_events_are_what_the_test_says(
    app: Mainspring, name: str
) -> None:
    seen: list[object] = []
    stories(app, seen)
    task = app._registry.get(name)

    with eager(app, events={"approved": {"by": "ann"}}):
        task.enqueue()
    with eager(app):
        task.enqueue()
        assert app.send_event("approved", 1, job=2) is True
        assert app.send_event("approved", 2, job=2) is False
        task.enqueue()

    paid = {"paid": 9}
    assert seen == [paid, {"by": "ann"}, paid, "nobody", paid, 1]


def test_a_wait_that_could_never_end_says_what_to_do(app: Mainspring) -> None:
    seen: list[object] = []
    stories(app, seen)
    endless = app._registry.get("endless")

    with eager(app):
        with pytest.raises(UsageError, match=r"eager mode cannot wait; give eager\(app, events"):
            endless.enqueue()
        asyncio.run(app.asend_event("approved", 5))
        asyncio.run(endless.aenqueue())

    assert seen == [5]


def test_a_step_follows_the_same_rules(app: Mainspring) -> None:
    @app.task
    async def order(ctx: Context) -> None:
        await ctx.astep("charge", int)
        await ctx.astep("charge", int)

    @app.task
    async def odd(ctx: Context) -> None:
        await ctx.astep("charge", object)

    with eager(app):
        with pytest.raises(InvalidArgument, match="a name of its own"):
            order.enqueue()
        with pytest.raises(InvalidArgument, match="a JSON value"):
            odd.enqueue()


def test_events_are_checked_like_everywhere(app: Mainspring) -> None:
    with pytest.raises(InvalidArgument, match="name"), eager(app, events={"a b": 1}):
        pass
    with eager(app), pytest.raises(InvalidArgument, match="payload"):
        app.send_event("a", object())
    assert "send_event" not in vars(app)
