"""`python -m benchmarks.scale [--schedules N] [--from FILE]`: measure one primary, then compute from it.

It fills a PostgreSQL with schedules and measures it, simulates a day of 10M and 100M schedules with what was
measured, and writes the results, the figures of docs/scale.md and its pictures. `--from` takes the
measurements of an earlier run and does the rest.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.scale import page
from benchmarks.scale.sizing import simulated
from mainspring import __version__

SIZES = (10_000_000, 100_000_000)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--schedules", type=int, default=1_000_000, help="in the real database (10000000)")
    parser.add_argument("--jobs", type=int, default=50_000, help="drained to see what a job costs")
    parser.add_argument("--from", dest="earlier", type=Path, help="results whose measurements are taken")
    parser.add_argument("--page", action="store_true", help="with --from: only write the page from it")
    chosen = parser.parse_args()
    if chosen.earlier is None:
        from benchmarks.scale.real import measured  # it needs a database's driver; computing does not

        result: dict[str, Any] = {"about": about(), "measured": measured(chosen.schedules, chosen.jobs)}
    else:
        result = page.read(chosen.earlier)
    if not chosen.page:
        result["simulated"] = simulated(result["measured"], SIZES)
        path = chosen.earlier or page.RESULTS / f"{datetime.now(UTC):%Y-%m-%d}-scale.json"
        path.write_text(_json(result), encoding="utf-8")
        print(f"results: {path}")
    page.write(result)


def about() -> dict[str, object]:
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    return {
        "mainspring": __version__,
        "commit": commit.stdout.strip() or "unknown",
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        # What others took is in every figure of time.
        "load of others at the start": round(os.getloadavg()[0], 1),
    }


def _json(result: object) -> str:
    """Indented, but for the minutes of a day: those are a line each."""
    text = json.dumps(result, indent=1, ensure_ascii=False)
    shorter: list[str] = []
    for line in text.splitlines():
        bare = line.strip()
        if shorter and (bare.rstrip(",").replace(".", "", 1).isdigit() or bare.startswith("]")):
            shorter[-1] += bare
        else:
            shorter.append(line)
    return "\n".join(shorter) + "\n"


if __name__ == "__main__":
    main()
