"""Handlers in child processes: whatever becomes of them, the worker lives and the record says what it was."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import signal
from collections.abc import Callable, Coroutine
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from mainspring.app import Mainspring
from mainspring.errors import InvalidArgument
from mainspring.model.job import Claim, JobState
from mainspring.model.run import Verdict
from mainspring.process.serve import aserve
from mainspring.tasks.retry import Retry
from mainspring.tasks.task import Isolation
from mainspring.worker.children import child, process_limits
from mainspring.worker.children.pool import ChildSlots
from tests.engine import isolated
from tests.engine.kit import SECOND, Floor, until

TWICE = Retry(attempts=2, base=0)
PATIENCE = 40.0
SOON = Isolation(grace="100ms")


def gone(pid: int) -> bool:
    """Whether no process of that number runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.fixture
def story(run: Any, floor: Floor) -> Callable[[Coroutine[Any, Any, None]], None]:
    """Runs a story and ends what children it left."""

    async def told(story: Coroutine[Any, Any, None]) -> None:
        try:
            await story
        finally:
            await floor.worker.children.close()

    return lambda story: run(told(story))


async def done(floor: Floor) -> None:
    """Claim, let every run end, write how."""
    if floor.worker.membership.id is None:
        await floor.join()
    await floor.claimer.tick()
    await until(lambda: not floor.active_runs.running, PATIENCE)
    await floor.finish()


async def result(floor: Floor, task: str, payload: bytes = b"{}") -> Any:
    job_id = await floor.put(task, payload=payload)
    await done(floor)
    job = await floor.job(job_id)
    assert job.state is JobState.SUCCEEDED, job.errors
    return None if job.result is None else json.loads(job.result)


@pytest.mark.parametrize("function", [isolated.look, isolated.alook])
def test_a_handler_in_a_child_has_its_context_and_its_result_comes_back(
    floor: Floor, story: Any, function: Any
) -> None:
    floor.task(name="look", isolate=True)(function)

    async def tell() -> None:
        job_id = await floor.put("look", payload=b'{"args":["x"]}')
        await done(floor)

        job = await floor.job(job_id)
        assert job.state is JobState.SUCCEEDED
        seen = json.loads(job.result or b"")
        assert seen["pid"] != os.getpid()
        assert (seen["word"], seen["job"], seen["task"], seen["attempt"]) == ("x", job_id, "look", 1)
        assert (seen["fence"], seen["cancelled"], len(seen["token"])) == (1, False, 64)

    story(tell())


def test_a_child_is_used_again_after_a_clean_run_and_replaced_after_its_share(
    floor: Floor, story: Any
) -> None:
    floor.task(name="look", isolate=Isolation(runs=2))(isolated.look)

    async def tell() -> None:
        seen = [await result(floor, "look", b'{"args":["x"]}') for _ in range(3)]

        assert [each["calls"] for each in seen] == [1, 2, 1]
        assert seen[0]["pid"] == seen[1]["pid"] != seen[2]["pid"]
        assert gone(seen[0]["pid"])

    story(tell())


CRASHES = {
    "segfault": (isolated.segfault, "its process was killed by SIGSEGV"),
    "leave": (isolated.leave, "its process ended with exit code 3"),
    "killed": (
        isolated.killed,
        "its process was killed by SIGKILL; the kernel does that when memory runs out",
    ),
    "aborts": (isolated.aborts, "its process was killed by SIGABRT"),
    "closes_everything": (isolated.closes_everything, "its process ended with exit code 1"),
    "babbles": (isolated.babbles, "its process was killed by SIGKILL"),
}


@pytest.mark.parametrize("name", CRASHES)
def test_a_child_that_dies_costs_one_run_and_the_next_job_finds_a_new_one(
    floor: Floor, story: Any, name: str
) -> None:
    function, message = CRASHES[name]
    floor.task(name="nasty", isolate=True, retry=TWICE)(function)
    floor.task(name="look", isolate=True)(isolated.look)

    async def tell() -> None:
        nasty = await floor.put("nasty", max_attempts=2)
        await done(floor)
        await result(floor, "look", b'{"args":["still here"]}')

        job = await floor.job(nasty)
        assert (job.errors[0].type, job.worker_id) == ("ChildCrashed", None)
        assert job.errors[0].message.startswith(message)
        assert floor.active_runs.running == 0

    story(tell())


