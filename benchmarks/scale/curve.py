"""How many so far: a line that never falls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field


@dataclass
class Curve:
    """Corners of the line, by time. Two at one time are a jump: so many at once."""

    times: list[float] = field(default_factory=lambda: [0.0])
    totals: list[float] = field(default_factory=lambda: [0.0])

    def add(self, time: float, more: float) -> None:
        """So many more, evenly since the last corner."""
        if more or time > self.times[-1]:
            self.times.append(time)
            self.totals.append(self.totals[-1] + more)

    def jump(self, time: float, more: float) -> None:
        """So many more, at once."""
        self.add(time, 0.0)
        self.add(time, more)

    @property
    def total(self) -> float:
        return self.totals[-1]

    def when(self, numbers: Sequence[float]) -> Iterator[float]:
        """The time of each of these, which are in order: when the line first reached it. A thousandth of one
        is none: sums of fractions are not exact."""
        corner, last = 1, len(self.times) - 1
        for number in numbers:
            while corner < last and self.totals[corner] < number - 1e-3:
                corner += 1
            low, high = self.totals[corner - 1], self.totals[corner]
            start, end = self.times[corner - 1], self.times[corner]
            part = 1.0 if high <= low else min(max((number - low) / (high - low), 0.0), 1.0)
            yield start + part * (end - start)
