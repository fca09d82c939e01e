"""Limits as users declare them: on a task, or on a queue for every task in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from mainspring.duration import Duration, duration
from mainspring.errors import InvalidArgument
from mainspring.model.limit import LimitKey
from mainspring.rules.admission import key_of_value
from mainspring.tasks.checks import valid_name
from mainspring.tasks.signature import Signature

MOST = 1_000_000
_SHORTEST = timedelta(milliseconds=1)
FAIR_WINDOW = 100
"""How many jobs of one key may be ready at once in a queue that is shared fairly."""


@dataclass(frozen=True, slots=True, init=False)
class Limit:
    """At most `concurrency` jobs at once, or `rate` in each `per`, in the whole fleet.

    Every task that names the limit shares it. With `by`, there is one for each value of that parameter:
    each tenant, say. A rate allows `burst` jobs to start together after a pause.
    """

    name: str
    concurrency: int | None
    rate: int | None
    per: timedelta | None
    burst: int
    by: str | None
    window: int | None

    def __init__(
        self,
        name: str,
        *,
        concurrency: int | None = None,
        rate: int | None = None,
        per: Duration | None = None,
        burst: int | None = None,
        by: str | None = None,
    ) -> None:
        if concurrency is None and rate is None:
            raise InvalidArgument("limit", name, "a concurrency, a rate or both")
        if (rate is None) != (per is None):
            raise InvalidArgument("limit.per", per, 'a length with a rate: rate=100, per="1m"')
        if burst is not None and rate is None:
            raise InvalidArgument("limit.burst", burst, "none without a rate")
        set_field = object.__setattr__
        set_field(self, "name", valid_name(name, "limit.name"))
        set_field(self, "concurrency", _whole(concurrency, "limit.concurrency"))
        set_field(self, "rate", _whole(rate, "limit.rate"))
        set_field(self, "per", None if per is None else duration(per, "limit.per", least=_SHORTEST))
        set_field(self, "burst", _whole(burst, "limit.burst") or 1)
        set_field(self, "by", by)
        set_field(self, "window", None)

    def limit_key(self, given: Mapping[str, object]) -> LimitKey:
        """The limit key of one call, whose arguments are given by name."""
        return LimitKey(
            name=self.name,
            key="" if self.by is None else key_of_value(given.get(self.by)),
            concurrency=self.concurrency,
            rate=self.rate,
            period=self.per,
            burst=self.burst,
            window=self.window,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRules:
    """The rules for every job of a queue."""

    limits: tuple[Limit, ...] = ()


def queue_rules(
    name: str,
    *,
    concurrency: int | None,
    rate: int | None,
    per: Duration | None,
    burst: int | None,
    fair_by: str | None,
) -> QueueRules:
    """Check the rules of one queue."""
    valid_name(name, "queue.name")
    limits = []
    if concurrency is not None or rate is not None or per is not None or burst is not None:
        limits.append(Limit(f"queue:{name}", concurrency=concurrency, rate=rate, per=per, burst=burst))
    if fair_by is not None:
        limits.append(_fair(name, fair_by))
    if not limits:
        raise InvalidArgument("queue", name, "a concurrency, a rate or fair_by")
    return QueueRules(limits=tuple(limits))


def valid_limits(limits: Sequence[Limit], signature: Signature) -> tuple[Limit, ...]:
    """A task's limits, fit for its parameters."""
    if isinstance(limits, str | Limit) or not all(isinstance(each, Limit) for each in limits):
        raise InvalidArgument("task.limits", limits, 'a list such as [Limit("stripe", concurrency=5)]')
    for each in limits:
        if each.by is not None and each.by not in signature.names:
            expected = f"one of {', '.join(signature.names) or 'no names'}"
            raise InvalidArgument("limit.by", each.by, expected)
    if len({each.name for each in limits}) < len(limits):
        raise InvalidArgument("task.limits", [each.name for each in limits], "each name once")
    return tuple(limits)


def limit_keys(
    limits: Sequence[Limit], signature: Signature, args: Sequence[object], kwargs: Mapping[str, object]
) -> tuple[LimitKey, ...]:
    """The limit keys that a call must pass."""
    given = signature.bound(args, kwargs) if any(each.by is not None for each in limits) else {}
    return tuple(each.limit_key(given) for each in limits)


def _fair(queue: str, by: str) -> Limit:
    limit = Limit(f"fair:{queue}", concurrency=1, by=by)
    object.__setattr__(limit, "concurrency", None)
    object.__setattr__(limit, "window", FAIR_WINDOW)
    return limit


def _whole(value: int | None, field: str) -> int | None:
    if value is not None and (type(value) is not int or not 1 <= value <= MOST):
        raise InvalidArgument(field, value, f"a whole number from 1 to {MOST}")
    return value
