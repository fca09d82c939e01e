"""A program that forks in every way there is: `forking.py URL WAY LEDGER`. Whoever is told that its jobs are
stored writes their ids into the ledger, then says that it is done.

It is run as it stands, so nothing of the tests is imported here. It is also what gunicorn serves, and what
workers load.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from mainspring import Mainspring
from mainspring.errors import MainspringError

EACH = 60
"""Calls that every child makes."""
PRELOADED = "FORKING" in os.environ
if __name__ == "__main__":
    url, way, ledger = sys.argv[1:4]
else:
    way = ""
    url, ledger = os.environ.get("FORKING", f" {os.environ.get('FORKING_LEDGER')}").split(" ")
IN_MEMORY = "sqlite://:memory:"
app = Mainspring(IN_MEMORY if way == "in_memory" else url or None)


@app.task
def echo(number: int) -> int:
    return number


def say(line: str) -> None:
    """One line in one write, so that lines of several processes never mix."""
    file = os.open(ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, f"{line}\n".encode())
    finally:
        os.close(file)


def put(number: int) -> int:
    job = echo.enqueue(number)
    say(f"stored {job.id}")
    return job.id


def child(count: int = EACH, pause: float = 0.0) -> None:
    """What a child does: it puts jobs in, and reads."""
    try:
        for number in range(count):
            job_id = put(number)
            time.sleep(pause)
        assert app.job(job_id).id == job_id
        say("done")
    except BaseException as error:
        say(f"failed {type(error).__name__}: {error}")
    finally:
        app.close()


def forked(work: Callable[[], None], *, hard: bool = True) -> int:
    """Have this done in a child; `hard` ends it without a word to anybody."""
    pid = os.fork()
    if pid:
        return pid
    work()
    if hard:
        os._exit(0)
    sys.exit(0)


def wait(pids: list[int]) -> None:
    for pid in pids:
        os.waitpid(pid, 0)


def fork_and_close() -> None:
    """The parent closes while its children are at work, and opens again."""
    put(0)
    pids = []
    for number in range(4):
        pids.append(forked(lambda: child(pause=0.005), hard=number % 2 == 0))
        app.close()
        for _ in range(10):
            put(-1)
    app.close()
    wait(pids)


def fork_and_exit() -> None:
    """The parent is gone before its children have begun."""
    put(0)
    for _ in range(3):
        forked(lambda: child(pause=0.005))


def processes() -> None:
    put(0)
    context = multiprocessing.get_context("fork")
    started = [context.Process(target=child, args=(EACH, 0.005)) for _ in range(3)]
    for each in started:
        each.start()
        put(-1)
        app.close()
    for each in started:
        each.join()


def pool() -> None:
    put(0)
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(4, mp_context=context) as executor:
        results = []
        for number in range(3 * EACH):
            results.append(executor.submit(put, number))
            if number % 10 == 0:
                app.close()
                put(-1)
        for each in results:
            each.result(timeout=60)
    child(1)


def daemon() -> None:
    """As daemons are made: twice, with a session of its own between."""
    put(0)

    def leave() -> None:
        os.setsid()
        put(1)
        forked(lambda: child(4 * EACH, pause=0.005))

    wait([forked(leave)])


def writing() -> None:
    """Children are forked while other threads write without a rest, from threads and from an event loop."""
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            put(-1)

    async def awrite() -> None:
        while not stop.is_set():
            job = await echo.aenqueue(-2)
            say(f"stored {job.id}")
        await app.aclose()

    threads = [threading.Thread(target=write) for _ in range(3)]
    threads.append(threading.Thread(target=lambda: asyncio.run(awrite())))
    for each in threads:
        each.start()
    pids = []
    for _ in range(6):
        pids.append(forked(child))
        time.sleep(0.05)
    wait(pids)
    stop.set()
    for each in threads:
        each.join()
    child(1)


def in_loop() -> None:
    """From within an event loop, which has a store of its own."""

    async def parent() -> None:
        pids = []
        for number in range(4):
            job = await echo.aenqueue(number)
            say(f"stored {job.id}")
            pids.append(forked(lambda: child(pause=0.005)))
        for _ in range(EACH):
            job = await echo.aenqueue(-1)
            say(f"stored {job.id}")
            await asyncio.sleep(0.005)
        await app.aclose()
        wait(pids)

    asyncio.run(parent())
    child(1)


def results() -> None:
    """A child waits for a job of its parent's and reads what it returned."""
    job = echo.enqueue(42)
    say(f"stored {job.id}")

    def read() -> None:
        say(f"read {job.result(timeout=30)}")
        child(5)

    wait([forked(read, hard=False)])
    say(f"read {job.result(timeout=30)}")


