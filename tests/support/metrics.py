"""The table of metrics in docs/telemetry.md: `python -m tests.support.metrics --write` writes it anew."""

from __future__ import annotations

import sys
from pathlib import Path

from mainspring.monitor.catalogue import ALL, series

PAGE = Path(__file__).parents[2] / "docs" / "telemetry.md"
BEGIN, END = "<!-- metrics: begin -->\n", "<!-- metrics: end -->\n"


def table() -> str:
    lines = ["| metric | kind | labels | is |", "|---|---|---|---|"]
    for each in ALL:
        name = series(each)[0] if each.kind == "counter" else each.name
        source = " *" if each.source == "store" else ""
        labels = ", ".join(f"`{label}`" for label in each.labels)
        lines.append(f"| `{name}`{source} | {each.kind} | {labels} | {each.help} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    text = PAGE.read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    if "--write" in sys.argv:
        PAGE.write_text(f"{head}{BEGIN}{table()}{END}{tail}", encoding="utf-8")


if __name__ == "__main__":
    main()
