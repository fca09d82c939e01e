"""What runs say of themselves: progress, which a loop writes while they run, and log lines, which are kept
for the settlement. A run that says nothing costs nothing here."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections import deque
from contextlib import suppress
from contextvars import ContextVar
from datetime import timedelta
from typing import Any, Protocol

from mainspring.clock import Clock
from mainspring.config import CAPTURE_ALL, CAPTURE_NONE
from mainspring.model.job import Claim
from mainspring.model.run import ProgressNote
from mainspring.signals import Signals
from mainspring.store.runs import Runs
from mainspring.telemetry.run_fields import facts

EVERY = timedelta(seconds=1)
"""No job's progress is written more often."""
IDLE = timedelta(seconds=60)


class RunReport:
    """One run's own words. Nothing is heard after the run has ended: a thread that goes on has no claim."""

    __slots__ = ("_capture", "_log_limit", "_reports", "claim", "closed", "latest", "log")

    def __init__(self, claim: Claim, reports: RunReports, log_limit: int, clock: Clock) -> None:
        self.claim = claim
        self.closed = False
        self.latest: tuple[float, str] = (0.0, "")
        self.log = RunLogger(claim, self if log_limit else None, clock)
        self._reports = reports
        self._log_limit = log_limit
        self._capture: LogCapture | None = None

    def progress(self, fraction: float, note: str) -> None:
        """The newest word counts; any thread may say it."""
        if not self.closed:
            self.latest = (fraction, note)
            self._reports.heard(self)

    def add(self, line: str) -> None:
        """Keep a line of the log; any thread may add one."""
        if self.closed:
            return
        if self._capture is None:
            with self._reports.lock:
                self._capture = self._capture or LogCapture(self._log_limit)
        self._capture.add(line)

    def close(self) -> str | None:
        """The run has ended: answer what it logged."""
        self.closed = True
        return None if self._capture is None else self._capture.text()


class RunReports:
    """The reports of one worker's runs, and the loop that writes their progress: all of it in one
    statement, once a second while there is any."""

    name = "progress"

    def __init__(self, runs: Runs, clock: Clock, signals: Signals, *, capture: str, log_limit: int) -> None:
        self._runs = runs
        self._signals = signals
        self._clock = clock
        self._log_limit = 0 if capture == CAPTURE_NONE else log_limit
        self.captures_all = capture == CAPTURE_ALL
        self._root = RootCapture(clock) if self.captures_all else None
        self.by_claim: dict[tuple[int, int], RunReport] = {}
        """Of the runs that have one and go on."""
        self.lock = threading.Lock()
        self._news: dict[tuple[int, int], RunReport] = {}
        self._resting = True
        self._loop: asyncio.AbstractEventLoop | None = None

    def open(self, claim: Claim) -> RunReport:
        """The report of this run, which is about to begin on this event loop."""
        known = self.by_claim.get((claim.job_id, claim.fence))
        if known is not None:
            return known
        self._loop = asyncio.get_running_loop()
        report = self.by_claim[claim.job_id, claim.fence] = RunReport(
            claim, self, self._log_limit, self._clock
        )
        return report

    def known(self, claim: Claim) -> RunReport | None:
        """The report of a run that has been opened and not closed."""
        return self.by_claim.get((claim.job_id, claim.fence))

    def enter(self, claim: Claim) -> None:
        """From here on, whatever the running task, and what it starts, logs anywhere is this run's."""
        if self._root is not None:
            self._root.attach()
            current.set(self.open(claim))

    def close(self, claim: Claim) -> str | None:
        """The run has ended: answer what it logged, if anything."""
        report = self.by_claim.pop((claim.job_id, claim.fence), None)
        return None if report is None else report.close()

    def shut(self) -> None:
        """Hear nothing more."""
        if self._root is not None:
            self._root.detach()

    def heard(self, report: RunReport) -> None:
        """A run has something new to say; called on any thread."""
        with self.lock:
            self._news[report.claim.job_id, report.claim.fence] = report
            wake, self._resting = self._resting, False
        if wake and self._loop is not None:
            with suppress(RuntimeError):  # the event loop has ended meanwhile
                self._loop.call_soon_threadsafe(self._signals.progress_waits.send)

    async def tick(self) -> timedelta:
        with self.lock:
            news, self._news = self._news, {}
            if not news:
                self._resting = True
                return IDLE
        notes = {report.claim.job_id: _note(report) for report in news.values() if not report.closed}
        try:
            if notes:
                await self._runs.note_progress(list(notes.values()), at=self._clock.stamp())
        except BaseException:
            with self.lock:
                self._news = {**news, **self._news}
            raise
        return EVERY


