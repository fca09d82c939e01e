"""`python -m benchmarks.guard [--write]`: counts of a job, beside what was recorded."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping

from benchmarks.guard.baseline import VERSION, changes, record, recorded
from benchmarks.guard.counts import KINDS, Counts
from benchmarks.guard.measure import measured
from benchmarks.guard.workloads import STORES, WORKLOADS

UNITS = {f"{store}: {each.name}": each.unit for each in WORKLOADS for store in STORES}
AGAIN = 3
"""Times the usual rounds, for what is recorded, and for what seems to have changed."""
ADVICE = "More than meant? Find it. As meant, or fewer? `make guard ARGS=--write` records it."


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="record these counts as the baseline")
    chosen = parser.parse_args()
    before, now = recorded(), measured(AGAIN if chosen.write else 1)
    if before is not None and not chosen.write:
        # Rounds that others disturbed only ever seem to cost more: what is real is there the second time.
        now |= measured(AGAIN, {each.workload for each in changes(before, now) if each.workload in now})
    show(before or {}, now)
    if chosen.write:
        record(now)
        print(f"\nrecorded for Python {VERSION}")
        return 0
    if before is None:
        print(f"\nnothing is recorded for Python {VERSION}: --write does that")
        return 2
    found = list(changes(before, now))
    for change in found:
        print(change.sentence)
    if found:
        print(ADVICE)
    return 1 if found else 0


def show(before: Mapping[str, Counts], now: Mapping[str, Counts]) -> None:
    """A line for each workload; below it how far each count is from what was recorded."""
    print(f"Python {VERSION}; of one job, slot or pass" + " " * 15 + "".join(f"{kind:>14}" for kind in KINDS))
    for name, counts in now.items():
        title = f"{name}, a {UNITS.get(name, 'job')}"
        print(f"{title:<50}" + "".join(f"{number:>14,.5g}" for number in counts.numbers))
        if name in before:
            pairs = zip(before[name].numbers, counts.numbers, strict=True)
            shares = (f"{new / old - 1:+.1%}" if old else "" for old, new in pairs)
            print(" " * 50 + "".join(f"{share:>14}" for share in shares))


if __name__ == "__main__":
    sys.exit(main())
