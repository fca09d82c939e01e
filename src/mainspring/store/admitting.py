"""Admission of jobs with limits: the part that both dialects share, without SQL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from mainspring.model.limit import Admission, LimitKey
from mainspring.model.value import Value
from mainspring.rules.admission import LimitKeyState, WaitingLine, admit
from mainspring.store.database import Row
from mainspring.store.rows import maybe_moment, reader

_limit_key = reader(LimitKey, window=lambda row: row["open_window"])

MOST_LINES = 1000
"""The number of lines that one pass reads, at most."""
MOST_ADMITTED = 1000
"""The number of jobs that one pass admits, at most. A pass must be short, because one pass runs at a time."""


class Passed(Value, frozen=True, kw_only=True):
    """The decision of a pass, before it is written."""

    job_ids: tuple[int, ...]
    limit_holders: tuple[tuple[int, int], ...]
    """(limit key, job) pairs."""
    spent: tuple[tuple[int, float, datetime], ...]
    """(limit key, tokens left, moment), for limit keys with a rate and admitted jobs that no worker has
    claimed. This is written even if the pass admits no job: tokens that come while such jobs wait are lost,
    and the next pass must know."""
    again_at: datetime | None


def written(limit_key_ids: Iterable[int]) -> str:
    """The limit keys of a line, as the store keeps them."""
    return ",".join(map(str, sorted(set(limit_key_ids))))


def read(limit_keys: str) -> tuple[int, ...]:
    """The limit keys of a line, from the text that the store keeps."""
    return tuple(map(int, limit_keys.split(",")))


def states_of(rows: Iterable[Row]) -> dict[int, LimitKeyState]:
    """The present state of limit keys, by id."""
    return {
        row["id"]: LimitKeyState(
            limit_key=_limit_key(row),
            used=row["used"],
            unclaimed=row["unclaimed"],
            tokens=row["tokens"],
            refilled_at=maybe_moment(row["refilled_at"]),
        )
        for row in rows
    }


def lines_of(
    rows: Mapping[int, str], limit_keys: Mapping[int, LimitKeyState], now: datetime
) -> list[WaitingLine]:
    """Lines with their limit keys. Several lines may share a limit key."""
    for state in limit_keys.values():
        state.refill(now)
    return [
        WaitingLine(id=key, limit_keys=tuple(limit_keys[each] for each in read(text)))
        for key, text in rows.items()
    ]


def decide(lines: Sequence[WaitingLine], limit_keys: Mapping[int, LimitKeyState], now: datetime) -> Passed:
    """Admit the jobs for which their limits have room."""
    ids = {id(state): limit_key_id for limit_key_id, state in limit_keys.items()}
    passed = admit(lines, MOST_ADMITTED)
    later = [moment for state in limit_keys.values() if (moment := state.next_token(now)) is not None]
    return Passed(
        job_ids=tuple(job_id for job_id, _ in passed),
        limit_holders=tuple((ids[id(state)], job_id) for job_id, states in passed for state in states),
        spent=tuple(
            (limit_key_id, state.tokens, now)
            for limit_key_id, state in sorted(limit_keys.items())
            if state.limit_key.rate is not None and state.unclaimed
        ),
        again_at=min(later, default=None),
    )


def admission(lines: Sequence[WaitingLine], passed: Passed) -> Admission:
    """The answer of a pass."""
    whole = len(lines) < MOST_LINES
    return Admission(
        admitted=len(passed.job_ids),
        waiting=bool(lines),
        after=0 if whole else lines[-1].id,
        again_at=passed.again_at,
    )


def distinct(limit_keys: Iterable[tuple[LimitKey, ...]]) -> tuple[list[tuple[LimitKey, ...]], list[LimitKey]]:
    """Every combination of limit keys, and every limit key, each once."""
    combinations = list(dict.fromkeys(each for each in limit_keys if each))
    return combinations, list({(g.name, g.key): g for each in combinations for g in each}.values())
