"""An app whose worker kills itself at the n-th point of a handler's transaction: before or after any
statement on its connection, the store's own statements included.

`python mortal.py URL` forks one worker after the other, for n = 1, 2, … until one lives, and prints how
each ended. Worker n serves the queue `qn`.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import sys
import threading
from typing import Any

import asyncpg

from mainspring import Context, Mainspring
from mainspring.process.serve import serve
from mainspring.store.sqlite import connection as sqlite

LEASE = {"worker.lease": "3s", "worker.heartbeat": "1s"}
INSERT = "INSERT INTO effects (job_id) VALUES ({})"

app = Mainspring()
kill_at = passed = 0


def point() -> None:
    """One more place where a process may die."""
    global passed
    passed += 1
    if passed == kill_at:
        os.kill(os.getpid(), signal.SIGKILL)


class MortalConnection(sqlite3.Connection):
    """SQLite's, where it is a handler's."""

    def execute(self, *args: Any) -> Any:
        return self._mortal(super().execute, *args)

    def executemany(self, *args: Any) -> Any:
        return self._mortal(super().executemany, *args)

    def _mortal(self, call: Any, *args: Any) -> Any:
        global passed
        if threading.current_thread().name != "mainspring-sqlite-handler":
            return call(*args)
        point()
        try:
            answer = call(*args)
        except sqlite3.OperationalError:
            passed -= 1  # it is asked again for the lock: however often, that is one point
            raise
        point()
        return answer


def mortal(call: Any) -> Any:
    """The same for a method of asyncpg's connection."""

    async def called(self: Any, *args: Any, **options: Any) -> Any:
        if self._params.server_settings.get("application_name") != "mainspring handler":
            return await call(self, *args, **options)
        point()
        answer = await call(self, *args, **options)
        point()
        return answer

    return called


@app.task
async def pay(ctx: Context) -> None:
    async with ctx.transaction(result="paid") as connection, ctx.once("charge") as first:
        assert first
        await connection.execute(INSERT.format(ctx.job_id))


@app.task
def pay_plain(ctx: Context) -> None:
    with ctx.transaction() as connection:
        connection.execute(INSERT.format(ctx.job_id))


def be_mortal() -> None:
    connect = sqlite3.connect
    sqlite.sqlite3.connect = lambda *args, **options: connect(*args, factory=MortalConnection, **options)
    asyncpg.Connection.execute = mortal(asyncpg.Connection.execute)
    asyncpg.Connection.fetch = mortal(asyncpg.Connection.fetch)


def worker(url: str, point: int) -> int:
    """One worker in a process of its own; answer how it ended."""
    global kill_at
    kill_at = point
    if pid := os.fork():
        _, status = os.waitpid(pid, 0)
        return os.waitstatus_to_exitcode(status)
    app.configure(
        {"database.url": url, "worker.name": f"victim-{point}", "worker.queues": [f"q{point}"], **LEASE}
    )
    asyncio.run(serve(app, scheduler=False, burst=True))
    os._exit(0)


if __name__ == "__main__":
    be_mortal()
    codes = [worker(sys.argv[1], 1)]
    while codes[-1] != 0:
        codes.append(worker(sys.argv[1], len(codes) + 1))
    sys.stdout.write(json.dumps(codes))
