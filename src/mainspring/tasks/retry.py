"""How often a task is tried, how long it waits in between, and what differs by exception."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, cast, get_args

from mainspring.duration import Duration, duration, format_duration
from mainspring.errors import InvalidArgument
from mainspring.rules.backoff import delay
from mainspring.tasks.checks import valid_attempts

Shape = Literal["exponential", "linear", "fixed"]
Kinds = type[BaseException] | tuple[type[BaseException], ...]
_SHAPES = get_args(Shape)
_DEFAULT_ATTEMPTS = 42
_STEEPEST = 100.0
_MOST_DELAYS = 1000
_UNSET_BASE, _UNSET_CAP = timedelta(seconds=5), timedelta(hours=1)
"""A first retry within seconds, then ever later, at last hourly: 42 attempts in 24 h on average. Ten waits
double from 5 s to 43 min and take 64 min, with jitter; 31 more of an hour take 23 h 15 min, with jitter."""


@dataclass(frozen=True, slots=True, init=False)
class On:
    """A rule for some exceptions: `On(ConnectionError, attempts=10)`, `On(ValueError, give_up=True)`.

    Options that are not given are those of its policy. With `give_up` the job becomes a dead letter at once.
    """

    kinds: tuple[type[BaseException], ...]
    attempts: int | None
    base: timedelta | None
    factor: float | None
    cap: timedelta | None
    jitter: bool | None
    shape: str | tuple[timedelta, ...] | None
    give_up: bool

    def __init__(
        self,
        kinds: Kinds,
        *,
        attempts: int | None = None,
        base: Duration | None = None,
        factor: float | None = None,
        cap: Duration | None = None,
        jitter: bool | None = None,
        shape: Shape | Sequence[Duration] | None = None,
        give_up: bool = False,
    ) -> None:
        given = (attempts, base, factor, cap, jitter, shape)
        if _valid_switch(give_up, "rule.give_up") and any(each is not None for each in given):
            raise InvalidArgument(
                "rule.give_up", give_up, "no other option beside it: the job is not tried again"
            )
        set_field = object.__setattr__
        set_field(self, "kinds", _valid_kinds(kinds))
        set_field(self, "attempts", None if attempts is None else valid_attempts(attempts, "rule.attempts"))
        set_field(self, "base", None if base is None else duration(base, "rule.base"))
        set_field(self, "factor", None if factor is None else _valid_factor(factor, "rule.factor"))
        set_field(self, "cap", None if cap is None else duration(cap, "rule.cap"))
        set_field(self, "jitter", None if jitter is None else _valid_switch(jitter, "rule.jitter"))
        set_field(self, "shape", None if shape is None else _valid_shape(shape, "rule.shape"))
        set_field(self, "give_up", give_up)


@dataclass(frozen=True, slots=True, init=False)
class Retry:
    """How often a task is tried, and how long it waits in between.

    `Retry()`, the default of a task, tries 42 times within about 24 hours: at first after some
    seconds, at last after an hour. `Retry(attempts=3)` tries three times, and gives up after some 12 seconds.

    After the n-th failure the job waits base * factor ** (n - 1), at most cap; with shape "linear"
    base * n, with "fixed" base; or the n-th of a list of delays, then the last. With jitter, half of that
    is certain and half is random; a list is followed exactly, unless jitter is asked for. The first rule
    that names the class of the exception, or a base class of it, may change all of this.
    """

    attempts: int
    base: timedelta
    factor: float
    cap: timedelta
    jitter: bool
    shape: str | tuple[timedelta, ...]
    rules: tuple[On, ...]

    def __init__(
        self,
        attempts: int | None = None,
        base: Duration = _UNSET_BASE,
        factor: float = 2.0,
        cap: Duration = _UNSET_CAP,
        jitter: bool | None = None,
        shape: Shape | Sequence[Duration] = "exponential",
        rules: Sequence[On] = (),
    ) -> None:
        shaped = _valid_shape(shape, "retry.shape")
        listed = not isinstance(shaped, str)
        default = len(shaped) + 1 if listed else _DEFAULT_ATTEMPTS
        set_field = object.__setattr__
        set_field(
            self, "attempts", valid_attempts(default if attempts is None else attempts, "retry.attempts")
        )
        if base is _UNSET_BASE and cap is not _UNSET_CAP:
            base = min(_UNSET_BASE, duration(cap, "retry.cap"))  # a short cap alone is no mistake
        set_field(self, "base", duration(base, "retry.base"))
        set_field(self, "factor", _valid_factor(factor, "retry.factor"))
        # A list says itself how long it goes: unless one is given, no cap cuts it.
        uncut = max([_UNSET_CAP, *shaped]) if listed and cap is _UNSET_CAP else cap
        set_field(self, "cap", duration(uncut, "retry.cap"))
        set_field(self, "jitter", not listed if jitter is None else _valid_switch(jitter, "retry.jitter"))
        set_field(self, "shape", shaped)
        set_field(self, "rules", _valid_rules(rules))
        if self.cap < self.base:
            raise InvalidArgument("retry.cap", cap, f"at least retry.base ({format_duration(self.base)})")
        for place in range(len(self.rules)):
            self.under(place)

    def match(self, error: BaseException) -> int | None:
        """The place of the first rule that speaks of this exception."""
        for place, rule in enumerate(self.rules):
            if isinstance(error, rule.kinds):
                return place
        return None

    def gives_up(self, rule: int | None) -> bool:
        """Whether the rule at this place ends a job at once."""
        return rule is not None and self.rules[rule].give_up

    def within(self, period: timedelta) -> int:
        """How many of its attempts begin within this time at the latest, if none of them takes any."""
        spent, attempts = timedelta(), 1
        while attempts < self.attempts and (spent := spent + delay(self, attempts, 1.0)) < period:
            attempts += 1
        return attempts

    def under(self, rule: int | None) -> Retry:
        """The policy as the rule at this place has it."""
        if rule is None:
            return self
        own = self.rules[rule]
        # A list of its own brings its own number of attempts, its own cap and no jitter.
        above = Retry(shape=own.shape) if isinstance(own.shape, tuple) else self
        try:
            return Retry(
                attempts=above.attempts if own.attempts is None else own.attempts,
                base=self.base if own.base is None else own.base,
                factor=self.factor if own.factor is None else own.factor,
                cap=above.cap if own.cap is None else own.cap,
                jitter=above.jitter if own.jitter is None else own.jitter,
                shape=_as_given(self.shape if own.shape is None else own.shape),
            )
        except InvalidArgument as wrong:
            raise InvalidArgument(
                wrong.field.replace("retry", "rule", 1), wrong.got, wrong.expected
            ) from None


def _as_given(shape: str | tuple[timedelta, ...]) -> Shape | Sequence[Duration]:
    return cast("Shape | Sequence[Duration]", shape)


def valid_retry(retry: Retry | None) -> Retry:
    """The policy given, or the default one."""
    if retry is None:
        return DEFAULT
    if not isinstance(retry, Retry):
        raise InvalidArgument("task.retry", retry, "a Retry; pass Retry(attempts=3) to try three times")
    return retry


def _valid_kinds(kinds: Kinds) -> tuple[type[BaseException], ...]:
    listed = kinds if isinstance(kinds, tuple) else (kinds,)
    if not listed or not all(isinstance(each, type) and issubclass(each, BaseException) for each in listed):
        raise InvalidArgument("rule", kinds, "an exception class, or a tuple of them")
    return listed


def _valid_rules(rules: Sequence[On]) -> tuple[On, ...]:
    if not isinstance(rules, list | tuple):
        raise InvalidArgument(
            "retry.rules", rules, "a list of rules such as On(ConnectionError, attempts=10)"
        )
    seen: tuple[type[BaseException], ...] = ()
    for rule in rules:
        if not isinstance(rule, On):
            raise InvalidArgument("retry.rules", rule, "rules such as On(ConnectionError, attempts=10)")
        if all(issubclass(kind, seen) for kind in rule.kinds):
            names = ", ".join(kind.__name__ for kind in rule.kinds)
            raise InvalidArgument(
                "retry.rules", names, "no class that an earlier rule speaks of: the first that matches counts"
            )
        seen += rule.kinds
    return tuple(rules)


def _valid_shape(shape: Shape | Sequence[Duration], field: str) -> str | tuple[timedelta, ...]:
    if isinstance(shape, str) and shape in _SHAPES:
        return shape
    if isinstance(shape, list | tuple) and 1 <= len(shape) < _MOST_DELAYS:
        return tuple(duration(each, field) for each in shape)
    raise InvalidArgument(
        field, shape, f"{', '.join(_SHAPES)}, or a list of delays such as ['10s', '1m', '10m']"
    )


def _valid_switch(value: bool, field: str) -> bool:
    if not isinstance(value, bool):
        raise InvalidArgument(field, value, "true or false")
    return value


def _valid_factor(factor: float, field: str) -> float:
    if isinstance(factor, bool) or not isinstance(factor, int | float) or not 1 <= factor <= _STEEPEST:
        raise InvalidArgument(field, factor, f"a number from 1 to {_STEEPEST:g}")
    return float(factor)


DEFAULT = Retry()
"""The default policy of a task."""
