"""The signs that graphs and bars are drawn with: lines and ticks, or plain letters where those cannot be
written. They only help the eye: every state is also a word."""

from __future__ import annotations

import sys
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """One set of them."""

    down: str
    across: str
    branch: str
    fork: str
    join: str
    last_fork: str
    last_join: str
    ran: str
    failed: str
    waited: str
    going: str
    states: dict[str, str]

    def state(self, name: str) -> str:
        """The sign of a state."""
        return self.states.get(name, self.states["waiting"])


LINES = Signs(
    down="│",
    across="─",
    branch="├",
    fork="┬",
    join="┴",
    last_fork="╮",
    last_join="╯",
    ran="█",
    failed="▒",
    waited="·",
    going="▶",
    states={
        "waiting": "○",
        "delayed": "◌",
        "ready": "◌",
        "running": "▶",
        "ending": "▶",
        "succeeded": "✓",
        "failed": "✗",
        "cancelled": "⊘",
        "skipped": "–",
    },
)
LETTERS = Signs(
    down="|",
    across="-",
    branch="+",
    fork="+",
    join="+",
    last_fork=".",
    last_join="'",
    ran="#",
    failed="x",
    waited=".",
    going=">",
    states={
        "waiting": "o",
        "delayed": "~",
        "ready": "~",
        "running": ">",
        "ending": ">",
        "succeeded": "*",
        "failed": "X",
        "cancelled": "/",
        "skipped": "-",
    },
)


def signs() -> Signs:
    """Those that stdout can write."""
    drawn = "".join(
        [*LINES.states.values(), LINES.down, LINES.branch, LINES.last_fork, LINES.ran, LINES.failed]
    )
    try:
        drawn.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return LETTERS
    return LINES
