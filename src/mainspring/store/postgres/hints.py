"""Where the last claims ended, so that the next one need not walk over what is taken or dead.

Rows that were claimed or deleted stay in the index until vacuum has passed. A claim that starts at the head
of the index gets slower with every job done until then; one that starts behind the last row claimed does
not. What lies before the hints (jobs given back, late commits) is found by sweeps: when a hinted claim comes
back short, and from time to time under full load.

A look from the head of the index walks over every row that was claimed or deleted and that vacuum has not
cleared away. Under a snapshot that another session holds, vacuum clears nothing: a microsecond a row, and
millions of rows in an hour. So a stretch that took long is cut in pieces. The newest is looked at often, for
what comes late or is given back is seldom old; the others in turn, in a small part of the time. Neighbours
that have become quick are one again, and where vacuum keeps up there is one stretch: everything.
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
"""Of one claim that is short of jobs."""
NEAR_EVERY = 1.0
"""Seconds after which a worker that finds enough behind its hints looks before them all the same."""
NEAR_SHARE = 20.0
"""A look at the newest stretch rests so many times as long as it took, but no longer than that."""
BUSY_SHARE, IDLE_SHARE = 100.0, 20.0
"""What part of the time the older ones may take, of a worker with jobs and of one without."""
MOST_CREDIT, MOST_DEBT = 0.05, -0.5
"""Seconds of looking that may be saved up, and owed: a server that hung is not a stretch that is long."""
LONG = 0.001
"""Seconds that a look may take beyond two of the usual ones."""
FULL = 0.05
"""And one that is full of jobs: what takes long is claiming them."""
WHOLE = 0.02
"""And one at everything: as long as that is quick there need not be pieces."""
AT_FIRST = 0.002
"""What is usual before anything is known."""
MOST_PIECES = 64
"""Of one cut."""
MANY, MOST_CUTS = 500, 16_384
"""With so many cuts a look may take twice as long; and there are never more than so many."""
SMALLEST = timedelta(milliseconds=100)
"""No piece is shorter: at 10,000 jobs a second that is a millisecond of dead rows."""
LADDER = 21
"""Steps down from a place to the beginning of time, each twice the last: two weeks in all."""


@dataclass(frozen=True)
class Stretch:
    """Of the order in which jobs are due: behind one place, up to another; or without an end."""

    after: Place | None = None
    until: Place | None = None

    @property
    def is_piece(self) -> bool:
        """Whether it is not everything."""
        return self.after is not None or self.until is not None


EVERYTHING = Stretch()


class Hints:
    """The last place claimed in each (queue, priority), and what is to be looked at before them."""

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
        """Where one claim looks, as long as it is short of jobs. None: behind the hints."""
        if self._asked != (asked := (frozenset(queue_ids), task_ids)):
            # What is not there for the one may be there for the other.
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
        self._idle = True  # or nobody would ask for more
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
        """A look has ended; these are the furthest that it found in each priority level."""
        if not self._enabled:
            return
        for key, place in lasts:
            if stretch is not None and stretch.is_piece:
                # There may be more of them, as after a pause: from here on they come in order.
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
        """Something was put before the hints: it shall be found by the next claim."""
        self._sweep.owe()


class Sweep:
    """Which stretch is to be looked at, and when."""

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
        """What was due up to here has been looked at in every priority level that was open to us."""

    def start_over(self) -> None:
        """Others are asked for than before: what was looked at was not for them."""
        self.floor, self._turn = None, _Turn()
        self.owe()

    def owe(self) -> None:
        """Something was put back before the hints: look there with the next claim."""
        self._owed += 1

    def newest(self, *, short: bool) -> Stretch | None:
        """The newest stretch, if it is to be looked at now. Short of jobs, one looks before one says that
        there are none; and where it is everything, it serves for the look behind the hints, too."""
        rested = self._clock.monotonic() - self._near_at
        wanted = not self._cuts or short or rested >= NEAR_EVERY
        if self._owed or (wanted and rested >= min(self._near_took * NEAR_SHARE, NEAR_EVERY)):
            self._promised = self._owed
            return Stretch(after=self._cuts[-1] if self._cuts else None)
        return None

    def older(self, *, idle: bool) -> Stretch | None:
        """The next of the others, if there is time for one."""
        now = self._clock.monotonic()
        earned = (now - self._counted_at) / (IDLE_SHARE if idle else BUSY_SHARE)
        self._credit, self._counted_at = min(self._credit + earned, MOST_CREDIT), now
        if not self._cuts or self._credit <= 0:
            return None
        until = self._turn.at or self._cuts[-1]
        before = bisect_left(self._cuts, until) - 1
        return Stretch(after=self._cuts[before] if before >= 0 else None, until=until)

    def usual(self, began: float) -> None:
        """A look behind the hints has ended: how long that takes where nothing but our own work is in its
        way."""
        self._usual += (self._clock.monotonic() - began - self._usual) / 8

    def looked(self, stretch: Stretch, began: float, *, full: bool, last: Place | None) -> None:
        """A stretch was looked at. `full`: there may be more in it; `last` is the furthest place claimed."""
        now = self._clock.monotonic()
        # The first of all has connected, and has had its statement planned.
        took, self._cold = 0.0 if self._cold else now - began, False
        long = self._is_long(stretch, took, full)
        if stretch.until is None:
            # What was put back while it was under way it may not have seen.
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
        """Pieces grow with their number: a turn must end, and their list must stay short."""
        return (LONG + 2 * self._usual) * (1 + len(self._cuts) / MANY)

    def _is_long(self, stretch: Stretch, took: float, full: bool) -> bool:
        """Whether it took long twice in a row: once may be anything, a server or ourselves held up."""
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
        """On to the next, or from the newest again; two that are quick need no cut between them."""
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
        # Dead rows, and never a job: whoever claims knows where to cut.
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
    """From the newest of the old stretches to the oldest."""

    def __init__(self) -> None:
        self.began: Place | None = None
        self.at: Place | None = None
        self.took = 0.0


def _between(start: Place, end: Place, pieces: int) -> Iterator[Place]:
    """Even in time, for nothing is known of the rows. What is due in one moment stays together."""
    pieces = max(min(pieces, int((end[0] - start[0]) / SMALLEST)), 1)
    step = (end[0] - start[0]) / pieces
    for piece in range(1, pieces):
        place = (start[0] + step * piece, 0)
        if start < place < end:
            yield place
