"""Limits as people read them."""

from __future__ import annotations

from typing import Self

from mainspring.duration import format_duration
from mainspring.model.limit import Gate, GateInfo
from mainspring.model.value import Value


def gate_in_words(gate: Gate) -> str:
    """What the limit is."""
    parts = []
    if gate.concurrency is not None:
        parts.append(f"{gate.concurrency} at once")
    if gate.rate is not None and gate.period is not None:
        parts.append(f"{gate.rate} in {format_duration(gate.period)}, {gate.burst} together")
    if gate.window is not None:
        parts.append("in turn")
    return ", ".join(parts)


def gate_name(gate: Gate) -> str:
    """The limit, and whose it is."""
    return f"{gate.name}={gate.key}" if gate.key else gate.name


class LimitView(Value, frozen=True, kw_only=True):
    """One limit as it stands."""

    name: str
    key: str | None
    concurrency: int | None
    rate: float | None
    per: float | None
    burst: int | None
    fair: bool
    used: int
    waiting: int
    holders: tuple[int, ...]

    @classmethod
    def of(cls, info: GateInfo) -> Self:
        """Of a limit; `per` is in seconds."""
        gate = info.gate
        return cls(
            name=gate.name,
            key=gate.key or None,
            concurrency=gate.concurrency,
            rate=gate.rate,
            per=None if gate.period is None else gate.period.total_seconds(),
            burst=gate.burst if gate.rate is not None else None,
            fair=gate.window is not None,
            used=info.used,
            waiting=info.waiting,
            holders=info.holders,
        )


def in_the_way(infos: list[GateInfo]) -> str:
    """Which limits hold a job up, and who holds their places."""
    full = [each for each in infos if _is_full(each)] or infos
    return "; ".join(f"{gate_name(each.gate)} ({gate_in_words(each.gate)}{_held(each)})" for each in full)


def _is_full(info: GateInfo) -> bool:
    return info.gate.concurrency is not None and info.used >= info.gate.concurrency


def _held(info: GateInfo) -> str:
    if not info.holders:
        return ""
    listed = ", ".join(map(str, info.holders))
    more = "" if info.used <= len(info.holders) else " and others"
    return f", held by {'job' if len(info.holders) == 1 else 'jobs'} {listed}{more}"
