"""The command line of every peer's program that is written in Python, and the pace at which a feeder sends.

It needs nothing but Python, as `mark.py` does. A program ends with one call:

    if __name__ == "__main__":
        run(ABOUT, prepare=prepare, worker=worker, client=client, pending=pending)

- `ABOUT` is an `About`. Its version is read from the installed package.
- `prepare()`, `worker(number)`, `scheduler(number)` (left out when workers fire schedules) and `pending()`,
  which returns a number, are plain functions or `async def`; those are run by `runner`, `asyncio.run` unless
  told otherwise (`runner=uvloop.run`).
- `client()` is a context manager, plain or asynchronous, that gives something connected with
  `one(task, number, sent_at)`, where the task is "noop" or "slow", and, where the peer has a call for it,
  `many(jobs)`, which stores `noop` jobs from a list of `(number, sent_at)`; leave the method out otherwise.
  Both are coroutines if the context manager is asynchronous. `About.bulk` says how many a list holds at most.

`URL`, `SCHEDULES` (a range of numbers) and `PERIOD` are what the environment says, `ABOUT.handler()` is the
kind of handler that `noop` shall be, and `cron()` is when schedules fire.

Whatever a peer cannot do: raise `Unsupported("why")`, and `{"unsupported": "why"}` is printed; so it is for
a command named in `About.lacks` and, before a worker starts, for a `PEER_HANDLER` that is not in
`About.handlers` and a `PEER_PERIOD` without its kind of schedule.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from typing import Any

URL = os.environ.get("PEER_URL", "")
SCHEDULES = range(int(os.environ.get("PEER_SCHEDULES", "0")))
PERIOD = int(os.environ.get("PEER_PERIOD", "60"))

GRACE = 1.0
"""A feeder that is late by more than this when its time is over stops: `sent` then says what it managed."""


class Unsupported(Exception):
    """The peer has no such thing; the message says what it lacks."""


@dataclass(frozen=True, kw_only=True)
class About:
    label: str
    package: str
    """Whose version is told."""
    durability: str
    """What survives which failure, in one sentence."""
    settings: str
    """What was tuned, to what, and why."""
    handlers: Sequence[str]
    """Of "async", "sync" and "isolated". The first is what `noop` is when nothing is asked for."""
    schedules: Sequence[str] = ()
    """Of "minute" and "second"."""
    bulk: int = 0
    """How many jobs one call stores at most; 0 when there is no such call."""
    lacks: Mapping[str, str] = field(default_factory=dict)
    """Commands that it cannot do, and why."""

    def handler(self) -> str:
        return os.environ.get("PEER_HANDLER") or self.handlers[0]


Connect = Callable[[], AbstractContextManager[Any] | AbstractAsyncContextManager[Any]]
Runner = Callable[[Coroutine[Any, Any, Any]], Any]


def run(
    about: About,
    *,
    prepare: Callable[[], object],
    worker: Callable[[int], object],
    client: Connect,
    pending: Callable[[], object],
    scheduler: Callable[[int], object] | None = None,
    runner: Runner = asyncio.run,
) -> None:
    """Does what the command line says and prints what it must."""
    command, *arguments = sys.argv[1:]
    found: dict[str, Any] | None = None
    try:
        if why := about.lacks.get(command):
            raise Unsupported(why)
        match command, arguments:
            case "about", []:
                found = _about(about)
            case "prepare", []:
                _called(prepare, (), runner)
            case "worker", [number]:
                _can_run(about)
                _called(worker, (int(number),), runner)
            case "scheduler", [number] if scheduler is not None:
                _can_run(about)
                _called(scheduler, (int(number),), runner)
            case "scheduler", _:
                raise Unsupported(f"the workers of {about.label} fire its schedules")
            case "pending", []:
                found = {"pending": _called(pending, (), runner)}
            case _:
                found = _stored(_stores(about, command, arguments), client, runner)
    except Unsupported as lacking:
        found = {"unsupported": str(lacking)}
    if found is not None:
        print(json.dumps(found), flush=True)


def cron(seconds: str = "") -> str:
    """When schedules fire: five fields for whole minutes; else six, with the seconds "first" or "last"."""
    if PERIOD >= 60:
        minutes = "*" if PERIOD == 60 else f"*/{PERIOD // 60}"
        five = f"{minutes} * * * *"
        return {"first": f"0 {five}", "last": f"{five} 0", "": five}[seconds]
    if not seconds:
        raise Unsupported("its schedules have no seconds")
    every = f"*/{PERIOD}"
    return f"{every} * * * * *" if seconds == "first" else f"* * * * * {every}"


# A workload is a generator of what the client's methods returned: nothing, or what is to be awaited.
Steps = Iterator[Any]
Workload = Callable[[Any, Callable[[float], Any], dict[str, float]], Steps]


def _stores(about: About, command: str, arguments: list[str]) -> Workload:
    match command, arguments:
        case "enqueue", ["one", count]:
            return lambda client, _, told: _one(client, "noop", int(count), told)
        case "enqueue", ["bulk", count]:
            if not about.bulk:
                raise Unsupported(f"{about.label} has no call that stores many jobs")
            return lambda client, _, told: _many(client, int(count), about.bulk, told)
        case "feed", [rate, seconds]:
            return lambda client, wait, told: _feed(
                client, float(rate), float(seconds), about.bulk, wait, told
            )
        case "hold", [count]:
            return lambda client, _, told: _one(client, "slow", int(count), told)
        case _:
            raise SystemExit(f"unknown command: {command} {' '.join(arguments)}")


def _one(client: Any, task: str, count: int, told: dict[str, float]) -> Steps:
    began = time.perf_counter()
    for number in range(count):
        yield client.one(task, number, time.time())
    told["seconds"] = time.perf_counter() - began


def _many(client: Any, count: int, at_once: int, told: dict[str, float]) -> Steps:
    began = time.perf_counter()
    for first in range(0, count, at_once):
        now = time.time()
        yield client.many([(number, now) for number in range(first, min(first + at_once, count))])
    told["seconds"] = time.perf_counter() - began


def _feed(
    client: Any,
    rate: float,
    seconds: float,
    at_once: int,
    wait: Callable[[float], Any],
    told: dict[str, float],
) -> Steps:
    began, total, sent = time.time(), round(rate * seconds), 0
    woke = began
    # A timer that rings late is not the peer's: event loops count milliseconds, and `time.sleep` does not.
    # What came due meanwhile is sent when it rang; what came due while the client stored, when it was due.
    while sent < total and (now := time.time()) < began + seconds + GRACE:
        due = min(total, int((now - began) * rate) + 1)
        if sent == due:
            # Until the next one is due, and not by a slice of time: who stores within a slice would wait for
            # its end, and who is slower would not.
            yield wait(began + sent / rate - now)
            woke = time.time()
        elif at_once:
            until = min(due, sent + at_once)
            yield client.many([(number, max(began + number / rate, woke)) for number in range(sent, until)])
            sent = until
        else:
            yield client.one("noop", sent, max(began + sent / rate, woke))
            sent += 1
    told.update(sent=sent, seconds=time.time() - began)


def _stored(workload: Workload, client: Connect, runner: Runner) -> dict[str, float]:
    told: dict[str, float] = {}
    connection = client()
    if isinstance(connection, AbstractAsyncContextManager):

        async def drive() -> None:
            async with connection as connected:
                for step in workload(connected, asyncio.sleep, told):
                    await step

        runner(drive())
    else:
        with connection as connected:
            for _ in workload(connected, time.sleep, told):
                pass
    return told


def _called(function: Callable[..., Any], arguments: tuple[Any, ...], runner: Runner) -> Any:
    found = function(*arguments)
    return runner(found) if inspect.iscoroutine(found) else found


def _about(about: About) -> dict[str, Any]:
    told = asdict(about)
    package = told.pop("package")
    return {**told, "version": version(package), "bulk": bool(about.bulk)}


def _can_run(about: About) -> None:
    if about.handler() not in about.handlers:
        raise Unsupported(f"{about.label} has no {about.handler()} handlers")
    kind = "second" if PERIOD < 60 else "minute"
    if SCHEDULES and kind not in about.schedules:
        raise Unsupported(f"{about.label} has no schedules of one {kind}")