FAILURES = {
    "exits": (isolated.exits, "SystemExit", "4"),
    "raises": (isolated.raises, "ValueError", "boom"),
    "too_large": (isolated.too_large, "mainspring.errors.InvalidArgument", "at most 65536 bytes"),
    "unserialisable": (isolated.unserialisable, "mainspring.errors.InvalidArgument", "a JSON value"),
    "greedy": (isolated.greedy, "MemoryError", ""),
}


@pytest.mark.parametrize("name", FAILURES)
def test_what_a_handler_raises_or_returns_in_a_child_is_a_failed_attempt(
    floor: Floor, story: Any, name: str
) -> None:
    function, kind, words = FAILURES[name]
    floor.task(name="nasty", isolate=Isolation(memory="250MB"), retry=TWICE)(function)
    floor.task(name="frugal", isolate=Isolation(memory="250MB"))(isolated.frugal)

    async def tell() -> None:
        nasty = await floor.put("nasty", max_attempts=2)
        await done(floor)

        job = await floor.job(nasty)
        assert (job.failures, job.errors[0].type) == (1, kind)
        assert words in job.errors[0].message
        verdict = Verdict.DEAD if kind.endswith("InvalidArgument") else Verdict.FAILED
        assert [each.verdict for each in await floor.runs(nasty)] == [verdict]
        assert await result(floor, "frugal") == 10**6

    story(tell())


def test_the_traceback_of_a_child_begins_in_the_handler(floor: Floor, story: Any) -> None:
    floor.task(name="raises", isolate=True, retry=TWICE)(isolated.raises)

    async def tell() -> None:
        job_id = await floor.put("raises", max_attempts=2)
        await done(floor)

        [error] = (await floor.job(job_id)).errors
        assert "in raises" in error.traceback
        assert "mainspring/worker" not in error.traceback

    story(tell())


@pytest.mark.parametrize("function", [isolated.deaf, isolated.adeaf])
def test_a_timeout_holds_for_a_child_that_ignores_cancellation_and_sigterm(
    floor: Floor, story: Any, function: Any
) -> None:
    floor.task(name="deaf", isolate=SOON, timeout="300ms", retry=TWICE)(function)

    async def tell() -> None:
        job_id = await floor.put("deaf", max_attempts=2)
        await done(floor)

        job = await floor.job(job_id)
        assert (job.failures, job.errors[0].type) == (1, "TimeoutError")
        assert job.errors[0].message == "the handler did not end within its timeout of 0.3 s"

    story(tell())


def test_a_plain_function_in_a_child_gets_to_clean_up_when_its_time_is_over(
    floor: Floor, story: Any, tmp_path: Path
) -> None:
    floor.task(name="tidy", isolate=SOON, timeout="500ms", retry=TWICE)(isolated.tidy)

    async def tell() -> None:
        await floor.put("tidy", payload=json.dumps({"args": [str(tmp_path)]}).encode(), max_attempts=2)
        await done(floor)

        assert (tmp_path / "cleaned").exists()

    story(tell())


@pytest.mark.parametrize(
    ("function", "verdict"),
    [
        (isolated.cooperative, Verdict.SUCCEEDED),
        (isolated.acooperative, Verdict.RELEASED),
        (isolated.tidy, Verdict.RELEASED),
    ],
)
def test_a_release_reaches_the_child(
    floor: Floor, story: Any, tmp_path: Path, function: Any, verdict: Verdict
) -> None:
    floor.task(name="held", isolate=SOON)(function)

    async def tell() -> None:
        job_id = await floor.put("held", payload=json.dumps({"args": [str(tmp_path)]}).encode())
        await floor.join()
        await floor.claimer.tick()
        await until((tmp_path / "begun").exists, PATIENCE)
        floor.active_runs.release_all()
        await until(lambda: not floor.active_runs.running, PATIENCE)
        await floor.finish()

        assert [each.verdict for each in await floor.runs(job_id)] == [verdict]
        assert (await floor.job(job_id)).failures == 0

    story(tell())


