"""Counts what happens in this process, and adds it to the statistics in the store every few seconds."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from datetime import timedelta

from mainspring.clock import Clock
from mainspring.entropy import Entropy
from mainspring.model.run import Reason, Verdict
from mainspring.model.stats import BOUNDS, BUCKETS, OF_VERDICT, OTHER, PLACES, Counted, Tally, bucket
from mainspring.store.stats import Stats
from mainspring.telemetry.events import (
    Event,
    JobsExpired,
    JobsQuarantined,
    ProcessesReaped,
    RunEnded,
    RunStarted,
    SlotsFired,
)
from mainspring.triggers.misfire import LATE

EVERY = timedelta(seconds=10)
MOST_KEYS = 500
"""Tasks and queues that are counted separately between two passes; all others are counted as one."""

Key = tuple[str, str]
_DEAD = Verdict.DEAD  # before Python 3.12 a member of an enum is as slow as a call
FLEET: Key = ("", "")


class _Sheet:
    """What has been counted for one task in one queue."""

    __slots__ = ("counts", "tooks", "waits")

    def __init__(self) -> None:
        self.counts, self.waits, self.tooks = [0] * PLACES, [0] * BUCKETS, [0] * BUCKETS


class StatisticsCollector:
    """A sink for events and the loop that empties it. What it has when the process is killed is lost:
    statistics are not the record. Events are counted on the event loop that this runs on."""

    name = "tally"

    def __init__(self, stats: Stats, clock: Clock, entropy: Entropy) -> None:
        self._stats = stats
        self._clock = clock
        self._entropy = entropy
        self._sheets: dict[Key, _Sheet] = {}

    def hears(self, kind: type[Event]) -> bool:
        """An event that is sent once a job, and not counted, need not be made for this sink."""
        return kind is not RunStarted

    def hear(self, event: Event) -> None:
        """Count what is counted."""
        if type(event) is RunEnded:
            self._run(event)
        elif isinstance(event, SlotsFired):
            self._slots(event)
        elif isinstance(event, JobsExpired | JobsQuarantined):
            # There may be an event of the last run of such a job, too; its death is counted here.
            self._sheet(FLEET).counts[Counted.DIED] += len(event.job_ids)
        elif isinstance(event, ProcessesReaped):
            self._sheet(FLEET).counts[Counted.CRASHED] += event.jobs

    def hear_all(self, events: Sequence[Event]) -> None:
        """The same for many at once, most of which are runs."""
        for event in events:
            if type(event) is RunEnded:
                self._run(event)
            else:
                self.hear(event)

    async def tick(self) -> timedelta:
        await self.flush()
        return EVERY * (0.75 + 0.5 * self._entropy.fraction())

    async def flush(self) -> None:
        """Add everything now. What could not be added is kept for the next time."""
        if not self._sheets:
            return
        sheets, self._sheets = self._sheets, {}
        sheets.setdefault(FLEET, _Sheet())  # its row says how far the log had come
        try:
            await self._stats.add(
                [
                    Tally(
                        task=task,
                        queue=queue,
                        counts=tuple(sheet.counts),
                        waits=tuple(sheet.waits),
                        tooks=tuple(sheet.tooks),
                    )
                    for (task, queue), sheet in sheets.items()
                ],
                at=self._clock.stamp(),
            )
        except BaseException:
            self._put_back(sheets)
            raise

    def _run(self, event: RunEnded) -> None:
        key = event.task, event.queue
        sheet = self._sheets.get(key) or self._sheet(key)
        sheet.counts[OF_VERDICT[event.verdict]] += 1
        # Most runs give no reason: nothing is asked of them that costs a call, once a job.
        if event.reason is not None or event.verdict is _DEAD:
            sheet.counts[Counted.DIED] += event.verdict is _DEAD or event.reason is not Reason.CRASHED
        # Not `bucket`, once a job.
        sheet.tooks[bisect_left(BOUNDS, event.took.total_seconds())] += 1
        if event.waited is not None:
            sheet.waits[bisect_left(BOUNDS, event.waited.total_seconds())] += 1

    def _slots(self, event: SlotsFired) -> None:
        sheet = self._sheet(FLEET)
        sheet.counts[Counted.FIRED] += event.fired
        sheet.counts[Counted.SKIPPED] += event.skipped
        if event.late > LATE:
            sheet.counts[Counted.LATE] += event.fired + event.skipped
        sheet.waits[bucket(event.late)] += event.fired + event.skipped

    def _sheet(self, key: Key) -> _Sheet:
        sheet = self._sheets.get(key)
        if sheet is None:
            if len(self._sheets) >= MOST_KEYS and key != FLEET:
                key = (OTHER, OTHER)
            sheet = self._sheets.setdefault(key, _Sheet())
        return sheet

    def _put_back(self, sheets: dict[Key, _Sheet]) -> None:
        for key, old in sheets.items():
            new = self._sheet(key)
            for mine, theirs in ((new.counts, old.counts), (new.waits, old.waits), (new.tooks, old.tooks)):
                mine[:] = map(sum, zip(mine, theirs, strict=True))
