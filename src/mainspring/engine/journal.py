"""What runs say of themselves while they run: progress, written by a loop, and log lines, kept for the
settlement. A run that says nothing costs nothing here."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

from mainspring.clock import Clock
from mainspring.config import CAPTURE_ALL, CAPTURE_NONE
from mainspring.engine.capture import Capture
from mainspring.engine.runlog import RootCapture, RunLogger, current
from mainspring.model.job import Claim
from mainspring.model.run import ProgressNote
from mainspring.store.runs import Runs

EVERY = timedelta(seconds=1)
"""No job's progress is written more often."""
IDLE = timedelta(seconds=60)


class Report:
    """One run's own words. Nothing is heard after the run has ended: a thread that goes on has no claim."""

    __slots__ = ("_capture", "_journal", "_log_limit", "claim", "closed", "latest", "log")

    def __init__(self, claim: Claim, journal: Journal, log_limit: int, clock: Clock) -> None:
        self.claim = claim
        self.closed = False
        self.latest: tuple[float, str] = (0.0, "")
        self.log = RunLogger(claim, self if log_limit else None, clock)
        self._journal = journal
        self._log_limit = log_limit
        self._capture: Capture | None = None

    def progress(self, fraction: float, note: str) -> None:
        """The newest word counts; any thread may say it."""
        if not self.closed:
            self.latest = (fraction, note)
            self._journal.heard(self)

    def add(self, line: str) -> None:
        """Keep a line of the log; any thread may add one."""
        if self.closed:
            return
        if self._capture is None:
            with self._journal.lock:
                self._capture = self._capture or Capture(self._log_limit)
        self._capture.add(line)

    def close(self) -> str | None:
        """The run has ended: answer what it logged."""
        self.closed = True
        return None if self._capture is None else self._capture.text()


class Journal:
    """The reports of one worker's runs, and the loop that writes their progress: all of it in one
    statement, once a second while there is any."""

    name = "progress"

    def __init__(self, runs: Runs, clock: Clock, *, capture: str, log_limit: int) -> None:
        self._runs = runs
        self._clock = clock
        self._log_limit = 0 if capture == CAPTURE_NONE else log_limit
        self.captures_all = capture == CAPTURE_ALL
        self._root = RootCapture(clock) if self.captures_all else None
        self.reports: dict[tuple[int, int], Report] = {}
        """Of the runs that have one and go on."""
        self.lock = threading.Lock()
        self._news: dict[tuple[int, int], Report] = {}
        self._resting = True
        self._loop: asyncio.AbstractEventLoop | None = None
        self.on_arrival: Callable[[], None] = lambda: None

    def open(self, claim: Claim) -> Report:
        """The report of this run, which is about to begin on this event loop."""
        known = self.reports.get((claim.job_id, claim.fence))
        if known is not None:
            return known
        self._loop = asyncio.get_running_loop()
        report = self.reports[claim.job_id, claim.fence] = Report(claim, self, self._log_limit, self._clock)
        return report

    def known(self, claim: Claim) -> Report | None:
        """The report of a run that has been opened and not closed."""
        return self.reports.get((claim.job_id, claim.fence))

    def enter(self, claim: Claim) -> None:
        """From here on, whatever the running task, and what it starts, logs anywhere is this run's."""
        if self._root is not None:
            self._root.attach()
            current.set(self.open(claim))

    def close(self, claim: Claim) -> str | None:
        """The run has ended: answer what it logged, if anything."""
        report = self.reports.pop((claim.job_id, claim.fence), None)
        return None if report is None else report.close()

    def shut(self) -> None:
        """Hear nothing more."""
        if self._root is not None:
            self._root.detach()

    def heard(self, report: Report) -> None:
        """A run has something new to say; called on any thread."""
        with self.lock:
            self._news[report.claim.job_id, report.claim.fence] = report
            wake, self._resting = self._resting, False
        if wake and self._loop is not None:
            with suppress(RuntimeError):  # the event loop has ended meanwhile
                self._loop.call_soon_threadsafe(self.on_arrival)

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


def _note(report: Report) -> ProgressNote:
    claim, (fraction, note) = report.claim, report.latest
    return ProgressNote(
        job_id=claim.job_id, worker_id=claim.worker_id, fence=claim.fence, fraction=fraction, note=note
    )
