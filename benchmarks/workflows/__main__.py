"""`python -m benchmarks.workflows [--ours] [--peers [NAME …]] [--wide N] [--chains N] [--repeat N] …`:
fan-outs and chains of ours and of others in one run; both when neither is named."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from pathlib import Path

from benchmarks import environment
from benchmarks.about import about
from benchmarks.workflows import ours, peer
from benchmarks.workflows.figure import Figure, plain_of, table
from benchmarks.workflows.known import KNOWN

OURS = ours.LABELS["postgresql"]
MEASURE = (
    "Time runs from the start call until the last step's end as the system itself recorded it; servers "
    "begin empty, workers are warm, and every answer is read and checked. The JSON has the time until a "
    "client held the answers, too. × plain: the time of a step by that of a plain job of ours, of as many, "
    "with as many workers. others: the most of the machine that went to processes other than the "
    "benchmark's."
)


async def main() -> None:
    chosen = _arguments()
    both = not chosen.ours and chosen.peers is None
    peers = [one for one in KNOWN if both or one.name in (chosen.peers or ())]
    figures: list[Figure] = []
    facts = _about(chosen)
    for processes in chosen.processes:
        if chosen.ours or both:
            for engine in ours.LABELS:
                sizes = (chosen.wide, chosen.chains, chosen.repeat)
                figures += _told(await ours.measured(engine, processes, *sizes, chosen.limit))
        pairs = [(one, workload) for one in peers for workload in one.workloads]
        for one, workload in pairs:
            size = chosen.chains if workload.chained else chosen.wide
            limits = (processes, chosen.repeat, chosen.limit)
            figures += _told(await asyncio.to_thread(peer.measured, one, workload, size, *limits))
    figures.sort(key=lambda each: each.processes)
    terms = {"measure": MEASURE, OURS: ours.TERMS} | {each.label: each.terms for each in KNOWN}
    print(", ".join(f"{name} {value}" for name, value in facts.items()))
    print(f"\n{table(figures, OURS)}\n")
    for name, text in terms.items():
        print(f"{name}: {text}")
    if chosen.json:
        told = [each.json(plain_of(each, figures, OURS)) for each in figures]
        chosen.json.parent.mkdir(parents=True, exist_ok=True)
        written = {"about": facts, "terms": terms, "figures": told}
        chosen.json.write_text(json.dumps(written, indent=2, ensure_ascii=False) + "\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ours", action="store_true", help="measure ours")
    names = [one.name for one in KNOWN]
    parser.add_argument("--peers", nargs="*", choices=names, help="measure the others, or only those named")
    parser.add_argument("--processes", nargs="+", type=int, default=[1, 2], help="workers, in turn")
    parser.add_argument("--wide", type=int, default=10_000, help="members of a fan-out")
    parser.add_argument("--chains", type=int, default=1000, help="chains of ten steps")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for one measurement")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    chosen = parser.parse_args()
    chosen.peers = names if chosen.peers == [] else chosen.peers
    return chosen


def _told(figures: list[Figure]) -> list[Figure]:
    """Runs take long: each is told as it comes."""
    print(table(figures, OURS), file=sys.stderr)
    return figures


def _about(chosen: argparse.Namespace) -> dict[str, object]:
    versions = {each.name: environment.version(each.name) for each in KNOWN}
    return about(**versions, wide=chosen.wide, chains=chosen.chains, repeat=chosen.repeat)


if __name__ == "__main__":
    asyncio.run(main())
