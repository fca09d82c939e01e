"""A small chart of lines as SVG, for a page that is read in the light and in the dark."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 760, 260
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 34, 40
COLOURS = ("#2a78d6", "#d6602a", "#1f9e6e", "#8a56c2")

Points = Sequence[tuple[float, float]]


def chart(
    title: str,
    across: str,
    lines: Mapping[str, Points],
    *,
    marks: Mapping[float, str],
    logarithmic: bool = True,
) -> str:
    """Lines by name, from zero upwards; `marks` are the words below."""
    highest = max((y for points in lines.values() for _, y in points), default=1.0)
    most = max((x for points in lines.values() for x, _ in points), default=1.0) or 1.0
    steps = _powers(highest) if logarithmic else _even(highest)
    height = math.log1p if logarithmic else float
    top = height(steps[-1])

    def at(x: float, y: float) -> tuple[float, float]:
        right = LEFT + (WIDTH - LEFT - RIGHT) * x / most
        return round(right, 1), round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * height(y) / top, 1)

    parts = [_head(title)]
    for step in steps:
        _, y = at(0, step)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4}" text-anchor="end">{short(step)}</text>')
    for x, word in marks.items():
        parts.append(
            f'<text x="{at(x, 0)[0]}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{escape(word)}</text>'
        )
    parts.append(f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 6}" text-anchor="end">{escape(across)}</text>')
    for number, (name, points) in enumerate(lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        corners = " ".join(f"{x},{y}" for x, y in (at(*point) for point in points))
        parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="1.2" points="{corners}"/>')
        x = LEFT + number * 170
        parts.append(f'<rect x="{x}" y="{HEIGHT - 15}" width="10" height="10" fill="{colour}"/>')
        parts.append(f'<text x="{x + 14}" y="{HEIGHT - 6}">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _head(title: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(title)}">\n'
        "<style>text{font:12px sans-serif;fill:#555}.grid{stroke:#8884;stroke-width:1}"
        "@media(prefers-color-scheme:dark){text{fill:#bbb}}</style>\n"
        f'<text x="{LEFT}" y="18" style="font-weight:600">{escape(title)}</text>'
    )


def _even(highest: float) -> list[float]:
    """Zero and up to five equal steps of one digit."""
    size = 10.0 ** math.floor(math.log10(highest or 1.0))
    step = next(each * size for each in (0.2, 0.5, 1.0, 2.0) if each * size * 5 >= highest)
    return [round(step * number, 9) for number in range(math.ceil(highest / step) + 1)]


def _powers(highest: float) -> list[float]:
    """Zero and powers of ten, up to what holds the highest."""
    top = max(math.ceil(math.log10(max(highest, 1.0))), 1)
    return [0.0, *(10.0**power for power in range(top + 1))]


def short(number: float) -> str:
    """Three digits, and a letter for thousands and more."""
    for size, word in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{word}"
    return f"{number:g}"
