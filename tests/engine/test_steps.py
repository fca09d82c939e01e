"""Steps, sleeps and waits for events inside one job: what one run did, those after it do not do again."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from mainspring import Context, Retry
from mainspring.errors import ClaimLost, EventTimeout, StoreUnavailable, UsageError
from mainspring.model.checkpoint import EVERYBODY, Event
from mainspring.model.job import JobState
from mainspring.model.run import Reason, Verdict
from mainspring.store.codes import AWAITING
from mainspring.telemetry.events import RunEnded
from tests.engine.kit import HOUR, LEASE, Floor, until

DAY = timedelta(days=1)
COLOURS = pytest.mark.parametrize("colour", ["async", "plain"])
RETRY = Retry(attempts=9, base=0)


@pytest.fixture
def declare(floor: Floor) -> Callable[..., None]:
    """Declare a handler of one colour or the other as the task `pay`. It is written once, as a generator
    that yields what it wants done."""

    def make(colour: str, story: Callable[[Context], Any], **options: Any) -> None:
        async def pay(ctx: Context) -> Any:
            return await told_async(ctx, story(ctx))

        def pay_plain(ctx: Context) -> Any:
            return told_plain(ctx, story(ctx))

        handler = pay if colour == "async" else pay_plain
        floor.task(**{"name": "pay", "retry": RETRY, **options})(handler)

    return make


async def told_async(ctx: Context, running: Any) -> Any:
    try:
        verb, args, kwargs = next(running)
        while True:
            try:
                answer = await getattr(ctx, f"a{verb}")(*args, **kwargs)
            except BaseException as error:
                verb, args, kwargs = running.throw(error)
            else:
                verb, args, kwargs = running.send(answer)
    except StopIteration as done:
        return done.value


def told_plain(ctx: Context, running: Any) -> Any:
    try:
        verb, args, kwargs = next(running)
        while True:
            try:
                answer = getattr(ctx, verb)(*args, **kwargs)
            except BaseException as error:
                verb, args, kwargs = running.throw(error)
            else:
                verb, args, kwargs = running.send(answer)
    except StopIteration as done:
        return done.value


def step(*args: Any, **kwargs: Any) -> Any:
    return "step", args, kwargs


def sleep(*args: Any, **kwargs: Any) -> Any:
    return "sleep", args, kwargs


def wait_event(*args: Any, **kwargs: Any) -> Any:
    return "wait_event", args, kwargs


def put(floor: Floor, run: Any, **fields: Any) -> int:
    return int(run(floor.put("pay", max_attempts=9, **fields)))


def verdicts(floor: Floor, run: Any, job_id: int) -> list[Verdict]:
    return [each.verdict for each in run(floor.runs(job_id))]


def send(floor: Floor, run: Any, payload: bytes = b"1", job_id: int = EVERYBODY) -> bool:
    event = Event(name="approved", payload=payload, job_id=job_id)
    return bool(run(floor.store.events.send(event, at=floor.clock.stamp())))


def result(floor: Floor, run: Any, job_id: int) -> bytes | None:
    job = run(floor.job(job_id))
    assert job.state is JobState.SUCCEEDED, job.errors
    return job.result  # type: ignore[no-any-return]


def calls(floor: Floor, name: str) -> int:
    return sum(called == name for called, _, _ in floor.store.calls)


# Steps.


@COLOURS
@pytest.mark.parametrize("step_colour", ["async", "plain"])
def test_a_step_that_is_on_record_is_not_called_again_and_answers_the_same(
    floor: Floor, run: Any, declare: Any, colour: str, step_colour: str
) -> None:
    charged: list[Any] = []
    answers: list[Any] = []

    def charge(order: int, *, cents: int) -> dict[str, Any]:
        charged.append((order, cents))
        return {"paid": [cents, 1.5, None, "ä"], "times": len(charged)}

    async def acharge(order: int, *, cents: int) -> dict[str, Any]:
        return charge(order, cents=cents)

    def story(ctx: Context) -> Any:
        answers.append((yield step("charge", acharge if step_colour == "async" else charge, 7, cents=900)))
        if ctx.attempt < 3:
            raise ValueError("after it")
        return answers[-1]["times"]

    declare(colour, story)
    job_id = put(floor, run)
    for _ in range(3):
        run(floor.work())

    assert charged == [(7, 900)]
    assert answers == [{"paid": [900, 1.5, None, "ä"], "times": 1}] * 3
    assert result(floor, run, job_id) == b"1"
    assert verdicts(floor, run, job_id) == [Verdict.FAILED, Verdict.FAILED, Verdict.SUCCEEDED]


@COLOURS
def test_a_step_that_raises_is_not_on_record_and_may_be_tried_again_in_the_same_run(
    floor: Floor, run: Any, declare: Any, colour: str
) -> None:
    tried: list[int] = []

    def flaky() -> None:
        tried.append(1)
        if len(tried) < 3:
            raise ConnectionError("not now")

    def story(ctx: Context) -> Any:
        try:
            yield step("flaky", flaky)
        except ConnectionError:
            yield step("flaky", flaky)

    declare(colour, story)
    job_id = put(floor, run)
    run(floor.work())
    run(floor.work())

    assert len(tried) == 3
    assert verdicts(floor, run, job_id) == [Verdict.FAILED, Verdict.SUCCEEDED]


@COLOURS
def test_a_name_is_for_one_step_of_a_run(floor: Floor, run: Any, declare: Any, colour: str) -> None:
    def story(ctx: Context) -> Any:
        yield step("charge", int)
        yield step("charge", int)

    declare(colour, story, retry=Retry(attempts=1))
    job_id = put(floor, run)
    for _ in range(2):
        run(floor.work())
        [*_, error] = run(floor.job(job_id)).errors
        assert "name: expected a name of its own for each step" in error.message


def test_once_step_sleep_and_event_may_have_the_same_name(floor: Floor, run: Any) -> None:
    @floor.task(retry=RETRY)
    async def pay(ctx: Context) -> object:
        async with ctx.once("approved") as first:
            assert first is (ctx.attempt == 1)
        if ctx.attempt == 1:
            raise ValueError("again")
        await ctx.astep("approved", int)
        await ctx.asleep(0, name="approved")
        return await ctx.await_event("approved", timeout="1ms", default=None)

    job_id = put(floor, run)
    send(floor, run, b"5")
    run(floor.work())
    run(floor.work())

    assert result(floor, run, job_id) == b"5"


@COLOURS
def test_an_answer_that_is_no_json_or_too_large_is_the_end_of_the_job(
    new_floor: Any, run: Any, declare: Any, floor: Floor, colour: str
) -> None:
    answers: list[Any] = [object(), (1, 2), {1: 2}, float("nan"), "x" * 70_000]
    left = list(answers)

    def story(ctx: Context) -> Any:
        yield step("charge", lambda: left.pop(0))

    declare(colour, story)
    jobs = []
    for _ in answers:
        jobs.append(put(floor, run))
        run(floor.work())

    found = [run(floor.job(job_id)) for job_id in jobs]
    assert {job.state for job in found} == {JobState.DEAD}
    errors = [job.errors[0] for job in found]
    assert [error.message.split(":")[0] for error in errors] == ["step charge"] * 5
    assert "65536 bytes of JSON (results.max_bytes)" in errors[-1].message


@COLOURS
def test_the_record_is_read_once_a_run(floor: Floor, run: Any, declare: Any, colour: str) -> None:
    def story(ctx: Context) -> Any:
        total = 0
        for number in range(5):
            total += yield step(f"s{number}", lambda number=number: number)
        yield sleep(0)
        if ctx.attempt == 1:
            raise ValueError("again")
        return total

    declare(colour, story)
    job_id = put(floor, run)
    run(floor.work())
    first = calls(floor, "effects.steps"), calls(floor, "effects.record_step")
    run(floor.work())

    assert first == (1, 6)
    assert (calls(floor, "effects.steps"), calls(floor, "effects.record_step")) == (2, 6)
    assert result(floor, run, job_id) == b"10"


def test_a_plain_step_does_not_block_the_event_loop(floor: Floor, run: Any) -> None:
    seen: list[Any] = []
    begun, go_on = threading.Event(), threading.Event()

    def slow() -> str:
        begun.set()
        assert go_on.wait(20)
        return threading.current_thread().name

    @floor.task
    async def pay(ctx: Context) -> None:
        seen.append(await ctx.astep("slow", slow))

    async def story() -> None:
        await floor.put("pay")
        await floor.join()
        await floor.claimer.tick()
        await until(begun.is_set)  # it needs the loop to turn
        go_on.set()
        await floor.finish()

    run(story())
    assert seen == ["mainspring-step"]


def test_steps_may_be_under_way_together(floor: Floor, run: Any) -> None:
    together = asyncio.Event()
    begun: list[int] = []

    async def one(number: int) -> int:
        begun.append(number)
        if len(begun) == 3:
            together.set()
        await together.wait()
        return number

    @floor.task
    async def pay(ctx: Context) -> list[int]:
        return list(await asyncio.gather(*(ctx.astep(f"s{number}", one, number) for number in range(3))))

    job_id = put(floor, run)
    run(floor.work())

    assert result(floor, run, job_id) == b"[0,1,2]"
    assert calls(floor, "effects.steps") == 1


@COLOURS
def test_a_step_may_be_a_task_and_is_given_the_context_if_it_wants_one(
    floor: Floor, run: Any, declare: Any, colour: str
) -> None:
    @floor.task
    def double(number: int) -> int:
        return 2 * number

    @floor.task
    async def add(ctx: Context, number: int) -> int:
        return ctx.job_id + number

    def story(ctx: Context) -> Any:
        doubled = yield step("double", double, 4)
        added = yield step("add", add, number=doubled)
        return added - ctx.job_id

    declare(colour, story)
    job_id = put(floor, run)
    run(floor.work())

    assert result(floor, run, job_id) == b"8"


def test_a_task_that_would_not_take_the_arguments_says_so(floor: Floor, run: Any) -> None:
    @floor.task
    async def add(ctx: Context, number: int) -> int:
        return number

    @floor.task
    async def pay(ctx: Context) -> None:
        await ctx.astep("add", add, ctx, 7)  # the context is added, not passed

    job_id = put(floor, run)
    run(floor.work())

    assert "add: expected at most 1 positional arguments" in run(floor.job(job_id)).errors[0].message


def test_what_answers_something_to_await_is_awaited(floor: Floor, run: Any) -> None:
    async def answer() -> int:
        return 5

    @floor.task
    async def pay(ctx: Context) -> int:
        return await ctx.astep("a", lambda: answer()) + 1  # type: ignore[no-any-return]

    @floor.task
    def plain(ctx: Context) -> int:
        return ctx.step("a", lambda: answer()) + 1  # type: ignore[no-any-return]

    first, second = put(floor, run), int(run(floor.put("plain")))
    run(floor.work())

    assert (result(floor, run, first), result(floor, run, second)) == (b"6", b"6")


# Fencing and a store that is away.


@COLOURS
def test_a_worker_that_lost_the_job_records_nothing(
    floor: Floor, new_floor: Any, run: Any, declare: Any, colour: str
) -> None:
    at_it, go_on = threading.Event(), threading.Event()
    told: list[type[BaseException]] = []

    def charge() -> str:
        at_it.set()
        assert go_on.wait(20)
        return "stale"

    @floor.task(name="pay" if colour == "async" else "a")
    async def pay(ctx: Context) -> None:
        try:
            await ctx.astep("charge", charge)
        except BaseException as error:
            told.append(type(error))
            raise

    @floor.task(name="pay" if colour == "plain" else "b")
    def pay_plain(ctx: Context) -> None:
        try:
            ctx.step("charge", charge)
        except BaseException as error:
            told.append(type(error))
            raise

    other = new_floor()

    @other.task
    async def nothing(ctx: Context) -> None: ...

    @other.task(name="pay")
    async def pay_again(ctx: Context) -> str:
        return await ctx.astep("charge", lambda: "fresh")

    async def story() -> int:
        job_id = await floor.put("pay", max_attempts=9)
        await floor.join()
        await floor.claimer.tick()
        await until(at_it.is_set)
        floor.clock.advance(LEASE)
        await floor.store.processes.reap(limit=10, at=floor.clock.stamp())
        await floor.store.processes.reap(limit=10, at=floor.clock.stamp())
        other.worker.children._make = None  # type: ignore[assignment]
        await other.work()
        go_on.set()
        await floor.finish()
        return job_id

    job_id = run(story())

    assert told == [ClaimLost]
    assert result(floor, run, job_id) == b'"fresh"'
    assert verdicts(floor, run, job_id) == [Verdict.CRASHED, Verdict.SUCCEEDED]


def test_a_step_is_recorded_when_the_store_is_back(floor: Floor, run: Any) -> None:
    charged: list[int] = []

    @floor.task(retry=Retry(attempts=1))
    async def pay(ctx: Context) -> int:
        return await ctx.astep("charge", lambda: charged.append(1) or len(charged))

    floor.store.before("effects.record_step", times=2)
    job_id = put(floor, run)
    run(floor.work())

    assert charged == [1]
    assert result(floor, run, job_id) == b"1"


def test_a_record_whose_answer_was_lost_is_looked_up(floor: Floor, run: Any) -> None:
    charged: list[int] = []

    @floor.task(retry=Retry(attempts=1))
    async def pay(ctx: Context) -> int:
        return await ctx.astep("charge", lambda: charged.append(1) or len(charged))

    floor.store.after("effects.record_step")
    job_id = put(floor, run)
    run(floor.work())

    assert charged == [1]
    assert result(floor, run, job_id) == b"1"


def test_a_store_that_stays_away_fails_the_run(floor: Floor, run: Any) -> None:
    async def away(call: Any) -> Any:
        floor.clock.advance(HOUR)
        raise StoreUnavailable("gone for an hour")

    @floor.task
    async def pay(ctx: Context) -> None:
        await ctx.astep("charge", int)

    floor.store._faults["effects.record_step"] = [away]
    job_id = put(floor, run)
    run(floor.work())

    assert [error.message for error in run(floor.job(job_id)).errors] == ["gone for an hour"]


# Sleeps.


@COLOURS
def test_a_sleep_ends_the_run_and_the_next_goes_on_after_it(
    floor: Floor, run: Any, declare: Any, colour: str
) -> None:
    done: list[str] = []

    def story(ctx: Context) -> Any:
        yield step("before", lambda: done.append("before"))
        try:
            yield sleep("3d")
        finally:
            done.append("finally")
        yield step("after", lambda: done.append("after"))

    declare(colour, story, retry=Retry(attempts=1))
    began, job_id = floor.clock.now(), put(floor, run)
    run(floor.work())
    asleep, running = run(floor.job(job_id)), floor.active_runs.running
    floor.clock.advance(3 * DAY - HOUR)
    run(floor.work())
    still = list(done)
    floor.clock.advance(HOUR)
    run(floor.heart.tick())
    run(floor.work())

    assert (asleep.state, asleep.run_at, asleep.failures) == (JobState.DELAYED, began + 3 * DAY, 0)
    assert running == 0
    assert still == ["before", "finally"]
    assert done == ["before", "finally", "finally", "after"]
    assert verdicts(floor, run, job_id) == [Verdict.SNOOZED, Verdict.SUCCEEDED]
    assert run(floor.runs(job_id))[-1].attempt == 1


@COLOURS
def test_a_job_that_is_woken_too_early_sleeps_for_the_rest(
    floor: Floor, run: Any, declare: Any, colour: str
) -> None:
    def story(ctx: Context) -> Any:
        yield sleep("3d" if ctx.fence == 1 else "99d")  # what is on record counts

    declare(colour, story)
    began, job_id = floor.clock.now(), put(floor, run)
    run(floor.work())
    floor.clock.advance(DAY)
    run(floor.store.jobs.run_now([job_id], at=floor.clock.stamp()))
    run(floor.heart.tick())
    run(floor.work())
    again = run(floor.job(job_id)).run_at
    floor.clock.advance(2 * DAY)
    run(floor.heart.tick())
    run(floor.work())

    assert again == began + 3 * DAY
    assert verdicts(floor, run, job_id) == [Verdict.SNOOZED, Verdict.SNOOZED, Verdict.SUCCEEDED]


@COLOURS
def test_sleeps_are_told_apart_by_their_order_or_their_names(
    floor: Floor, run: Any, declare: Any, colour: str
) -> None:
    def story(ctx: Context) -> Any:
        yield sleep("1h")
        yield sleep("2h")
        yield sleep("3h", name="long")

    declare(colour, story)
    began, job_id = floor.clock.now(), put(floor, run)
    due = []
    for hours in (1, 2, 3):
        run(floor.work())
        due.append(run(floor.job(job_id)).run_at - began)
        floor.clock.advance(hours * HOUR)
        run(floor.heart.tick())
    run(floor.work())

    assert due == [HOUR, 3 * HOUR, 6 * HOUR]
    names = {each.name for each in run(floor.store.effects.steps(job_id, at=floor.clock.stamp())).checkpoints}
    assert names == {"sleep sleep", "sleep sleep-2", "sleep long"}
    assert result(floor, run, job_id) is None


def test_a_sleeping_job_ends_at_its_deadline(floor: Floor, run: Any) -> None:
    @floor.task
    async def pay(ctx: Context) -> None:
        await ctx.asleep("3d")

    job_id = put(floor, run, expires=HOUR)
    run(floor.work())
    due = run(floor.job(job_id)).run_at - floor.clock.now()
    floor.clock.advance(HOUR)

    assert due == HOUR
    assert run(floor.store.jobs.expire(limit=10, at=floor.clock.stamp())) == [job_id]


# Events.


@COLOURS
@pytest.mark.parametrize("own", [True, False])
def test_a_wait_ends_the_run_and_the_next_is_given_the_payload(
    floor: Floor, run: Any, declare: Any, colour: str, own: bool
) -> None:
    def story(ctx: Context) -> Any:
        answer = yield wait_event("approved")
        if ctx.attempt == 1:
            raise ValueError("after it")
        return answer

    declare(colour, story)
    job_id = put(floor, run)
    run(floor.work())
    waiting = run(floor.job(job_id))
    floor.clock.advance(HOUR)
    run(floor.heart.tick())
    run(floor.work())
    sent = send(floor, run, b'{"by":"ann"}', job_id if own else EVERYBODY)
    run(floor.work())
    send(floor, run, b'"too late"', EVERYBODY if own else job_id)
    run(floor.work())

    assert (waiting.state, waiting.run_at) == (JobState.DELAYED, AWAITING)
    assert sent
    assert verdicts(floor, run, job_id) == [Verdict.SNOOZED, Verdict.FAILED, Verdict.SUCCEEDED]
    assert result(floor, run, job_id) == b'{"by":"ann"}'
    assert floor.heard.of(RunEnded)[0].awaits == "approved"


@COLOURS
def test_an_event_that_came_before_anybody_waited_is_found(
    floor: Floor, run: Any, declare: Any, colour: str
) -> None:
    def story(ctx: Context) -> Any:
        return (yield wait_event("approved", timeout="7d")), (yield step("x", lambda: None))

    def answer(ctx: Context) -> Any:
        both = yield from story(ctx)
        return list(both)

    declare(colour, answer)
    job_id = put(floor, run)
    send(floor, run, b"null", job_id)
    run(floor.work())

    assert result(floor, run, job_id) == b"[null,null]"
    assert verdicts(floor, run, job_id) == [Verdict.SUCCEEDED]


@COLOURS
@pytest.mark.parametrize("default", [True, False])
def test_a_timeout_counts_from_the_first_call_and_is_for_good(
    floor: Floor, run: Any, declare: Any, colour: str, default: bool
) -> None:
    def story(ctx: Context) -> Any:
        given = {"default": "nobody"} if default else {}
        answer = yield wait_event("approved", timeout="7d", **given)
        if ctx.attempt == 1:
            raise ValueError("again")
        return answer

    declare(colour, story)
    began, job_id = floor.clock.now(), put(floor, run)
    run(floor.work())
    due = run(floor.job(job_id)).run_at
    floor.clock.advance(6 * DAY)
    run(floor.store.jobs.run_now([job_id], at=floor.clock.stamp()))
    run(floor.heart.tick())
    run(floor.work())
    again = run(floor.job(job_id)).run_at
    floor.clock.advance(DAY)
    run(floor.heart.tick())
    run(floor.work())
    send(floor, run)
    run(floor.work())

    assert due == again == began + 7 * DAY
    if default:
        assert result(floor, run, job_id) == b'"nobody"'
    else:
        [dead] = run(floor.dead())
        assert (dead.reason, dead.errors[-1].type) == (Reason.PERMANENT, "mainspring.errors.EventTimeout")
        assert "event 'approved' did not come in time" in dead.errors[-1].message


def test_an_event_that_came_in_time_counts_though_nobody_looked(floor: Floor, run: Any) -> None:
    @floor.task
    async def pay(ctx: Context) -> object:
        return await ctx.await_event("approved", timeout="1h")

    job_id = put(floor, run)
    run(floor.work())
    send(floor, run)
    floor.clock.advance(9 * HOUR)
    run(floor.heart.tick())
    run(floor.work())

    assert result(floor, run, job_id) == b"1"


def test_a_timeout_is_a_timeout_error_and_one_of_ours() -> None:
    error = EventTimeout("approved", 7)

    assert isinstance(error, TimeoutError)
    assert (error.name, error.job_id) == ("approved", 7)


@COLOURS
def test_an_event_is_waited_for_once_a_run(floor: Floor, run: Any, declare: Any, colour: str) -> None:
    def story(ctx: Context) -> Any:
        yield wait_event("approved")
        yield wait_event("approved")

    declare(colour, story, retry=Retry(attempts=1))
    job_id = put(floor, run)
    send(floor, run)
    run(floor.work())

    assert "a name of its own for each event" in run(floor.job(job_id)).errors[-1].message


# What does not go together.


def test_a_handlers_except_exception_lets_it_pass(floor: Floor, run: Any) -> None:
    @floor.task
    async def pay(ctx: Context) -> str:
        try:
            await ctx.asleep("1h")
        except Exception:
            return "eaten"
        return "slept"

    job_id = put(floor, run)
    run(floor.work())
    floor.clock.advance(HOUR)
    run(floor.heart.tick())
    run(floor.work())

    assert result(floor, run, job_id) == b'"slept"'


@COLOURS
def test_a_handler_that_swallows_it_gets_no_further_and_fails(floor: Floor, run: Any, colour: str) -> None:
    done: list[str] = []

    @floor.task(name="pay" if colour == "async" else "a")
    async def pay(ctx: Context) -> None:
        for call in (lambda: ctx.asleep("1h"), lambda: ctx.astep("x", done.append, "x")):
            try:
                await call()
            except BaseException as error:
                done.append(type(error).__name__)

    @floor.task(name="pay" if colour == "plain" else "b")
    def pay_plain(ctx: Context) -> None:
        for call in (lambda: ctx.sleep("1h"), lambda: ctx.step("x", done.append, "x")):
            try:
                call()
            except BaseException as error:
                done.append(type(error).__name__)

    job_id = put(floor, run)
    run(floor.work())

    assert done == ["Suspended", "Suspended"]
    [error] = run(floor.job(job_id)).errors
    assert "the handler caught what ctx.sleep() or ctx.wait_event() raises" in error.message


def test_a_task_group_passes_it_on(floor: Floor, run: Any) -> None:
    @floor.task
    async def pay(ctx: Context) -> str:
        async with asyncio.TaskGroup() as group:
            group.create_task(ctx.asleep("1h", name="a"))
            group.create_task(ctx.asleep("2h", name="b"))
        return "slept"

    job_id = put(floor, run)
    for _ in range(3):
        run(floor.work())
        floor.clock.advance(HOUR)
        run(floor.heart.tick())

    assert result(floor, run, job_id) == b'"slept"'


def test_a_run_does_not_end_while_a_step_is_under_way(floor: Floor, run: Any) -> None:
    told: list[str] = []

    @floor.task
    async def pay(ctx: Context) -> None:
        async def inner() -> None:
            for call in (ctx.asleep("1h"), ctx.await_event("approved")):
                with pytest.raises(UsageError) as error:
                    await call
                told.append(str(error.value))

        await ctx.astep("outer", inner)

    job_id = put(floor, run)
    run(floor.work())

    assert result(floor, run, job_id) is None
    assert [each.split(":")[0] for each in told] == ["ctx.sleep()", "ctx.wait_event()"]
    assert all("not while step outer is under way" in each for each in told)


def test_inside_a_transaction_they_are_refused(floor: Floor, run: Any) -> None:
    told: list[str] = []

    @floor.task
    async def pay(ctx: Context) -> None:
        async with ctx.transaction():
            for call in (ctx.astep("a", int), ctx.asleep("1h"), ctx.await_event("approved")):
                with pytest.raises(UsageError, match=r"not inside ctx\.transaction") as error:
                    await call
                told.append(str(error.value).split(":")[0])
        with pytest.raises(UsageError, match="settled its job already"):
            await ctx.astep("a", int)

    job_id = put(floor, run)
    run(floor.work())

    assert told == ["ctx.step()", "ctx.sleep()", "ctx.wait_event()"]
    assert run(floor.job(job_id)).state is JobState.SUCCEEDED


def test_blocking_calls_in_a_coroutine_are_refused(floor: Floor, run: Any) -> None:
    @floor.task
    async def pay(ctx: Context) -> None:
        with pytest.raises(UsageError, match=r"use `await ctx\.astep"):
            ctx.step("a", int)
        with pytest.raises(UsageError, match=r"use `await ctx\.asleep"):
            ctx.sleep("1h")
        with pytest.raises(UsageError, match=r"use `await ctx\.await_event"):
            ctx.wait_event("approved")

    job_id = put(floor, run)
    run(floor.work())

    assert result(floor, run, job_id) is None


# Every place where a run may end.


@COLOURS
@pytest.mark.parametrize("lost", ["before", "after"])
@pytest.mark.parametrize("point", range(5))
def test_wherever_a_run_is_lost_those_after_it_go_on_from_the_last_record(
    floor: Floor, run: Any, declare: Any, colour: str, lost: str, point: int
) -> None:
    effects: list[str] = []

    def effect(name: str) -> str:
        effects.append(name)
        return name

    def story(ctx: Context) -> Any:
        got = [(yield step("a", effect, "a")), (yield step("b", effect, "b"))]
        yield sleep("1h")
        got.append((yield step("c", effect, "c")))
        got.append((yield wait_event("approved")))
        return got

    async def nothing() -> None: ...

    declare(colour, story)
    for _ in range(point):
        floor.store.during("effects.record_step", nothing)
    (floor.store.before if lost == "before" else floor.store.after)(
        "effects.record_step", RuntimeError("lost")
    )
    job_id = put(floor, run)
    for _ in range(4):
        run(floor.work())
        floor.clock.advance(HOUR)
        run(floor.heart.tick())
        send(floor, run, b"1", job_id)
    run(floor.work())

    assert result(floor, run, job_id) == b'["a","b","c",1]'
    # Only what was done and not recorded is done again.
    again = {0: ["a"], 1: ["b"], 3: ["c"]}.get(point, []) if lost == "before" else []
    assert sorted(effects) == sorted(["a", "b", "c", *again])
    assert verdicts(floor, run, job_id).count(Verdict.FAILED) == 1
