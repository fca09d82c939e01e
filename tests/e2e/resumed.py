"""An app whose worker kills itself at the n-th point of a handler that goes step by step: before and after
each effect, and before and after each record.

`python resumed.py URL FOLDER` forks one worker after the other, for n = 1, 2, … until one lives, and prints
how each ended. Worker n serves the queue `qn`. An effect is a line in a file of the folder's, synced.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from mainspring import Context, Mainspring
from mainspring.process.serve import serve
from mainspring.store.effects import Effects

LEASE = {"worker.lease": "3s", "worker.heartbeat": "1s"}
STEPS = ("reserve", "charge", "ship")
FOLDER = "RESUMED_FOLDER"

app = Mainspring()
kill_at = passed = 0


def point() -> None:
    """One more place where a process may die."""
    global passed
    passed += 1
    if passed == kill_at:
        os.kill(os.getpid(), signal.SIGKILL)


def effect(job_id: int, name: str) -> str:
    point()
    with Path(os.environ[FOLDER], "effects").open("a", encoding="utf-8") as file:
        file.write(f"{job_id} {name}\n")
        file.flush()
        os.fsync(file.fileno())
    point()
    return name.upper()


@app.task
async def order(ctx: Context) -> list[str]:
    return [await ctx.step(name, effect, ctx.job_id, name) for name in STEPS]


@app.task
def order_plain(ctx: Context) -> list[str]:
    return [ctx.blocking.step(name, effect, ctx.job_id, name) for name in STEPS]


def mortal(record: Any) -> Any:
    async def recorded(self: Any, *args: Any, **options: Any) -> bool:
        point()
        answer = bool(await record(self, *args, **options))
        point()
        return answer

    return recorded


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
    os.environ[FOLDER] = sys.argv[2]
    Effects.record_step = mortal(Effects.record_step)  # type: ignore[method-assign]
    codes = [worker(sys.argv[1], 1)]
    while codes[-1] == -signal.SIGKILL:
        codes.append(worker(sys.argv[1], len(codes) + 1))
    sys.stdout.write(json.dumps(codes))
