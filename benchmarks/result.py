"""The one format of results: a JSON file for each run in `results/`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.figure import Book, Figure
from benchmarks.goals import judged

FOLDER = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Result:
    """One run."""

    what: str
    """`ours`, `peers` or what else was measured: the file's name ends with it."""
    about: Mapping[str, Any]
    systems: Mapping[str, Mapping[str, Any]]
    """By the name that figures have: what each program says of itself."""
    figures: Sequence[Figure]

    def figure(self, system: str, measure: str) -> Figure | None:
        """The one with a value."""
        found = (each for each in self.figures if (each.system, each.measure) == (system, measure))
        return next((each for each in found if each.repeats), None)

    def value(self, system: str, measure: str) -> float | None:
        found = self.figure(system, measure)
        return None if found is None else found.value

    def name(self, system: str) -> str:
        """As a reader knows it."""
        return ", ".join(filter(None, [self.label(system), self.systems[system].get("server", "")]))

    def label(self, system: str) -> str:
        """The same without its server."""
        return str(self.systems[system].get("label", system))

    def ours(self, system: str) -> bool:
        return bool(self.systems[system].get("ours"))

    def others(self, language: str, server: str) -> list[str]:
        """Systems that are not ours, written in this language, on this server."""
        wanted = {"ours": False, "language": language, "server": server}
        return [key for key, told in self.systems.items() if wanted.items() <= told.items()]

    def write(self, path: Path | None = None) -> Path:
        """To this file, or where results are kept, under today's date."""
        path = path or FOLDER / f"{datetime.now(UTC):%Y-%m-%d}-{self.what}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        told = {
            "what": self.what,
            "about": self.about,
            "systems": self.systems,
            "goals": list(judged(self.figures)),
            "figures": [each.json() for each in self.figures],
        }
        path.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        return path

    @classmethod
    def read(cls, path: Path) -> Result:
        told = json.loads(path.read_text(encoding="utf-8"))
        figures = [Figure.of(each) for each in told["figures"]]
        return cls(what=told["what"], about=told["about"], systems=told["systems"], figures=figures)


def joined(runs: Sequence[Result]) -> Result:
    """Several runs of the same as one, with the repeats of all. What is said of it is said of the last."""
    book = Book()
    for run in runs:
        for figure in run.figures:
            book.join(figure)
    last = runs[-1]
    systems = {key: told for run in runs for key, told in run.systems.items()}
    return Result(what=last.what, about=last.about, systems=systems, figures=book.figures)


def newest(what: str, folder: Path = FOLDER) -> Path | None:
    """The last run of this kind: names begin with the date."""
    return max(folder.glob(f"*-{what}.json"), default=None)
