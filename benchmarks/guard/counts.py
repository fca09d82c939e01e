"""Counts of one stretch of work, and how they are taken apart."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace


@dataclass(frozen=True)
class Counts:
    """What a stretch of work took. Seconds are not among it: those belong to the machine."""

    instructions: float = 0
    """Bytecode instructions of every thread."""
    calls: float = 0
    """From Python into functions written in C."""
    statements: float = 0
    """Run by the database."""
    trips: float = 0
    """To the database and back; an SQLite file has none."""
    log: float = 0
    """Bytes of write-ahead log."""

    def less(self, other: Counts) -> Counts:
        return Counts(*(mine - theirs for mine, theirs in zip(self.numbers, other.numbers, strict=True)))

    def over(self, jobs: int) -> Counts:
        return Counts(*(each / jobs for each in self.numbers))

    def only(self, kinds: tuple[str, ...]) -> Counts:
        """These counts, and zero for the others."""
        return replace(self, **{kind: 0.0 for kind in KINDS if kind not in kinds})

    @property
    def numbers(self) -> tuple[float, ...]:
        return (self.instructions, self.calls, self.statements, self.trips, self.log)


KINDS = tuple(each.name for each in fields(Counts))


def least(samples: list[Counts]) -> Counts:
    """The smallest of each. What disturbs (a heartbeat, a poll, one more pass) only ever adds."""
    return Counts(*map(min, zip(*(each.numbers for each in samples), strict=True)))