def test_a_run_that_is_dropped_while_its_child_starts_leaves_no_process(floor: Floor, story: Any) -> None:
    floor.task(name="look", isolate=True)(isolated.look)

    async def tell() -> None:
        job_id = await floor.put("look", payload=b'{"args":["x"]}')
        await floor.join()
        await floor.claimer.tick()
        await until(lambda: floor.heard.events)
        floor.active_runs.release_all()
        floor.active_runs.drop_all()
        await until(lambda: not floor.active_runs.running, PATIENCE)

        assert await floor.runs(job_id) == []

    story(tell())


@pytest.mark.parametrize("stay", [False, True])
def test_processes_that_a_run_leaves_behind_end_with_it(
    floor: Floor, story: Any, tmp_path: Path, stay: bool
) -> None:
    floor.task(name="daemons", isolate=SOON, timeout="5s", retry=TWICE)(isolated.daemons)

    async def tell() -> None:
        payload = json.dumps({"args": [str(tmp_path), stay]}).encode()
        job_id = await floor.put("daemons", payload=payload, max_attempts=2)
        await done(floor)

        assert (await floor.job(job_id)).failures == int(stay)
        for name in ("daemon", "orphan"):
            assert gone(int((tmp_path / name).read_text())), name

    story(tell())


def test_a_whole_tree_of_deaf_processes_ends_at_the_timeout(floor: Floor, story: Any, tmp_path: Path) -> None:
    floor.task(name="tree", isolate=SOON, timeout="3s", retry=TWICE)(isolated.tree)

    async def tell() -> None:
        payload = json.dumps({"args": [str(tmp_path), 5]}).encode()
        await floor.put("tree", payload=payload, max_attempts=2)
        await done(floor)

        pids = [int(name) for name in os.listdir(tmp_path)]
        assert len(pids) == 2**5
        assert all(map(gone, pids))

    story(tell())


def test_a_fork_bomb_stops_at_its_cap_and_the_worker_goes_on(floor: Floor, story: Any) -> None:
    if os.getuid() == 0 and not _can_cap():
        pytest.skip("no pids cgroup can be made here, and root has no other limit")
    floor.task(name="bomb", isolate=Isolation(processes=30), timeout="30s")(isolated.bomb)
    floor.task(name="look", isolate=True)(isolated.look)

    async def tell() -> None:
        assert 0 < await result(floor, "bomb") <= 30
        assert (await result(floor, "look", b'{"args":["x"]}'))["calls"] == 1

    story(tell())


def _can_cap() -> bool:
    folder = process_limits.group_of(os.getpid())
    try:
        os.mkdir(f"{folder}-probe")
    except OSError:
        return False
    try:
        return Path(f"{folder}-probe/pids.max").exists()
    finally:
        os.rmdir(f"{folder}-probe")


@pytest.mark.parametrize("function", [isolated.asks, isolated.aasks])
def test_what_a_context_asks_of_the_worker_is_answered_there(floor: Floor, story: Any, function: Any) -> None:
    heard: list[tuple[int, bytes]] = []

    async def echo(claim: Claim, body: bytes) -> bytes:
        heard.append((claim.job_id, body))
        return body[::-1]

    floor.answers = {"echo": echo}
    floor.task(name="asks", isolate=True)(function)

    async def tell() -> None:
        job_id = await floor.put("asks", payload=b'{"args":["abc"]}')
        await done(floor)

        assert (await floor.job(job_id)).result == b'"cba"'
        assert heard == [(job_id, b"abc")]

    story(tell())


def test_what_nobody_can_answer_is_an_error_in_the_handler(floor: Floor, story: Any) -> None:
    floor.task(name="asks", isolate=True, retry=TWICE)(isolated.asks_in_vain)

    async def tell() -> None:
        job_id = await floor.put("asks", max_attempts=2)
        await done(floor)

        [error] = (await floor.job(job_id)).errors
        assert error.type == "mainspring.worker.children.child_channel.Refused"
        assert "nobody knows this" in error.message

    story(tell())


def test_a_suspect_runs_alone_in_a_child_and_the_next_job_of_its_task_does_not(
    floor: Floor, story: Any
) -> None:
    floor.task(name="look")(isolated.look)

    async def tell() -> None:
        job_id = await _lose_the_worker(floor, "look", b'{"args":["x"]}')
        await done(floor)
        again = await result(floor, "look", b'{"args":["x"]}')

        first = json.loads((await floor.job(job_id)).result or b"")
        assert [each.verdict for each in await floor.runs(job_id)] == [Verdict.CRASHED, Verdict.SUCCEEDED]
        assert first["pid"] != os.getpid()
        assert again["pid"] == os.getpid()

    story(tell())