def borrowed() -> None:
    """A connection of the program's own is open at the fork."""
    put(0)
    own = sqlite3.connect(url.removeprefix("sqlite:///"))
    own.execute("SELECT count(*) FROM sqlite_master").fetchall()
    wait([forked(lambda: child(5))])
    own.close()
    wait([forked(lambda: child(5))])
    put(1)


def in_transaction() -> None:
    """A handler's transaction is open at the fork."""

    async def parent() -> None:
        store = await app._store()
        loan = await store.effects.lend()
        wait([forked(lambda: child(5))])
        await loan.rollback()
        wait([forked(lambda: child(5))])
        say(f"stored {(await echo.aenqueue(1)).id}")
        await app.aclose()

    asyncio.run(parent())


def in_memory() -> None:
    """The children have nothing; the parent goes on."""
    put(0)
    wait([forked(lambda: child(5))])
    asyncio.run(_ask_inherited())
    put(1)


def old_store() -> None:
    """A child goes on with the store that its parent opened."""
    asyncio.run(_ask_inherited())


async def _ask_inherited() -> None:
    store = await app._store()
    now = await store.now(at=None)

    def ask() -> None:
        try:
            asyncio.run(store.now(at=None))
        except MainspringError as error:
            say(f"failed {type(error).__name__}: {error}")

    wait([forked(ask)])
    assert await store.now(at=None) >= now
    await app.aclose()


def lease() -> None:
    """A child leaves the body in which its parent holds a lease."""
    try:
        with app.lease("forked", ttl="30s") as held:
            pid = os.fork()
            if pid:
                wait([pid])
                say(f"lost {held.lost}")
    finally:
        if not pid:
            say("left")
            os._exit(0)
    with app.lease("forked", ttl="30s", wait="1s"):
        say("done")


def locked() -> None:
    """Forked while a write waits for the lock that another process holds."""
    put(0)
    say("ready")
    while not Path(f"{ledger}.locked").exists():
        time.sleep(0.01)
    waiting = threading.Thread(target=put, args=(1,))
    waiting.start()
    for pause in (0.1, 1.5):  # it looks for itself at first, then has SQLite wait
        time.sleep(pause)
        began = time.monotonic()
        pid = forked(lambda: child(5))
        say(f"forked {time.monotonic() - began}")
    say("waits")
    waiting.join()
    wait([pid])


@app.task
def family(processes: int) -> list[int]:
    """A handler that forks as multiprocessing does, in a thread of its worker."""
    context = multiprocessing.get_context("fork")
    started = [context.Process(target=child, args=(5,)) for _ in range(processes)]
    for each in started:
        each.start()
    for each in started:
        each.join()
    return [each.exitcode for each in started]


@app.task
async def afamily(processes: int) -> list[int]:
    """The same on its event loop."""
    return family.function(processes)


def serve(
    environ: dict[str, str], start_response: Callable[[str, list[tuple[str, str]]], object]
) -> list[bytes]:
    """A WSGI application: each request is a job."""
    body = str(put(0)).encode()
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]


if __name__ == "__main__":
    globals()[way]()
    app.close()
elif PRELOADED:
    put(0)  # as gunicorn's master loads it, before there are workers
