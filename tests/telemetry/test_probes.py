"""Being alive means progress: loops that are late, a small server that takes no harm, and `status`."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from mainspring.admin.health.status import look, troubles
from mainspring.clock import SystemClock
from mainspring.config import MetricsConfig, Settings
from mainspring.entropy import SeededEntropy
from mainspring.errors import InvalidConfig, StoreUnavailable
from mainspring.model.job import NewJob
from mainspring.model.process import NewProcess, Role
from mainspring.monitor.monitor import LARGEST_HEAD, ProbePage, ProbeServer, alive, listen, ready
from mainspring.monitor.store_poll import StorePoll
from mainspring.process.loop import Cycle
from mainspring.telemetry.events import Telemetry
from mainspring.telemetry.progress import LoopProgress
from mainspring.testing.clock import ManualClock
from tests.engine.kit import Faulty, until

SECOND = timedelta(seconds=1)


class Ticking:
    """A loop whose passes end when they are told to."""

    name = "claimer"

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.error: Exception | None = None
        self.passes = 0

    async def tick(self) -> timedelta:
        await self.go.wait()
        self.passes += 1
        if self.error is not None:
            raise self.error
        return timedelta(seconds=10)


def test_a_loop_that_hangs_or_is_late_is_not_alive_and_one_without_a_store_is(
    run: Any, clock: ManualClock
) -> None:
    progress, loop = LoopProgress(clock, 30 * SECOND), Ticking()
    cycle = Cycle(loop, Telemetry(), SeededEntropy(1), progress=progress)

    async def story() -> None:
        running = asyncio.create_task(cycle.run())
        await asyncio.sleep(0)
        clock.advance(29 * SECOND)
        assert alive(progress).ok
        clock.advance(2 * SECOND)
        assert alive(progress).reasons == ("claimer: hangs in a pass, 31 s late",)
        loop.go.set()
        await until(lambda: loop.passes == 1 and alive(progress).ok)
        # It rests for ten seconds: it is late when they and the patience are over.
        clock.advance(39 * SECOND)
        assert alive(progress).ok
        clock.advance(2 * SECOND)
        assert alive(progress).reasons == ("claimer: made no pass, 31 s late",)
        # A pass that failed on the store is a pass: to start anew would not bring the store back.
        loop.error = StoreUnavailable("gone")
        cycle.wake()
        await until(lambda: alive(progress).ok)
        cycle.stop()
        await running
        clock.advance(3600 * SECOND)
        assert alive(progress).ok, "what has ended is not late"

    run(story())


def test_old_rows_may_be_dropped_for_minutes(clock: ManualClock) -> None:
    progress = LoopProgress(clock, 30 * SECOND)
    progress.mark("pruner").begins()
    progress.mark("claimer").begins()
    clock.advance(120 * SECOND)
    assert [late.loop for late in progress.late()] == ["claimer"]


def test_it_is_ready_while_the_store_answers(store: Any, run: Any, clock: ManualClock) -> None:
    faulty, progress = Faulty(store), LoopProgress(clock, 30 * SECOND)
    settings = Settings(metrics=MetricsConfig(every=15 * SECOND))
    survey = StorePoll(faulty, clock, settings)  # type: ignore[arg-type]

    async def story() -> None:
        assert not ready(progress, survey).ok
        await survey.refreshed()
        assert ready(progress, survey).ok
        faulty.before("verify", StoreUnavailable("gone"), times=2)
        asked = len(faulty.calls)
        await survey.refreshed()
        assert len(faulty.calls) == asked, "it was asked a moment ago"
        clock.advance(15 * SECOND)
        await survey.refreshed()
        assert ready(progress, survey).reasons == ("store: gone",)
        clock.advance(15 * SECOND)
        faulty.heal()
        await survey.refreshed()
        assert ready(progress, survey).ok
        clock.advance(61 * SECOND)
        assert not ready(progress, survey).ok, "nobody has asked for a minute"

    run(story())


def test_status_and_alerts_judge_alike(store: Any, run: Any, clock: ManualClock) -> None:
    settings = Settings()

    async def story() -> None:
        assert not troubles(await look(store, clock, settings.alerts), settings.alerts)
        await store.queue.insert([NewJob(task="mail", payload=b"{}")], at=clock.stamp())
        clock.advance(SECOND)
        [found] = troubles(await look(store, clock, settings.alerts), settings.alerts)
        assert (found.rule, found.subject) == ("no_worker", "default")
        member = NewProcess(id=7, role=Role.WORKER, name="w", queues=("default",), tasks=("mail",))
        await store.processes.join(member, lease=7200 * SECOND, at=clock.stamp())
        assert not troubles(await look(store, clock, settings.alerts), settings.alerts)
        clock.advance(3600 * SECOND)
        [found] = troubles(await look(store, clock, settings.alerts), settings.alerts)
        assert (found.rule, found.subject) == ("oldest_waiting", "default")
        await store.queues.pause("default", author="me", note=None, at=clock.stamp())
        assert not troubles(await look(store, clock, settings.alerts), settings.alerts), "somebody knows"

    run(story())


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        (b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", b"HTTP/1.1 200 OK"),
        (b"HEAD /healthz HTTP/1.0\r\n\r\n", b"HTTP/1.1 200 OK"),
        (b"GET /healthz?verbose=1 HTTP/1.1\r\n\r\n", b"HTTP/1.1 200 OK"),
        (b"POST /healthz HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", b"HTTP/1.1 405 "),
        (b"GET /../../etc/passwd HTTP/1.1\r\n\r\n", b"HTTP/1.1 404 "),
        (b"GET /\xff\xfe HTTP/1.1\r\n\r\n", b"HTTP/1.1 404 "),
        (b"GET /healthz\r\n\r\n", b"HTTP/1.1 400 "),
        (b"\x16\x03\x01\x02\x00\x01\r\n\r\n", b"HTTP/1.1 400 "),
        (b"GET /" + b"a" * 2 * LARGEST_HEAD + b" HTTP/1.1\r\n\r\n", b"HTTP/1.1 400 "),
        (b"GET /bad HTTP/1.1\r\n\r\n", b"HTTP/1.1 503 "),
    ],
)
def test_the_probe_server_answers_whatever_it_is_sent(sent: bytes, answer: bytes, run: Any) -> None:
    pages: dict[str, Callable[[], ProbePage]] = {
        "/healthz": lambda: ProbePage(body=b"up\n"),
        "/bad": lambda: ProbePage(status=503, body=b"down\n"),
    }

    async def story() -> bytes:
        server, on = ProbeServer(pages), listen("127.0.0.1", 0)
        await server.start(on)
        reader, writer = await asyncio.open_connection(*on.getsockname())
        writer.write(sent)
        # The other end may have closed before all was read: what it said has come all the same.
        told = b""
        try:
            while part := await reader.read(65536):
                told += part
        except ConnectionError:
            assert told
        writer.close()
        await server.close()
        return told

    told = run(story())
    assert told.startswith(answer)
    assert (b"up\n" in told) == (answer.endswith(b"OK") and not sent.startswith(b"HEAD"))


def test_a_port_that_is_taken_is_said_at_once() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(InvalidConfig, match=r"metrics\.port"),
    ):
        listen("127.0.0.1", taken.getsockname()[1])


def test_a_slow_sender_does_not_stop_the_others(run: Any) -> None:
    async def story() -> bytes:
        server, on = ProbeServer({"/healthz": lambda: ProbePage(body=b"up\n")}), listen("127.0.0.1", 0)
        await server.start(on)
        slow = [await asyncio.open_connection(*on.getsockname()) for _ in range(20)]
        for _, writer in slow:
            writer.write(b"GET /heal")
        reader, quick = await asyncio.open_connection(*on.getsockname())
        quick.write(b"GET /healthz HTTP/1.1\r\n\r\n")
        told = await reader.read()
        for writer in (quick, *(writer for _, writer in slow)):
            writer.close()
        await server.close()
        await until(lambda: server._open == 0)
        return told

    assert run(story()).startswith(b"HTTP/1.1 200")


def test_marks_cost_next_to_nothing() -> None:
    """Two looks at the clock a pass: a pass itself takes a thousand times as long."""
    mark = LoopProgress(SystemClock(), 30 * SECOND).mark("claimer")
    for _ in range(1000):
        mark.begins()
        mark.rests(SECOND)
    assert mark.passes == 1000 and not mark.in_pass
