"""The harness: real loops on a database in memory, moved by the test."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from mainspring import Context, Mainspring, Retry
from mainspring.errors import InvalidArgument, UnknownTask, UsageError
from mainspring.testing import Harness, RunFailed, StillBusy

HOUR = timedelta(hours=1)


class Shop:
    """An app as a user has it: in a module, on a database that tests must not touch."""

    def __init__(self, url: str) -> None:
        self.app = Mainspring(url)
        self.log: list[Any] = []
        self.threads: set[str] = set()

        @self.app.task
        def note(word: str) -> str:
            self.threads.add(threading.current_thread().name)
            self.log.append(word)
            return word

        @self.app.task(queue="mail", priority=5)
        async def mail(ctx: Context, to: str) -> None:
            self.log.append((ctx.attempt, to))

        @self.app.task(retry=Retry(attempts=3, base="10s", jitter=False))
        def flaky() -> None:
            self.log.append("flaky")
            raise ValueError(f"attempt {len(self.log)}")

        @self.app.task
        def chain(left: int) -> None:
            self.log.append(left)
            if left:
                chain.enqueue(left - 1)

        self.note, self.mail, self.flaky, self.chain = note, mail, flaky, chain


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(f"sqlite:///{tmp_path / 'real.db'}")


def test_jobs_run_on_the_callers_thread_best_first(shop: Shop) -> None:
    with Harness(shop.app) as mainspring:
        shop.note.enqueue("first")
        shop.note.using(priority=9).enqueue("urgent")
        shop.note.using(queue="unheard.of").enqueue("elsewhere")
        shop.mail.enqueue("ada")
        ran = mainspring.run_until_idle()

    assert shop.log == ["urgent", (1, "ada"), "first", "elsewhere"]
    assert [each.verdict for each in ran] == ["succeeded"] * 4
    assert shop.threads == {threading.current_thread().name}


def test_the_app_is_given_back_as_it_was(shop: Shop, tmp_path: Path) -> None:
    with shop.app:
        shop.note.enqueue("stored")
        before = {**vars(shop.app)}
        with Harness(shop.app) as mainspring:
            assert mainspring.enqueued() == []
            assert shop.app.settings.database.url == "sqlite://:memory:"
            shop.note.enqueue("in memory")
        assert vars(shop.app) == before
        assert shop.note.enqueue("stored too").id == 2

    assert [each.name for each in tmp_path.iterdir() if each.name.endswith(".db")] == ["real.db"]


def test_an_app_that_was_never_configured_is_not_configured_by_a_test(shop: Shop, tmp_path: Path) -> None:
    with Harness(shop.app):
        shop.note.enqueue("in memory")

    assert shop.app._settings is None
    assert list(tmp_path.iterdir()) == []


def test_closing_the_app_in_a_test_loses_nothing(shop: Shop) -> None:
    with Harness(shop.app) as mainspring:
        with shop.app:
            shop.note.enqueue("kept")
        mainspring.assert_enqueued(shop.note, args=["kept"], count=1)


def test_a_handler_may_enqueue_and_what_it_enqueues_runs(shop: Shop) -> None:
    with Harness(shop.app) as mainspring:
        shop.chain.enqueue(3)
        mainspring.run_until_idle()

    assert shop.log == [3, 2, 1, 0]


def test_what_never_ends_is_told(shop: Shop) -> None:
    with Harness(shop.app) as mainspring:
        shop.chain.enqueue(100)
        with pytest.raises(StillBusy, match=r"still busy after 7 runs, the last of chain \(job 6\)"):
            mainspring.run_until_idle(limit=7)

    assert len(shop.log) == 8


def test_a_job_that_puts_itself_off_for_ever_is_told(shop: Shop) -> None:
    @shop.app.task
    def again() -> None:
        again.using(delay="1h").enqueue()

    with Harness(shop.app) as mainspring:
        again.enqueue()
        with pytest.raises(StillBusy):
            mainspring.run_until_idle(advance=True, limit=5)


def test_a_handler_may_move_the_clock_too(shop: Shop) -> None:
    @shop.app.task
    def long() -> None:
        mainspring.clock.advance("3h")

    with Harness(shop.app) as mainspring:
        started = mainspring.clock.now()
        long.enqueue()
        mainspring.run_for("1h")
        assert mainspring.clock.now() - started == 3 * HOUR


def test_a_limit_that_is_just_enough_is_enough(shop: Shop) -> None:
    with Harness(shop.app) as mainspring:
        shop.chain.enqueue(6)
        assert len(mainspring.run_until_idle(limit=7)) == 7


def test_what_a_handler_raises_is_raised_with_its_own_traceback(shop: Shop) -> None:
    with Harness(shop.app) as mainspring:
        shop.flaky.enqueue()
        with pytest.raises(ValueError, match="attempt 1") as caught:
            mainspring.run_until_idle()
        assert mainspring.assert_enqueued(shop.flaky, count=1)[0].failures == 1

    assert caught.traceback[-1].name == "flaky"
    assert not any("executor" in str(entry.path) for entry in caught.traceback)


def test_retries_are_waited_for_when_asked(shop: Shop) -> None:
    with Harness(shop.app, errors="collect") as mainspring:
        started = mainspring.clock.now()
        shop.flaky.enqueue()
        assert [each.verdict for each in mainspring.run_until_idle()] == ["failed"]
        assert mainspring.run_until_idle() == []
        assert [each.verdict for each in mainspring.run_until_idle(advance=True)] == ["failed", "dead"]

        assert mainspring.clock.now() - started == timedelta(seconds=30)
        assert [str(each.error) for each in mainspring.failures()] == ["attempt 1", "attempt 2", "attempt 3"]
        [dead] = mainspring.dead()
        assert (dead.task, len(dead.errors)) == ("flaky", 3)


def test_a_run_without_an_exception_of_its_own_fails_with_its_failure(shop: Shop) -> None:
    @shop.app.task(timeout="20ms")
    async def slow() -> None:
        await asyncio.Event().wait()

    @shop.app.task
    def wrong() -> object:
        return object()

    with Harness(shop.app) as mainspring:
        slow.enqueue()
        with pytest.raises(RunFailed, match="did not end within its timeout"):
            mainspring.run_one()
        wrong.enqueue()
        with pytest.raises(RunFailed, match="result: expected a JSON value"):
            mainspring.run_one()


def test_what_is_no_exception_is_raised_though_errors_are_collected(shop: Shop) -> None:
    @shop.app.task
    def fails_the_test() -> None:
        pytest.fail("said the handler")

    with Harness(shop.app, errors="collect") as mainspring:
        fails_the_test.enqueue()
        with pytest.raises(pytest.fail.Exception, match="said the handler"):
            mainspring.run_until_idle()


def test_schedules_fire_as_time_passes(shop: Shop) -> None:
    shop.app.schedule("hourly", shop.note, every="1h", args=["tick"])
    with Harness(shop.app) as mainspring:
        assert mainspring.run_until_idle() == []
        mainspring.clock.advance("1h")
        assert len(mainspring.run_until_idle()) == 1
        assert len(mainspring.run_for("5h")) == 5
        mainspring.clock.advance("5h")  # nobody was awake: the newest stands for all
        assert len(mainspring.run_until_idle()) == 1
        assert mainspring.clock.now() - mainspring.clock._start == 11 * HOUR


def test_missed_slots_are_caught_up_one_by_one(shop: Shop) -> None:
    shop.app.schedule("all", shop.note, every="1h", misfire="all", args=["tick"])
    with Harness(shop.app) as mainspring:
        mainspring.clock.advance("5h")
        assert len(mainspring.run_until_idle()) == 5


def test_a_job_that_waits_for_another_of_its_schedule_runs_after_it(shop: Shop) -> None:
    seen: list[int] = []

    @shop.app.task
    def long(ctx: Context) -> None:
        seen.append(ctx.job_id)
        if len(seen) == 1:
            mainspring.clock.advance("1h")

    shop.app.schedule("queued", long, every="1h", overlap="queue_one")
    with Harness(shop.app) as mainspring:
        mainspring.clock.advance("1h")
        ran = mainspring.run_until_idle(limit=10)

    assert [each.verdict for each in ran] == ["succeeded", "succeeded"]


def test_advancing_fires_slots_on_the_way_and_ends_with_the_last_job(shop: Shop) -> None:
    shop.app.schedule("hourly", shop.note, every="1h", args=["tick"])
    with Harness(shop.app) as mainspring:
        shop.note.using(delay="150m").enqueue("late")
        mainspring.run_until_idle(advance=True)

    assert shop.log == ["tick", "tick", "late"]


def test_a_clock_moved_beyond_the_lease_hurts_nothing(shop: Shop) -> None:
    with Harness(shop.app) as mainspring:
        for _ in range(3):
            shop.note.enqueue("x")
            assert len(mainspring.run_until_idle()) == 1
            mainspring.clock.advance("1d")


def test_one_at_a_time(shop: Shop) -> None:
    with Harness(shop.app) as mainspring:
        assert mainspring.run_one() is None
        shop.note.enqueue("a")
        shop.note.enqueue("b")
        one = mainspring.run_one()
        assert one is not None
        assert (one.job_id, one.attempt, shop.log) == (1, 1, ["a"])
        assert [job.args for job in mainspring.enqueued(shop.note)] == [["b"]]


def test_a_job_that_is_there_is_answered(shop: Shop) -> None:
    with Harness(shop.app) as mainspring:
        moment = mainspring.clock.now() + HOUR
        shop.mail.using(run_at=moment).enqueue(to="ada")
        [job] = mainspring.assert_enqueued(
            "mail", args=(), kwargs={"to": "ada"}, queue="mail", run_at=moment, count=1
        )
        mainspring.assert_enqueued(shop.note, count=0)

    assert (job.id, job.priority, job.failures) == (1, 5, 0)


def test_a_job_that_is_not_there_is_told_with_what_is(shop: Shop) -> None:
    with Harness(shop.app) as mainspring:
        shop.note.enqueue("ran")
        mainspring.run_until_idle()
        shop.mail.enqueue(to="bob")
        shop.note.enqueue("other")
        shop.note.using(queue="slow").enqueue("wanted")
        with pytest.raises(AssertionError) as caught:
            mainspring.assert_enqueued(shop.note, args=["wanted"], queue="default")

    assert str(caught.value).splitlines() == [
        "expected at least one job of note to wait with args=['wanted'], queue='default', found 0",
        "  jobs of note that wait: 2",
        "    job 3: args=['other'], kwargs={}, queue='default', run_at=2030-01-01T00:00:00+00:00; "
        "other: args",
        "    job 4: args=['wanted'], kwargs={}, queue='slow', run_at=2030-01-01T00:00:00+00:00; other: queue",
        "  jobs of other tasks: mail (1)",
        "  runs of note that have ended: 1",
    ]


def test_too_many_are_told_too(shop: Shop) -> None:
    with Harness(shop.app) as mainspring:
        for _ in range(25):
            shop.note.enqueue("x")
        with pytest.raises(AssertionError, match="exactly 1 job of note to wait, found 25") as caught:
            mainspring.assert_enqueued(shop.note, count=1)

    assert str(caught.value).endswith("    … and 5 more")


def test_mistakes_of_the_test_are_refused(shop: Shop) -> None:
    with pytest.raises(InvalidArgument, match='errors: expected "raise" or "collect"'):
        Harness(shop.app, errors="ignore")
    with Harness(shop.app) as mainspring:
        with pytest.raises(UnknownTask, match="no task named 'nmae'"):
            mainspring.enqueued("nmae")
        with pytest.raises(InvalidArgument, match="by: expected a duration"):
            mainspring.clock.advance("soon")
        with pytest.raises(ValueError, match="not before"):
            mainspring.clock.move_to(mainspring.clock.now() - HOUR)


def test_the_same_in_a_coroutine(shop: Shop) -> None:
    async def story() -> None:
        with Harness(shop.app) as mainspring:
            await shop.mail.aenqueue("ada")
            await shop.chain.aenqueue(1)
            mainspring.assert_enqueued(shop.mail, count=1)
            with pytest.raises(UsageError, match="await arun_until_idle"):
                mainspring.run_until_idle()
            assert len(await mainspring.arun_until_idle()) == 3
            shop.app.schedule("hourly", shop.note, every="1h", args=["tick"])
            assert len(await mainspring.arun_for("2h")) == 2
            assert await mainspring.arun_one() is None

    asyncio.run(story())

    assert shop.log == [(1, "ada"), 1, 0, "tick", "tick"]


def test_one_harness_serves_plain_tests_and_coroutines(shop: Shop) -> None:
    async def story() -> None:
        await shop.note.aenqueue("b")
        assert len(await mainspring.arun_until_idle()) == 1

    with Harness(shop.app) as mainspring:
        shop.note.enqueue("a")
        mainspring.run_until_idle()
        asyncio.run(story())
        shop.note.enqueue("c")
        mainspring.run_until_idle()

    assert shop.log == ["a", "b", "c"]


def test_the_same_story_is_told_the_same_way_twice(tmp_path: Path) -> None:
    def story() -> list[Any]:
        shop = Shop(f"sqlite:///{tmp_path / 'real.db'}")
        shop.app.schedule("jittered", shop.note, every="10m", jitter="5m", args=["tick"])
        with Harness(shop.app, errors="collect") as mainspring:
            for number in range(5):
                shop.note.using(priority=number % 2).enqueue(str(number))
                shop.flaky.enqueue()
            mainspring.run_for("1h")
            return [(each.job_id, each.task, each.attempt, each.verdict) for each in mainspring.ran()]

    assert story() == story()


def test_a_cancelled_run_is_told_as_refused(shop: Shop) -> None:
    @shop.app.task
    async def suicidal(ctx: Context) -> None:
        await (await shop.app._store()).jobs.cancel([ctx.job_id], at=shop.app._clock.stamp())

    with Harness(shop.app) as mainspring:
        suicidal.enqueue()
        assert [each.verdict for each in mainspring.run_until_idle()] == ["refused"]


# Steps, sleeps and waits.


@pytest.mark.parametrize("colour", ["async", "plain"])
def test_a_job_that_takes_days_takes_no_time(shop: Shop, colour: str) -> None:
    @shop.app.task(name="order" if colour == "async" else "other")
    async def order(ctx: Context) -> list[Any]:
        first = await ctx.astep("first", lambda: len(shop.log))
        await ctx.asleep("3d")
        return [first, await ctx.await_event("approved")]

    @shop.app.task(name="order" if colour == "plain" else "another")
    def order_plain(ctx: Context) -> list[Any]:
        first = ctx.step("first", lambda: len(shop.log))
        ctx.sleep("3d")
        return [first, ctx.wait_event("approved")]

    with Harness(shop.app) as mainspring:
        job = shop.app._registry.get("order").enqueue()
        began = mainspring.clock.now()
        mainspring.run_until_idle(advance=True)
        waited = mainspring.clock.now() - began
        assert mainspring.run_until_idle(advance=True) == [], "nothing comes of waiting for an event"
        shop.app.send_event("approved", "yes", job=job)
        ran = mainspring.run_until_idle()
        answer = job.result(timeout=5)

    assert waited == timedelta(days=3)
    assert [each.verdict for each in ran] == ["succeeded"]
    assert answer == [0, "yes"]


def test_a_plain_handler_may_ask_its_context_for_everything(shop: Shop) -> None:
    @shop.app.task
    def order(ctx: Context) -> None:
        with ctx.once("a") as first:
            shop.log.append(first)
        with ctx.once("a") as first:
            shop.log.append(first)

    with Harness(shop.app) as mainspring:
        order.enqueue()
        mainspring.run_until_idle()

    assert shop.log == [True, False]
