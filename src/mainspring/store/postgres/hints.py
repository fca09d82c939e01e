"""Hints: the places where the last claims ended, so that the next claim does not read claimed or dead rows.

Rows that were claimed or deleted stay in the index until vacuum removes them. A claim that starts at the head
of the index gets slower with every finished job until then. A claim that starts after the last claimed row
does not. Jobs before the hints (jobs that were given back, late commits) are found by sweeps: when a claim
with hints gets too few jobs, and from time to time under full load.

A look from the head of the index reads every row that was claimed or deleted and that vacuum has not removed.
While another session holds an old snapshot, vacuum removes nothing: a row costs a microsecond, and an hour
makes millions of rows. So a stretch that took long is cut in pieces. A sweep looks at the newest piece often,
because jobs that come late or are given back are seldom old. It looks at the other pieces in turn, in a small
part of the time. Two neighbours that have become fast are joined. Where vacuum removes rows in time, there is
one stretch: everything.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from mainspring.clock import Clock

Key = tuple[int, int]
Place = tuple[datetime, int]
MOST_LOOKS = 64
"""The number of looks of one claim that has too few jobs, at most."""
NEAR_EVERY = 1.0
"""Seconds after which a worker looks before its hints, even if it finds enough jobs after them."""
NEAR_SHARE = 20.0
"""The rest after a look at the newest stretch, in durations of the look. It is at most `NEAR_EVERY`."""
BUSY_SHARE, IDLE_SHARE = 100.0, 20.0
"""The share of time for looks at older stretches (one part in so many), for a worker with jobs and without
jobs."""
MOST_CREDIT, MOST_DEBT = 0.05, -0.5
"""The limits of saved and owed seconds for looks. The limit of owed seconds is for a server that hung: the
stretch is not long then."""
LONG = 0.001
"""Seconds that a look may take, in addition to two usual looks."""
FULL = 0.05
"""Additional seconds for a look that is full of jobs, because the claims take long."""
WHOLE = 0.02
"""Additional seconds for a look at everything: while this is fast, no pieces are necessary."""
AT_FIRST = 0.002
"""The duration of a usual look, before the first measurement."""
MOST_PIECES = 64
"""The number of pieces of one cut, at most."""
MANY, MOST_CUTS = 500, 16_384
"""With `MANY` cuts a look may take twice as long. There are at most `MOST_CUTS`."""
SMALLEST = timedelta(milliseconds=100)
"""The shortest piece: at 10,000 jobs a second it has a millisecond of dead rows."""
LADDER = 21
"""The number of steps back in time from a place. Each step is twice as long as the step before: two weeks in
all."""


@dataclass(frozen=True)
class Stretch:
    """A part of the order in which jobs are due: after one place, up to another place or without an end."""

    after: Place | None = None
    until: Place | None = None

    @property
    def is_piece(self) -> bool:
        """Whether the stretch is only a part."""
        return self.after is not None or self.until is not None


EVERYTHING = Stretch()


class Hints:
    """The last claimed place in each (queue, priority), and the stretches before these places."""

    def __init__(self, clock: Clock, *, enabled: bool) -> None:
        self._enabled = enabled
        self._sweep = Sweep(clock)
        self._last: Place | None = None
        self._asked: object = None
        self._idle = False
        self.places: dict[Key, Place] = {}

    @property
    def floor(self) -> Place | None:
        """Where to start in a priority level that has no hint."""
        return self._sweep.floor

    def looks(self, queue_ids: Iterable[int], task_ids: Sequence[int]) -> Iterator[Stretch | None]:
        """The stretches where one claim looks while it has too few jobs. None means: after the hints."""
        if self._asked != (asked := (frozenset(queue_ids), task_ids)):
            # A stretch without jobs for the old queues and tasks may have jobs for the new ones.
            self._asked = asked
            self._sweep.start_over()
        if not self._enabled or (not self.places and self.floor is None):
            yield EVERYTHING
            return
        idle, self._idle = self._idle, False
        before = self._sweep.newest(short=False) or self._sweep.older(idle=idle)
        if before is not None:
            yield before
        if before == EVERYTHING:
            return
        yield None
        self._idle = True  # the caller goes on only if it has too few jobs
        if (before is None or before.until) and (newest := self._sweep.newest(short=True)):
            yield newest
        for _ in range(MOST_LOOKS):
            if (older := self._sweep.older(idle=True)) is None:
                return
            yield older
            if older.after is None:
                return

    def looked(
        self,
        stretch: Stretch | None,
        began: float,
        lasts: Iterable[tuple[Key, Place]],
        *,
        full: bool,
    ) -> None:
        """Note the end of a look. `lasts` has the last job that it found in each priority level."""
        if not self._enabled:
            return
        for key, place in lasts:
            if stretch is not None and stretch.is_piece:
                # There may be more such jobs, as after a pause. From here on, claims find them in order.
                if full:
                    self.places[key] = place
            elif key not in self.places or place > self.places[key]:
                self.places[key] = place
            if self._last is None or place > self._last:
                self._last = place
        if stretch is None:
            self._sweep.usual(began)
        else:
            self._sweep.looked(stretch, began, full=full, last=self._last)

    def put_back(self) -> None:
        """Note that a job was put before the hints, so that the next claim looks there."""
        self._sweep.owe()


class Sweep:
    """Decides which stretch a claim looks at, and when."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._cuts: list[Place] = []
        self._near_at = self._counted_at = clock.monotonic()
        self._near_took = self._credit = 0.0
        self._usual = AT_FIRST
        self._cold = True
        self._owed = self._promised = 0
        self._long_once: set[tuple[Place | None, Place | None]] = set()
        self._turn = _Turn()
        self.floor: Place | None = None
        """The place up to which all priority levels of these queues have been looked at."""

    def start_over(self) -> None:
        """Begin again for other queues and tasks, because the past looks were not for these."""
        self.floor, self._turn = None, _Turn()
        self.owe()

    def owe(self) -> None:
        """Note that a job was put before the hints: the next claim looks there."""
        self._owed += 1

    def newest(self, *, short: bool) -> Stretch | None:
        """The newest stretch, if a claim should look at it now. A claim with too few jobs looks there before
        it ends. If the stretch is everything, this look replaces the look after the hints."""
        rested = self._clock.monotonic() - self._near_at
        wanted = not self._cuts or short or rested >= NEAR_EVERY
        if self._owed or (wanted and rested >= min(self._near_took * NEAR_SHARE, NEAR_EVERY)):
            self._promised = self._owed
            return Stretch(after=self._cuts[-1] if self._cuts else None)
        return None

    def older(self, *, idle: bool) -> Stretch | None:
        """The next older stretch, if there is time for it."""
        now = self._clock.monotonic()
        earned = (now - self._counted_at) / (IDLE_SHARE if idle else BUSY_SHARE)
        self._credit, self._counted_at = min(self._credit + earned, MOST_CREDIT), now
        if not self._cuts or self._credit <= 0:
            return None
        until = self._turn.at or self._cuts[-1]
        before = bisect_left(self._cuts, until) - 1
        return Stretch(after=self._cuts[before] if before >= 0 else None, until=until)

    def usual(self, began: float) -> None:
        """Note the end of a look after the hints. It measures the usual duration, without dead rows."""
        self._usual += (self._clock.monotonic() - began - self._usual) / 8

    def looked(self, stretch: Stretch, began: float, *, full: bool, last: Place | None) -> None:
        """Note the end of a look at a stretch. `full` says that it may have more jobs; `last` is the last
        claimed place."""
        now = self._clock.monotonic()
        # The first look is not measured, because it also connects and plans the statement.
        took, self._cold = 0.0 if self._cold else now - began, False
        long = self._is_long(stretch, took, full)
        if stretch.until is None:
            # The look may not have seen jobs that were put back meanwhile.
            self._near_at, self._near_took, self._owed = now, took, self._owed - self._promised
            self._promised = 0
            if long:
                self._cut(stretch, last, pieces=int(took / self._limit))
            elif not stretch.is_piece and not full:
                self.floor = last
            return
        self._credit = max(self._credit - took, MOST_DEBT)
        if long:
            self._cut(stretch, last, pieces=int(took / self._limit) + 1)
        self._pass(stretch, took)

    @property
    def _limit(self) -> float:
        """The duration of a long look. It increases with the number of pieces, so that a turn ends and the
        list stays short."""
        return (LONG + 2 * self._usual) * (1 + len(self._cuts) / MANY)

    def _is_long(self, stretch: Stretch, took: float, full: bool) -> bool:
        """Whether the stretch took long twice in a row. One long look may have another cause, such as a slow
        server."""
        key = (stretch.after, stretch.until)
        if took <= self._limit + FULL * full + WHOLE * (not stretch.is_piece):
            self._long_once.discard(key)
            return False
        if key in self._long_once:
            self._long_once.remove(key)
            return True
        if len(self._long_once) >= MOST_CUTS:
            self._long_once.clear()
        self._long_once.add(key)
        return False

    def _pass(self, stretch: Stretch, took: float) -> None:
        """Go to the next stretch, or to the newest again. Join two stretches that are fast."""
        turn = self._turn
        if turn.began is None:
            turn.began = stretch.until
        elif turn.took + took <= self._limit:
            self._join(stretch.until)
            took += turn.took
        turn.at, turn.took = stretch.after, took
        if stretch.after is None:
            self.floor = turn.began
            self._turn = _Turn()
            if took <= self._limit and len(self._cuts) == 1:
                self._cuts.clear()

    def _cut(self, stretch: Stretch, last: Place | None, *, pieces: int) -> None:
        end = stretch.until or last
        # Without a claimed place there is no place to cut: the stretch has only dead rows.
        if end is None or len(self._cuts) >= MOST_CUTS:
            return
        if stretch.after is None:
            new = {(end[0] - timedelta(seconds=2**step), 0) for step in range(LADDER)}
        else:
            new = set(_between(stretch.after, end, min(pieces, MOST_PIECES)))
        for place in new | {end}:
            at = bisect_left(self._cuts, place)
            if self._cuts[at : at + 1] != [place]:
                self._cuts.insert(at, place)

    def _join(self, place: Place | None) -> None:
        if place is not None:
            at = bisect_left(self._cuts, place)
            if self._cuts[at : at + 1] == [place]:
                del self._cuts[at]


class _Turn:
    """One turn through the older stretches, from the newest to the oldest."""

    def __init__(self) -> None:
        self.began: Place | None = None
        self.at: Place | None = None
        self.took = 0.0


def _between(start: Place, end: Place, pieces: int) -> Iterator[Place]:
    """Places with equal distances in time, because the number of rows is not known. Jobs with the same moment
    stay together."""
    pieces = max(min(pieces, int((end[0] - start[0]) / SMALLEST)), 1)
    step = (end[0] - start[0]) / pieces
    for piece in range(1, pieces):
        place = (start[0] + step * piece, 0)
        if start < place < end:
            yield place