def test_a_suspect_that_no_child_could_find_runs_in_the_worker(floor: Floor, story: Any) -> None:
    @floor.task
    async def nested() -> int:
        return os.getpid()

    async def tell() -> None:
        job_id = await _lose_the_worker(floor, "nested", b"{}")
        await done(floor)

        assert (await floor.job(job_id)).result == str(os.getpid()).encode()

    story(tell())


@pytest.mark.parametrize("answer", ["refused", "unknown"])
def test_a_suspect_whose_begin_is_not_on_record_does_not_begin(
    floor: Floor, story: Any, tmp_path: Path, answer: str
) -> None:
    floor.task(name="held")(isolated.cooperative)

    async def tell() -> None:
        job_id = await _lose_the_worker(floor, "held", json.dumps({"args": [str(tmp_path)]}).encode())
        if answer == "unknown":
            floor.store.before("queue.begin", times=1)
        else:
            reaped = floor.store.processes.reap

            async def lose() -> None:
                floor.clock.advance(20 * SECOND)
                await reaped(limit=10, at=floor.clock.stamp())

            floor.store.during("queue.claim", lose)
        await done(floor)

        assert not (tmp_path / "begun").exists()
        job = await floor.job(job_id)
        assert (job.state, job.crashes) == (JobState.READY, 0)

    story(tell())


@pytest.mark.parametrize("children", [1, 3])
def test_suspects_are_claimed_only_for_free_children(
    new_floor: Callable[..., Floor], run: Any, tmp_path: Path, children: int
) -> None:
    floor = new_floor(children=children)
    floor.task(name="held", isolate=SOON)(isolated.cooperative)
    payload = json.dumps({"args": [str(tmp_path)]}).encode()

    async def tell() -> None:
        for _ in range(5):
            await floor.put("held", payload=payload)
        await _lose_all(floor, "held")
        for _ in range(3):
            await floor.claimer.tick()
        assert floor.active_runs.running == children
        assert len(await floor.store.queue.held(floor.id, at=floor.clock.stamp())) == children
        floor.active_runs.release_all()
        await until(lambda: not floor.active_runs.running, PATIENCE)
        await floor.finish()
        await floor.worker.children.close()

    run(tell())


def test_a_suspect_gets_the_next_free_child_though_other_jobs_wait_for_one(
    new_floor: Callable[..., Floor], run: Any
) -> None:
    floor = new_floor(children=1)
    floor.task(name="look")(isolated.look)
    order: list[str] = []

    async def other(slots: ChildSlots) -> None:
        await slots.take(orphan=False)
        order.append("other")
        slots.leave()

    async def tell() -> None:
        orphan = await _lose_the_worker(floor, "look", b'{"args":["x"]}')
        slots = floor.worker.children.pool.slots
        await slots.take(orphan=False)
        waiting = asyncio.create_task(other(slots))
        await floor.claimer.tick()
        assert floor.active_runs.running == 0, "there is no child for it"
        called: list[bool] = []
        floor.worker.signals.child_free.connect(lambda: called.append(True))
        slots.leave()
        assert called == [True]
        await floor.claimer.tick()
        assert floor.active_runs.running == 1
        await until(lambda: not floor.active_runs.running, PATIENCE)
        await waiting
        await floor.finish()

        assert (await floor.job(orphan)).state is JobState.SUCCEEDED
        assert slots.free == 1
        await floor.worker.children.close()

    run(tell())


def test_a_child_that_was_kept_goes_to_who_waits_when_there_is_no_suspect(
    new_floor: Callable[..., Floor], run: Any
) -> None:
    floor = new_floor(children=1)
    floor.task(name="look")(isolated.look)

    async def tell() -> None:
        await floor.join()
        slots = floor.worker.children.pool.slots
        await slots.take(orphan=False)
        waiting = asyncio.create_task(slots.take(orphan=False))
        await floor.claimer.tick()
        slots.leave()
        await asyncio.sleep(0)
        assert not waiting.done()
        await floor.claimer.tick()
        await asyncio.wait_for(waiting, PATIENCE)

    run(tell())


