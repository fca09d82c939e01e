"""Horizontal bars as SVG, by hand: each with its value in print, readable on light and on dark."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from benchmarks.table import number

LABEL, BAR, VALUE = 250, 430, 110
HEIGHT, GAP, TOP = 14, 10, 52

STYLE = (
    ".ground{fill:#fff}"
    "text{font:13px system-ui,sans-serif;fill:#1f2328}.title{font-weight:600;font-size:15px}"
    ".faint{fill:#59636e;font-size:12px}.line{stroke:#d1d9e0}.a{fill:#8b949e}.b{fill:#c5ccd3}"
    ".ours.a{fill:#0969da}.ours.b{fill:#80bcff}"
    "@media (prefers-color-scheme:dark){.ground{fill:#0d1117}"
    "text{fill:#e6edf3}.faint{fill:#9198a1}.line{stroke:#3d444d}"
    ".a{fill:#767e88}.b{fill:#4b535d}.ours.a{fill:#4493f8}.ours.b{fill:#1f5da8}}"
)


@dataclass(frozen=True)
class Row:
    """One system; None where there is no value."""

    label: str
    values: tuple[float | None, ...]
    ours: bool = False


def bars(title: str, legend: Sequence[str], rows: Sequence[Row]) -> str:
    """On a logarithmic scale: what differs by a thousand has to be seen beside each other. A bar's length is
    no measure of a ratio, so each has its value beside it."""
    known = [value for row in rows for value in row.values if value]
    low = 10.0 ** math.floor(math.log10(min(known, default=1)))
    high = 10.0 ** math.ceil(math.log10(max(known, default=10)) + 1e-9)
    high = max(high, low * 10)

    def wide(value: float) -> float:
        share = (math.log10(max(value, low)) - math.log10(low)) / (math.log10(high) - math.log10(low))
        return max(share * BAR, 2)

    each = HEIGHT * len(legend) + GAP
    bottom = TOP + each * len(rows)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LABEL + BAR + VALUE} {bottom + 24}" '
        f'role="img" aria-label="{escape(title)}">',
        f"<style>{STYLE}</style>",
        # Its own ground: a page may be light where the reader's system is dark.
        '<rect class="ground" width="100%" height="100%"/>',
        f'<text class="title" x="8" y="20">{escape(title)}</text>',
        f'<text class="faint" x="8" y="40">{escape(_keyed(legend))}</text>',
    ]
    decade = low
    while decade <= high * 1.0001:
        x = LABEL + wide(decade)
        parts.append(f'<line class="line" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 4}" y2="{bottom}"/>')
        parts.append(
            f'<text class="faint" x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{number(decade)}</text>'
        )
        decade *= 10
    for index, row in enumerate(rows):
        top = TOP + index * each
        middle = top + HEIGHT * len(legend) / 2 + 4
        parts.append(f'<text x="{LABEL - 8}" y="{middle:.1f}" text-anchor="end">{escape(row.label)}</text>')
        for turn, value in enumerate(row.values):
            y = top + turn * HEIGHT
            if value is None:
                parts.append(f'<text class="faint" x="{LABEL + 6}" y="{y + 11}">–</text>')
                continue
            kind = f"{'ours ' if row.ours else ''}{'ab'[turn % 2]}"
            length = wide(value)
            parts.append(
                f'<rect class="{kind}" x="{LABEL}" y="{y}" width="{length:.1f}" height="{HEIGHT - 2}"/>'
            )
            parts.append(f'<text x="{LABEL + length + 6:.1f}" y="{y + 11}">{number(value)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _keyed(legend: Sequence[str]) -> str:
    """Which bar is which, in words: colours alone do not tell everybody."""
    if len(legend) == 1:
        return f"{legend[0]}; logarithmic"
    return f"above: {legend[0]}; below: {', '.join(legend[1:])}; logarithmic"
