"""`python -m benchmarks.report [--results FOLDER] [--docs FOLDER]`: write the page and its pictures."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from benchmarks.report.page import page, pictures
from benchmarks.result import FOLDER, Result

DOCS = Path(__file__).parents[2] / "docs"
NAME = "benchmarks.md"
TOLD = {"peers": 2}
"""Runs of a kind that are told together. Beside others, a single one may have had a bad hour."""


def made(results: Path = FOLDER) -> dict[str, str]:
    """Every file of the page, by its path below `docs/`, of the newest results of each kind."""
    newest: dict[str, list[Result]] = {}
    for path in sorted(results.glob("*.json"), key=lambda each: each.stem):
        # Names begin with the date. Files of another form belong to pages of their own.
        if "systems" in json.loads(path.read_text(encoding="utf-8")):
            found = Result.read(path)
            runs = newest.setdefault(found.what, [])
            runs.append(found)
            del runs[: -TOLD.get(found.what, 1)]
    grown = max(results.glob("*-growth.json"), default=None)
    curves = None if grown is None else json.loads(grown.read_text(encoding="utf-8"))
    peers = newest.pop("peers", [])
    once = {what: run for what, [run] in sorted(newest.items())}
    text = page(peers, once.pop("ours", None), list(once.values()), curves)
    drawn = {f"images/{name}": text for name, text in pictures(peers, curves).items()}
    return {NAME: text, **drawn}


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.report", description=__doc__)
    parser.add_argument("--results", type=Path, default=FOLDER)
    parser.add_argument("--docs", type=Path, default=DOCS)
    options = parser.parse_args()
    (options.docs / "images").mkdir(parents=True, exist_ok=True)
    for name, text in made(options.results).items():
        (options.docs / name).write_text(text, encoding="utf-8")
        print(options.docs / name)


if __name__ == "__main__":
    main()
