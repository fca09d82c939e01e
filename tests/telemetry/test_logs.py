"""The log, read back: one event one line, whatever was logged; the run on every line of it; no secrets."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest

from mainspring import Context, Mainspring, Retry
from mainspring.cli.logs import set_up_logging
from mainspring.config import LogConfig, Settings
from mainspring.process.serve import aserve
from mainspring.telemetry.events import Telemetry
from mainspring.telemetry.log import log_event

FORGED = [
    "plain",
    'end"}\n{"time": "now", "level": "error", "message": "forged"}',
    "carriage\r2026-01-01 error forged",
    "\x1b[2J\x1b[31mred\x1b]0;title\x07",
    "null\x00byte and \x7f and \x85 and \u2028 and \u2029",
    "bidi \u202e reversed \ufeff",
    "lone \ud800 surrogate",
    "%s %d %n %(levelname)s {record}",
    "\v\f\x1c\x1d\x1e",
    "x" * 100_000,
]
TEXT = re.compile(r"\d\d:\d\d:\d\d (debug|info|warning|error|critical) +(.*)")
STRAY = logging.getLogger("somebody.else")


@contextmanager
def logging_as(style: str) -> Iterator[Callable[[], list[str]]]:
    """Logging set up as a command does it; what was there before, pytest's own, comes back."""
    root, ours, runs = (logging.getLogger(name) for name in (None, "mainspring", "mainspring.runs"))
    before = root.handlers[:], [each.level for each in (root, ours, runs)]
    root.handlers[:] = []
    ours.setLevel(logging.NOTSET)
    runs.setLevel(logging.NOTSET)
    stream = io.StringIO()
    try:
        settings = Settings(log=LogConfig(level="info", format=style))
        set_up_logging(settings, stream, every_run=True)
        # As a terminal or a collector splits them.
        yield lambda: stream.getvalue().splitlines()
    finally:
        root.handlers[:] = before[0]
        for logger, level in zip((root, ours, runs), before[1], strict=True):
            logger.setLevel(level)


@pytest.mark.parametrize("style", ["json", "text"])
def test_one_event_is_one_line_whatever_it_holds(style: str) -> None:
    with logging_as(style) as read:
        for text in FORGED:
            STRAY.warning("said %s", text, extra={"task": text, "trace_id": text})
            try:
                raise ValueError(text)
            except ValueError:
                STRAY.exception("failed")
    found = [line for line in read() if not line.startswith("    ")]
    assert len(found) == 2 * len(FORGED), "a traceback is set in, or in the object"
    for line in read():
        assert line.isprintable(), repr(line[:100])
    if style == "json":
        told = [json.loads(line) for line in found[::2]]
        assert all(each["level"] == "warning" and each["logger"] == "somebody.else" for each in told)
        kept = [each["message"].removeprefix("said ") for each in told if len(each["message"]) < 1000]
        assert kept == FORGED[:-1], "escaped, not changed"
    else:
        assert all(TEXT.fullmatch(line) for line in found)


def test_every_line_of_a_run_says_which_run(run: Any, tmp_path: Any) -> None:
    app = Mainspring._with(f"sqlite:///{tmp_path / 'm.db'}", telemetry=Telemetry(log_event))
    app._configure({"worker.poll": "50ms"})

    @app.task(retry=Retry(attempts=1))
    def in_a_thread(ctx: Context) -> None:
        STRAY.warning("in a thread: password=hunter2")
        ctx.log.warning("by the context")
        raise ValueError("token=abcdef0123456789")

    @app.task
    async def on_the_loop() -> None:
        STRAY.warning("on the loop")

    parent = f"00-{'a' * 32}-{'b' * 16}-01"

    async def story() -> None:
        store = await app._store()
        jobs = [msgspec.structs.replace(in_a_thread.job(), trace=parent), on_the_loop.job()]
        await store.queue.insert(jobs, at=None)
        await aserve(app, scheduler=False, burst=True)
        await app.aclose()

    with logging_as("json") as read:
        run(story())
    told = [json.loads(line) for line in read()]
    thread = [each for each in told if each.get("task") == "in_a_thread"]
    assert [each["logger"] for each in thread] == ["somebody.else", "mainspring.job", "mainspring"]
    assert {each["trace_id"] for each in thread} == {"a" * 32}
    assert {(each["job_id"], each["attempt"]) for each in thread} == {(1, 1)}
    last = thread[-1]
    assert last["status"] == "dead" and last["duration"] >= 0 and last["error"].startswith("ValueError: ")
    [spoken, succeeded] = [each for each in told if each.get("task") == "on_the_loop"]
    assert spoken["logger"] == "somebody.else" and spoken["queue"] == "default" and "trace_id" not in spoken
    assert succeeded["status"] == "succeeded" and succeeded["job_id"] == 2
    outside = [each for each in told if each["message"].startswith(("worker", "stopp"))]
    assert outside and not any("job_id" in each for each in outside)
    everything = "\n".join(read())
    assert "hunter2" not in everything and "abcdef0123456789" not in everything


def test_whoever_has_set_up_logging_keeps_it() -> None:
    stream, root = io.StringIO(), logging.getLogger()
    before = root.handlers[:]
    set_up_logging(Settings(), stream, every_run=True)
    assert root.handlers == before, "pytest's own handlers were there first"
    root.handlers[:] = []
    try:
        set_up_logging(Settings(log=LogConfig(configure=False)), stream, every_run=True)
        assert not root.handlers
    finally:
        root.handlers[:] = before
