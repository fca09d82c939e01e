"""What was recorded, and what has become of it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.guard.counts import KINDS, Counts

FILE = Path(__file__).parent / "baseline.json"
MORE, FEWER = 0.10, 0.25
"""The shares by which a count may differ from what was recorded. Fewer is good news, but what is not recorded
may come back unseen; and on a busy machine threads take more calls at a time."""
SLACK = {"log": 20.0, "statements": 0.1, "trips": 0.1}
"""By which a count may differ, whatever it was: a server notes now and then which transactions it has, and
how many jobs a worker finds with one look is a matter of moments."""
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
"""Each minor version of Python has instructions of its own, and figures of its own."""


@dataclass(frozen=True)
class Change:
    """A count that is not what it was."""

    workload: str
    kind: str
    before: float
    now: float

    @property
    def grew(self) -> bool:
        return self.now > self.before

    @property
    def sentence(self) -> str:
        share = f"{abs(self.now / self.before - 1):.0%}" if self.before else "from nothing"
        word = "more" if self.grew else "fewer"
        return f"{self.workload}: {share} {word} {self.kind}, {self.before:,.6g} before, {self.now:,.6g} now"


def changes(before: Mapping[str, Counts], now: Mapping[str, Counts]) -> Iterator[Change]:
    """Every count beyond the limit, up or down. A workload that only one side knows has all its counts."""
    for workload in [*before, *(each for each in now if each not in before)]:
        old, new = before.get(workload, Counts()), now.get(workload, Counts())
        for kind, was, is_now in zip(KINDS, old.numbers, new.numbers, strict=True):
            share = MORE if is_now > was else FEWER
            if abs(is_now - was) > max(share * was, SLACK.get(kind, 0.0)) + 1e-9:  # fractions are not exact
                yield Change(workload, kind, was, is_now)


def recorded(version: str = VERSION) -> dict[str, Counts] | None:
    """The figures for this version of Python, if there are any."""
    versions = json.loads(FILE.read_text()) if FILE.exists() else {}
    if version not in versions:
        return None
    return {name: Counts(**counts) for name, counts in versions[version].items()}


def record(figures: Mapping[str, Counts], version: str = VERSION) -> None:
    """From now on these; other versions keep theirs."""
    versions = json.loads(FILE.read_text()) if FILE.exists() else {}
    versions[version] = {
        name: {kind: float(f"{number:.6g}") for kind, number in asdict(counts).items()}
        for name, counts in figures.items()
    }
    FILE.write_text(json.dumps(versions, indent=2, sort_keys=True) + "\n")
