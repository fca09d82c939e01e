"""What both dialects do at the gates besides SQL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from mainspring.model.limit import Admission, Gate
from mainspring.model.value import Value
from mainspring.rules.admission import GateState, WaitingLine, admit
from mainspring.store.database import Row
from mainspring.store.rows import maybe_moment, reader

_gate = reader(Gate, window=lambda row: row["open_window"])

MOST_LINES = 1000
"""Lines looked at in one pass."""
MOST_ADMITTED = 1000
"""Jobs let through in one pass: it must stay short, for one runs at a time."""


class Passed(Value, frozen=True, kw_only=True):
    """What a pass decided, to be written."""

    job_ids: tuple[int, ...]
    permits: tuple[tuple[int, int], ...]
    """(gate, job) pairs."""
    spent: tuple[tuple[int, float, datetime], ...]
    """Gates with a rate behind which somebody has not begun, what is left in each, and when. Written even
    when nobody passes: what comes while they wait is lost, and the next pass must know."""
    again_at: datetime | None


def written(gate_ids: Iterable[int]) -> str:
    """The gates of a line as they are kept."""
    return ",".join(map(str, sorted(set(gate_ids))))


def read(gates: str) -> tuple[int, ...]:
    """The gates of a line."""
    return tuple(map(int, gates.split(",")))


def states_of(rows: Iterable[Row]) -> dict[int, GateState]:
    """Gates as they stand, by id."""
    return {
        row["id"]: GateState(
            gate=_gate(row),
            used=row["used"],
            unclaimed=row["unclaimed"],
            tokens=row["tokens"],
            refilled_at=maybe_moment(row["refilled_at"]),
        )
        for row in rows
    }


def lines_of(rows: Mapping[int, str], gates: Mapping[int, GateState], now: datetime) -> list[WaitingLine]:
    """Lines with their gates, which several may share."""
    for state in gates.values():
        state.refill(now)
    return [
        WaitingLine(id=key, gates=tuple(gates[each] for each in read(text))) for key, text in rows.items()
    ]


def decide(lines: Sequence[WaitingLine], gates: Mapping[int, GateState], now: datetime) -> Passed:
    """Let through whom there is room for."""
    ids = {id(state): gate_id for gate_id, state in gates.items()}
    passed = admit(lines, MOST_ADMITTED)
    later = [moment for state in gates.values() if (moment := state.next_token(now)) is not None]
    return Passed(
        job_ids=tuple(job_id for job_id, _ in passed),
        permits=tuple((ids[id(state)], job_id) for job_id, states in passed for state in states),
        spent=tuple(
            (gate_id, state.tokens, now)
            for gate_id, state in sorted(gates.items())
            if state.gate.rate is not None and state.unclaimed
        ),
        again_at=min(later, default=None),
    )


def admission(lines: Sequence[WaitingLine], passed: Passed) -> Admission:
    """What a pass answers."""
    whole = len(lines) < MOST_LINES
    return Admission(
        admitted=len(passed.job_ids),
        waiting=bool(lines),
        after=0 if whole else lines[-1].id,
        again_at=passed.again_at,
    )


def distinct(gates: Iterable[tuple[Gate, ...]]) -> tuple[list[tuple[Gate, ...]], list[Gate]]:
    """Every combination that is there, and every gate, each once."""
    combinations = list(dict.fromkeys(each for each in gates if each))
    return combinations, list({(g.name, g.key): g for each in combinations for g in each}.values())
