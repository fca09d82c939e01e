"""`make bench-peers`: ours and the others in one run, each on servers of its own, one after the other."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.about import about
from benchmarks.beside import calm, drain, recovery, schedules, session
from benchmarks.beside.close import close
from benchmarks.beside.run import Run, Size
from benchmarks.environment import Missing
from benchmarks.known import LABELS, SYSTEMS, System, chosen
from benchmarks.noise import Lulls
from benchmarks.result import Result
from benchmarks.table import table

Workload = Callable[[Run, System], None]

ALONE: dict[str, Workload] = {
    "enqueue": calm.one_by_one,
    "drain": drain.drains,
    "sustained": calm.sustained,
    "pickup": calm.pickup,
    "handlers": drain.handlers,
    "schedules": schedules.lateness,
}
"""Everybody in turn, so that what is compared was measured in the same minutes. Storing comes first: how much
of it there can be before a drain is known then."""

TOGETHER: dict[str, Callable[[Run, Sequence[System]], None]] = {
    "doubles": schedules.doubles,
    "recovery": recovery.recovery,
}


def main() -> int:
    options = _options()
    systems = chosen(options.peers)
    told: dict[str, dict[str, Any]] = {}
    for system in systems:
        try:
            told[system.key] = session.about(system) | {"server": LABELS[system.server]}
        except (session.Failed, Missing, OSError, subprocess.CalledProcessError) as why:
            told[system.key] = {"label": system.peer.name, "missing": str(why)}
            print(f"  {system.key} is left out: {why}", file=sys.stderr)
        told[system.key] |= {"language": system.peer.language, "ours": system.ours}
    there = [system for system in systems if "missing" not in told[system.key]]
    settings = {name: getattr(options, name) for name in ("scale", "rounds", "patience", "workloads", "all")}
    facts = about(**settings)
    run = Run(options.size, told, all=options.all, lulls=Lulls(options.patience))
    began, path = time.monotonic(), options.json
    # Whoever ends an hour of work wants its servers to end, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended from outside"))
    for name in options.workloads:
        print(name, file=sys.stderr)
        if name in TOGETHER:
            TOGETHER[name](run, there)
        else:
            _in_turn(run, name, there)
            again = close(run, name, there)
            for turn in range(2, options.rounds + 1) if again else ():
                print(f"{name}, those that are close, {turn} of {options.rounds}", file=sys.stderr)
                _in_turn(run, name, again)
        facts["minutes"] = round((time.monotonic() - began) / 60, 1)
        facts["load after"] = round(os.getloadavg()[0], 2)
        result = Result(what="peers", about=facts, systems=told, figures=run.book.figures)
        path = result.write(path)
    print(table(result))
    print(f"written to {path}", file=sys.stderr)
    return 0


def _in_turn(run: Run, workload: str, systems: Sequence[System]) -> None:
    for system in systems:
        ALONE[workload](run, system)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.beside", description=__doc__)
    names = sorted({each.peer.name for each in SYSTEMS} | {each.key for each in SYSTEMS})
    workloads = [*ALONE, *TOGETHER]
    parser.add_argument(
        "--peers", nargs="*", default=[], choices=names, metavar="NAME", help="beside ours; all unless named"
    )
    parser.add_argument("--workloads", nargs="+", default=workloads, choices=workloads, metavar="NAME")
    parser.add_argument("--rounds", type=int, default=3, help="for ours and those that are close to it")
    parser.add_argument(
        "--patience", type=float, default=15, help="seconds to wait for a lull before each; 0 for none"
    )
    parser.add_argument("--scale", type=float, default=1.0, help="of all sizes; to try the harness out")
    parser.add_argument("--schedules", nargs="+", type=int, help="how many are due on one minute")
    parser.add_argument("--cap", type=float, default=Size.cap, help="seconds for a drain")
    parser.add_argument("--watch", type=float, default=Size.watch, help="seconds for jobs to run again")
    parser.add_argument("--all", action="store_true", help="drain a million, too, where that is quick")
    parser.add_argument("--json", type=Path, help="where to write; benchmarks/results/ unless named")
    options = parser.parse_args()
    size = Size(
        cap=options.cap,
        watch=options.watch,
        schedules=tuple(options.schedules) if options.schedules else Size.schedules,
    )
    options.size = size.scaled(options.scale)
    return options


if __name__ == "__main__":
    sys.exit(main())
