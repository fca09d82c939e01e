"""What `docs/scale.md` says in figures: written from the newest results, between its markers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.lines import chart
from benchmarks.scale.mixture import KINDS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "scale.md"
IMAGES = ROOT / "docs" / "images"
RESULTS = ROOT / "benchmarks" / "results"
HOURS: dict[float, str] = {hour * 60: f"{hour:02}:00" for hour in range(0, 25, 4)}
_BLOCK = re.compile(r"(<!-- figures: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def newest() -> Path:
    """The last run: names begin with the date."""
    return max(RESULTS.glob("*-scale.json"))


def filled(page: str, result: Mapping[str, Any]) -> str:
    """The page with these figures."""
    blocks = {
        "machine": _machine,
        "measured": _measured,
        "core": _core,
        "mixture": _mixture,
        "sets": _sets,
        "day": _day,
    }
    return _BLOCK.sub(lambda found: f"{found[1]}{blocks[found[2]](result)}\n{found[3]}", page)


def pictures(result: Mapping[str, Any]) -> dict[str, str]:
    """By file name."""
    days = {row["spread"]: row for row in result["simulated"] if "minutes" in row}
    size = f"{next(iter(days.values()))['schedules'] // 1_000_000}M schedules"

    def lines(kind: str) -> dict[str, list[tuple[float, float]]]:
        return {
            f"{spread}, {row['sets']} set{'s' * (row['sets'] > 1)}": list(enumerate(row["minutes"][kind]))
            for spread, row in days.items()
        }

    due = {spread: list(enumerate(row["minutes"]["due, all sets"])) for spread, row in days.items()}
    across = "UTC, Monday 1 March 2027"
    return {
        "scale-due.svg": chart(f"Slots due in each minute, {size}", across, due, marks=HOURS),
        "scale-late.svg": chart(
            f"Seconds late, p99 of each minute, {size}", across, lines("late p99, s"), marks=HOURS
        ),
        "scale-depth.svg": chart(
            f"Most jobs waiting in one set, {size}", across, lines("waiting in one set"), marks=HOURS
        ),
    }


def write(result: Mapping[str, Any]) -> None:
    """The page and its pictures."""
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), result), encoding="utf-8")
    for name, picture in pictures(result).items():
        (IMAGES / name).write_text(picture, encoding="utf-8")


def read(path: Path) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return result


def _machine(result: Mapping[str, Any]) -> str:
    told = ", ".join(f"{name} {value}" for name, value in result["about"].items())
    return f"Measured with {told}."


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.3g}"


def _measured(result: Mapping[str, Any]) -> str:
    return _table(("figure", ""), [(name, _number(value)) for name, value in result["measured"].items()])


def _core(result: Mapping[str, Any]) -> str:
    """Of one core of the server, and of a megabyte of log."""
    found, rows = result["measured"], []
    for what, name in (("slot, ledger row and job", "burst"), ("job, claim to history", "run")):
        cpu, log = found[f"{name}, server CPU µs"], found[f"{name}, WAL bytes"]
        rows.append((what, _number(cpu), _number(1e6 / cpu), _number(log), _number(log * 10_000 / 1e6)))
    both = [
        sum(found[f"{name}, {kind}"] for name in ("burst", "run")) for kind in ("server CPU µs", "WAL bytes")
    ]
    rows.append(("both", _number(both[0]), _number(1e6 / both[0]), _number(both[1]), _number(both[1] / 100)))
    return _table(
        ("", "µs of a server's core", "a second and core", "WAL bytes", "WAL MB/s at 10,000/s"), rows
    )


def _mixture(result: Mapping[str, Any]) -> str:
    return _table(("rhythm", "share"), [(kind.name, f"{kind.share} %") for kind in KINDS])


def _sets(result: Mapping[str, Any]) -> str:
    head = ("schedules", "primary", "spread", "p99 ≤", "shard sets", "for the work alone")
    more = ("late p50 / p99 / most, s", "ledger late p99, s", "waiting in a set", "busy")
    return _table((*head, *more), [_set(row) for row in result["simulated"]])


def _set(row: Mapping[str, Any]) -> tuple[str, ...]:
    late = row["started"]
    return (
        f"{row['schedules'] // 1_000_000}M",
        row["primary"],
        row["spread"],
        f"{row['target']:g} s",
        f"**{row['sets']:,}**",
        f"{row['least']:,}",
        f"{late['p50']:.1f} / {late['p99']:.1f} / {late['most']:.1f}",
        f"{row['fired']['p99']:.1f}",
        f"{row['deepest']:,}",
        f"{row['busy']:.1%}",
    )


def _day(result: Mapping[str, Any]) -> str:
    rows = [
        (
            f"{row['schedules'] // 1_000_000}M, {row['spread']}",
            f"{row['slots'] / 1e6:,.0f}M",
            f"{row['slots'] / 86_400:,.0f}",
            f"{row['burst']:,}",
            f"{row['triggers']:,}",
            f"{row['WAL, bytes a day'] / 1e9:,.0f} GB",
        )
        for row in result["simulated"]
        if row["primary"] == "measured" and row["target"] == 10
    ]
    head = ("schedules", "slots a day", "slots/s on average", "largest burst", "triggers", "WAL a day")
    return _table(head, rows)
