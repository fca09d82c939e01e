"""The app that the processes under test load. Its handlers tell a log outside the store what they do."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import time

from mainspring import Context, Isolation, Mainspring, Retry
from mainspring.model.job import JobFilter
from mainspring.worker.children.child_channel import current

SCHEDULES = [f"tick-{number}" for number in range(8)]

app = Mainspring()


def note(ctx: Context, event: str, schedule: str | None = None) -> None:
    """One line in one write, so that lines of several processes never mix."""
    line = {
        "event": event,
        "at": time.monotonic(),
        "job": ctx.job_id,
        "attempt": ctx.attempt,
        "fence": ctx.fence,
        "pid": os.getpid(),
        "worker": worker(),
        "schedule": schedule,
        "slot": ctx.slot.isoformat() if ctx.slot else None,
    }
    file = os.open(os.environ["EFFECT_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, json.dumps(line).encode() + b"\n")
    finally:
        os.close(file)


def worker() -> int:
    """The worker that runs us: this process, or the one that started the keeper of this child."""
    try:
        current()
    except LookupError:
        return os.getpid()
    with open(f"/proc/{os.getppid()}/stat", "rb") as file:
        return int(file.read().rpartition(b")")[2].split()[1])


def length(ctx: Context, seconds: float, again: float | None) -> float:
    """How long this run takes: `again` for every run but the first."""
    return seconds if again is None or ctx.fence == 1 else again


@app.task
async def work(ctx: Context, seconds: float, again: float | None = None) -> None:
    """Takes its time, and ends when it is told to."""
    note(ctx, "start")
    try:
        await asyncio.sleep(length(ctx, seconds, again))
    except asyncio.CancelledError:
        note(ctx, "cancelled")
        raise
    note(ctx, "end")


@app.task
def labour(ctx: Context, seconds: float, again: float | None = None) -> None:
    """The same in a thread."""
    note(ctx, "start")
    ends_at = time.monotonic() + length(ctx, seconds, again)
    while time.monotonic() < ends_at:
        if ctx.cancelled:
            note(ctx, "cancelled")
            return
        time.sleep(0.02)
    note(ctx, "end")


@app.task
def stubborn(ctx: Context, seconds: float, again: float | None = None) -> None:
    """In a thread, and deaf."""
    note(ctx, "start")
    time.sleep(length(ctx, seconds, again))
    note(ctx, "end")


@app.task
async def block(ctx: Context, seconds: float) -> None:
    """Holds up its whole event loop, as handlers should not."""
    note(ctx, "start")
    time.sleep(seconds)  # noqa: ASYNC251 - the mistake is the point
    note(ctx, "end")


@app.task(retry=Retry(attempts=3, base=0))
async def flaky(ctx: Context, failures: int) -> None:
    """Fails so many times."""
    note(ctx, "start")
    if ctx.attempt <= failures:
        raise RuntimeError("not yet")
    note(ctx, "end")


@app.task(retry=Retry(attempts=3, base=0))
def flaky_thread(ctx: Context, failures: int) -> None:
    """The same in a thread."""
    note(ctx, "start")
    if ctx.attempt <= failures:
        raise RuntimeError("not yet")
    note(ctx, "end")


@app.task
async def gated(ctx: Context, limit_key: str, seconds: float = 0) -> None:
    """Goes on until a file is there, and then some."""
    note(ctx, "start")
    while not os.path.exists(limit_key):  # noqa: ASYNC110, ASYNC240 - nobody tells
        await asyncio.sleep(0.05)
    await asyncio.sleep(seconds)
    note(ctx, "end")


@app.task
async def suicidal(ctx: Context) -> None:
    """Ends its process the first time."""
    note(ctx, "start")
    if ctx.fence == 1:
        os._exit(1)
    note(ctx, "end")


@app.task(retry=Retry(attempts=2, base=0))
async def lethal(ctx: Context) -> None:
    """Ends its process every time."""
    note(ctx, "start")
    os._exit(7)


@app.task(retry=Retry(attempts=2, base=0))
async def innocent(ctx: Context, seconds: float) -> None:
    """In the same worker as somebody lethal."""
    note(ctx, "start")
    await asyncio.sleep(seconds)
    note(ctx, "end")


@app.task(timeout="500ms", retry=Retry(attempts=1))
async def spinning(ctx: Context) -> None:
    """Lets nothing else happen on its event loop, for ever."""
    note(ctx, "start")
    while True:
        pass


@app.task(isolate=Isolation(grace="200ms"), retry=Retry(attempts=1))
def lonely(ctx: Context, seconds: float) -> None:
    """In a child, and deaf to everything; so is its own child, which has left the session."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    subprocess.Popen(["sleep", "1000"], start_new_session=True)
    note(ctx, "start")
    time.sleep(seconds)
    note(ctx, "end")


@app.task(isolate=True)
def sender(ctx: Context) -> None:
    """In a child, and enqueues from there."""
    note(ctx, "start")
    work.enqueue(0)


@app.task
async def holder(ctx: Context, number: int, seconds: float) -> None:
    """Keeps a lease of its own meanwhile, and asks the store again and again."""
    note(ctx, "start")
    async with app.lease(f"hold-{number}", ttl="2s"):
        ends_at = time.monotonic() + seconds
        while time.monotonic() < ends_at:
            await (await app._store()).jobs.find(JobFilter(), at=None)
            await asyncio.sleep(0.01)
    note(ctx, "end")


@app.task
async def tick(ctx: Context, schedule: str) -> None:
    note(ctx, "start", schedule)
    note(ctx, "end", schedule)


# Two specs, each shared by four schedules.
for number, name in enumerate(SCHEDULES):
    if number % 2:
        app.schedule(name, tick, every="1s", args=[name], allow=1000)
    else:
        app.schedule(name, tick, cron="* * * * * *", args=[name], allow=1000)
