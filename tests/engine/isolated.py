"""Functions that child processes run: at the top of a module, where a child finds them."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from mainspring.tasks.context import Context
from mainspring.worker.children.child_channel import current

NUMBER = {"calls": 0}
ORPHAN = """
import os, sys
if os.fork():
    os._exit(0)
os.setsid()
with open(sys.argv[1], "w") as file:
    file.write(str(os.getpid()))
os.execlp("sleep", "sleep", "1000")
"""


def look(ctx: Context, word: str) -> dict[str, Any]:
    NUMBER["calls"] += 1
    return {
        "word": word,
        "pid": os.getpid(),
        "calls": NUMBER["calls"],
        "job": ctx.job_id,
        "task": ctx.task,
        "attempt": ctx.attempt,
        "fence": ctx.fence,
        "token": ctx.token,
        "cancelled": ctx.cancelled,
    }


async def alook(ctx: Context, word: str) -> dict[str, Any]:
    await asyncio.sleep(0)
    return look(ctx, word)


def segfault() -> None:
    ctypes.string_at(0)


def leave() -> None:
    os._exit(3)


def exits() -> None:
    sys.exit(4)


def killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def aborts() -> None:
    os.abort()


def greedy() -> int:
    return len(bytearray(400 * 10**6))


def frugal() -> int:
    return len(bytearray(10**6))


def raises() -> None:
    raise ValueError("boom")


def too_large() -> str:
    return "x" * 100_000


def unserialisable() -> object:
    return object()


def closes_everything() -> None:
    os.closerange(3, 4096)


def babbles() -> None:
    """Writes nonsense into whatever sockets there are."""
    for number in range(3, 64):
        with contextlib.suppress(OSError):
            os.write(number, b"\xff" * 64)
    time.sleep(600)


def deaf() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        pass


async def adeaf() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(600)


def tidy(folder: str) -> None:
    """Does not look at its context, but cleans up when a signal comes."""
    (Path(folder) / "begun").touch()
    try:
        time.sleep(600)
    finally:
        (Path(folder) / "cleaned").touch()


def cooperative(ctx: Context, folder: str) -> str:
    (Path(folder) / "begun").touch()
    while not ctx.cancelled:
        time.sleep(0.005)
    return "ended well"


async def acooperative(folder: str) -> None:
    (Path(folder) / "begun").touch()
    try:
        await asyncio.sleep(600)
    finally:
        (Path(folder) / "cleaned").touch()


def daemons(folder: str, stay: bool = False) -> None:
    """Leaves processes behind: one in a session of its own, one whose parent is gone."""
    out = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    subprocess.run([sys.executable, "-c", ORPHAN, f"{folder}/orphan"], check=True)
    orphan = Path(folder) / "orphan"
    while not (orphan.exists() and orphan.read_text()):
        time.sleep(0.005)
    (Path(folder) / "daemon").write_text(str(out.pid))
    if stay:
        time.sleep(600)


def tree(folder: str, levels: int) -> None:
    """Two processes of every one, so many levels deep, all of them deaf."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for _ in range(levels):
        os.fork()
    with contextlib.suppress(PermissionError):  # the first one leads a group already
        os.setsid()
    (Path(folder) / str(os.getpid())).touch()
    time.sleep(600)


def bomb() -> int:
    """How many processes it could start before it was told that there can be no more."""
    started = 0
    for _ in range(500):
        try:
            if os.fork() == 0:
                time.sleep(600)
        except OSError:
            return started
        started += 1
    return started


def asks(word: str) -> str:
    return current().ask("echo", word.encode()).decode()


async def aasks(word: str) -> str:
    return (await current().aask("echo", word.encode())).decode()


def asks_in_vain() -> None:
    current().ask("nobody knows this")


def stands(ctx: Context) -> list[Any]:
    period = ctx.period
    assert period is not None and period.start is not None
    return [period.start.isoformat(), period.end.isoformat(), period.missed]