def _note(report: RunReport) -> ProgressNote:
    claim, (fraction, note) = report.claim, report.latest
    return ProgressNote(
        job_id=claim.job_id, worker_id=claim.worker_id, fence=claim.fence, fraction=fraction, note=note
    )


LONGEST_LINE = 8 * 1024


class LogCapture:
    """Lines up to so many bytes, from any thread. Half of them are the first, half are the last."""

    def __init__(self, limit: int) -> None:
        self._half = limit // 2
        self._longest = min(LONGEST_LINE, limit // 4)
        self._lock = threading.Lock()
        self._head: list[bytes] = []
        self._tail: deque[bytes] = deque()
        self._head_size = self._tail_size = 0
        self._lines = self._bytes = 0
        """What was cut out between head and tail."""

    def add(self, line: str) -> None:
        """Keep one line, or several that belong together."""
        text = self._cut(_clean(line))
        size = len(text) + 1
        with self._lock:
            if not self._tail and self._head_size + size <= self._half:
                self._head.append(text)
                self._head_size += size
                return
            self._tail.append(text)
            self._tail_size += size
            while self._tail_size > self._half:
                gone = self._tail.popleft()
                self._tail_size -= len(gone) + 1
                self._lines += 1
                self._bytes += len(gone) + 1

    def text(self) -> str | None:
        """All that was kept; None when nothing was said."""
        with self._lock:
            mark = []
            if self._lines:
                mark = [f"… {self._lines} lines ({self._bytes} bytes) were cut here …".encode()]
            return (
                b"\n".join([*self._head, *mark, *self._tail]).decode() if self._head or self._tail else None
            )

    def _cut(self, text: bytes) -> bytes:
        if len(text) <= self._longest:
            return text
        # A character may be cut in two: what is left of it goes.
        kept = text[: self._longest].decode(errors="ignore")
        return f"{kept}… ({len(text)} bytes)".encode()


def _clean(line: str) -> bytes:
    """No NUL and no lone surrogate, which no database takes; lines that go on are set in, so that no
    message can be taken for two."""
    text = line.replace("\x00", "\N{REPLACEMENT CHARACTER}")
    return "\n    ".join(text.splitlines()).encode("utf-8", "replace")


_log = logging.getLogger("mainspring.job")
_traces = logging.Formatter()


class LineSink(Protocol):
    """Keeps lines."""

    def add(self, line: str) -> None:
        """Keep one."""


current: ContextVar[LineSink | None] = ContextVar("mainspring_run", default=None)
"""Whose lines the loggers of this context write, where all of them are captured."""


class RunLogger(logging.LoggerAdapter[logging.Logger]):
    """`ctx.log`: writes to the process's log, each line with its job, and keeps the lines for the run.
    What is kept does not depend on how quiet the process's log is, but for debugging."""

    def __init__(self, claim: Claim, sink: LineSink | None, clock: Clock) -> None:
        super().__init__(_log, facts(claim))
        self._sink = sink
        self._clock = clock

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        """One line."""
        shown = self.isEnabledFor(level)
        if self._sink is not None and (shown or level >= logging.INFO):
            record = _log.makeRecord(_log.name, level, "", 0, msg, args, _exc_info(kwargs.get("exc_info")))
            self._sink.add(_line(record, self._clock, named=False))
        if shown:
            token = current.set(None)  # it is kept already
            try:
                kwargs["stacklevel"] = kwargs.get("stacklevel", 1) + 1
                super().log(level, msg, *args, **kwargs)
            finally:
                current.reset(token)


class RootCapture(logging.Handler):
    """Keeps what any logger says inside a run, at the level that the loggers let through."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    def attach(self) -> None:
        """Listen. A second time changes nothing."""
        logging.getLogger().addHandler(self)

    def detach(self) -> None:
        """Listen no more."""
        logging.getLogger().removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        sink = current.get()
        if sink is not None:
            sink.add(_line(record, self._clock, named=True))


def _line(record: logging.LogRecord, clock: Clock, *, named: bool) -> str:
    at = clock.now().isoformat(timespec="milliseconds").replace("+00:00", "Z")
    name = f"{record.name}: " if named else ""
    parts = [f"{at} {record.levelname.lower():<7} {name}{_message(record)}"]
    if record.exc_info and record.exc_info[0] is not None:
        parts.append(_traces.formatException(record.exc_info))
    return "\n".join(parts)


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception as error:  # noqa: BLE001 - formatting runs the user's __str__; a log line must not fail a job
        return f"{record.msg!r} (could not be formatted: {type(error).__name__})"


def _exc_info(given: object) -> Any:
    if isinstance(given, BaseException):
        return type(given), given, given.__traceback__
    return given if isinstance(given, tuple) else sys.exc_info() if given else None
