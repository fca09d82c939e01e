"""An app whose handlers, threads and hooks would keep their process from ending."""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import ctypes
import os
import sys
import threading
import time
from typing import Any

from mainspring import Context, Mainspring, Retry
from tests.e2e.target import note

app = Mainspring()
EVER = 1000.0
_kept: list[Any] = []


@app.task
async def swallows(ctx: Context) -> None:
    """Does not let itself be cancelled, the first time."""
    note(ctx, "start")
    while ctx.fence == 1:
        try:
            await asyncio.sleep(EVER)
        except asyncio.CancelledError:
            note(ctx, "swallowed")
    note(ctx, "end")


async def _leave() -> None:
    sys.exit(3)


async def _interrupt() -> None:
    raise KeyboardInterrupt


@app.task
async def strays(ctx: Context, how: str) -> None:
    """Leaves a task beside itself that ends the program."""
    note(ctx, "start")
    _kept.append(asyncio.ensure_future({"exit": _leave, "interrupt": _interrupt}[how]()))
    await asyncio.sleep(0.1)
    note(ctx, "end")


@app.task
async def blocks(ctx: Context) -> None:
    """Holds up its event loop, in Python, the first time."""
    note(ctx, "start")
    if ctx.fence == 1:
        while True:
            pass
    note(ctx, "end")


@app.task
async def blocks_in_c(ctx: Context) -> None:
    """The same in C code that looks at no signal."""
    note(ctx, "start")
    if ctx.fence == 1:
        mask = ctypes.create_string_buffer(b"\xff" * 128)  # as a signal that is blocked in this thread
        ctypes.CDLL(None).pthread_sigmask(0, mask, None)
        ctypes.CDLL(None).sleep(1000)
    note(ctx, "end")


@app.task
def sleeps(ctx: Context) -> None:
    """In a thread, and deaf."""
    note(ctx, "start")
    if ctx.fence == 1:
        time.sleep(EVER)
    note(ctx, "end")


@app.task
async def helped(ctx: Context) -> None:
    """Waits for a thread of the event loop's own executor that never returns."""
    note(ctx, "start")
    if ctx.fence == 1:
        await asyncio.get_running_loop().run_in_executor(None, time.sleep, EVER)
    note(ctx, "end")


@app.task
def leaves_behind(ctx: Context, what: str) -> None:
    """Ends, and leaves what hangs when the interpreter does."""
    note(ctx, "start")
    if what == "thread":
        threading.Thread(target=time.sleep, args=(EVER,), name="the-apps-own", daemon=False).start()
    elif what == "executor":
        pool = concurrent.futures.ThreadPoolExecutor(1)
        _kept.append(pool.submit(time.sleep, EVER))
    else:
        atexit.register(time.sleep, EVER)
    note(ctx, "end")


class Evil(Exception):
    """Everything that one may ask of it ends the program."""

    def __str__(self) -> str:
        sys.exit(5)

    __repr__ = __str__

    def __getattribute__(self, name: str) -> Any:
        raise KeyboardInterrupt


def _raise() -> None:
    raise Evil


@app.task(retry=Retry(attempts=1))
async def evil(ctx: Context) -> None:
    note(ctx, "start")
    _raise()


@app.task(retry=Retry(attempts=1))
def evil_thread(ctx: Context) -> None:
    note(ctx, "start")
    _raise()


@app.task(retry=Retry(attempts=1))
def evil_plain() -> None:
    _raise()


@app.task(retry=Retry(attempts=1), isolate=True)
def evil_child(ctx: Context) -> None:
    note(ctx, "start")
    _raise()


@app.task
async def quick(ctx: Context) -> None:
    note(ctx, "end")


@app.task
def forks(ctx: Context) -> None:
    """A process forked from the worker that is told to end, as a pool's is."""
    pid = os.fork()
    if pid == 0:
        time.sleep(EVER)
        os._exit(0)
    time.sleep(0.2)
    os.kill(pid, 15)
    _, status = os.waitpid(pid, 0)
    note(ctx, f"child {os.waitstatus_to_exitcode(status)}")