def test_a_seat_is_not_lost_with_who_is_cancelled_on_the_way_to_it(run: Any) -> None:
    async def tell() -> None:
        slots = ChildSlots(1)
        await slots.take(orphan=False)
        first, second = (asyncio.create_task(slots.take(orphan=False)) for _ in range(2))
        await asyncio.sleep(0)
        slots.leave()  # it is the first one's
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await second
        third = asyncio.create_task(slots.take(orphan=True))
        await asyncio.sleep(0)
        third.cancel()
        await asyncio.gather(third, return_exceptions=True)
        slots.leave()

        assert slots.free == 1

    run(tell())


async def _lose_all(floor: Floor, task: str) -> None:
    """Every job there is was in hand when a worker died."""
    await floor.join()
    await floor.store.queue.claim(
        floor.id, queues=["default"], tasks=[task], limit=100, at=floor.clock.stamp()
    )
    floor.clock.advance(20 * SECOND)
    await floor.store.processes.reap(limit=100, at=floor.clock.stamp())
    await floor.heart.tick()  # a new lease


async def _lose_the_worker(floor: Floor, task: str, payload: bytes) -> int:
    """A job whose first worker has died with it in hand."""
    job_id = await floor.put(task, payload=payload)
    await _lose_all(floor, task)
    assert [each.verdict for each in await floor.runs(job_id)] == [Verdict.CRASHED]
    return job_id


def test_a_child_that_cannot_start_fails_the_attempt_and_says_why(
    floor: Floor, story: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr("tests.engine.kit.CHILD", ("/does/not/exist",))
    floor.task(name="look", isolate=True, retry=TWICE)(isolated.look)

    async def tell() -> None:
        job_id = await floor.put("look", payload=b'{"args":["x"]}', max_attempts=2)
        await done(floor)

        [error] = (await floor.job(job_id)).errors
        assert error.type == "FileNotFoundError"

    story(tell())


def test_a_worker_without_descriptors_fails_the_attempt_and_says_why(
    floor: Floor, story: Any, monkeypatch: Any
) -> None:
    def none_left() -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    floor.task(name="look", isolate=True, retry=TWICE)(isolated.look)

    async def tell() -> None:
        job_id = await floor.put("look", payload=b'{"args":["x"]}', max_attempts=2)
        await floor.join()
        monkeypatch.setattr(child.socket, "socketpair", none_left)
        await done(floor)

        [error] = (await floor.job(job_id)).errors
        assert (error.type, floor.active_runs.running) == ("OSError", 0)
        assert "Too many open files" in error.message

    story(tell())


def test_an_app_that_takes_too_long_to_load_fails_the_attempt(
    floor: Floor, story: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr(child, "START_WITHIN", timedelta(milliseconds=1))
    floor.task(name="look", isolate=True, retry=TWICE)(isolated.look)

    async def tell() -> None:
        job_id = await floor.put("look", payload=b'{"args":["x"]}', max_attempts=2)
        await done(floor)

        [error] = (await floor.job(job_id)).errors
        assert (error.type, error.message) == ("ChildNotReady", "the app was not loaded within 0.001 s")

    story(tell())


def test_a_worker_in_code_refuses_at_its_start_what_no_child_could_find(run: Any) -> None:
    app = Mainspring("sqlite://:memory:")

    @app.task(isolate=True)
    def nested() -> None: ...

    with pytest.raises(InvalidArgument, match=r"^task\.isolate: .* got 'nested'$"):
        run(aserve(app, scheduler=False, burst=True))
    assert app._in_memory is None, "nothing was opened for it"


def test_a_child_killed_while_it_is_idle_is_not_used(floor: Floor, story: Any) -> None:
    floor.task(name="look", isolate=True)(isolated.look)

    async def tell() -> None:
        first = await result(floor, "look", b'{"args":["x"]}')
        os.kill(first["pid"], signal.SIGKILL)
        pool: Any = floor.worker.children._made
        await until(lambda: all(each.gone.is_set() for each in pool._idle), PATIENCE)
        second = await result(floor, "look", b'{"args":["x"]}')

        assert second["calls"] == 1

    story(tell())
