"""What makes two jobs of a task the same."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

import msgspec

from mainspring.duration import Duration, duration
from mainspring.errors import InvalidArgument
from mainspring.model.job import Key, OnDuplicate, OnDuplicateOption, Scope, ScopeOption
from mainspring.model.value import choice
from mainspring.tasks.signature import Signature

LONGEST_KEY = 500
_canonical = msgspec.json.Encoder(order="deterministic").encode


@dataclass(frozen=True, slots=True, init=False)
class Unique:
    """At most one job of a task for each key.

    The key is derived from the arguments: all of them, or those named in `by`. `scope` is "queued" (while
    the job waits), "finished" (until it has ended), or a `period` from when it was made. A second job is
    not made: `on_duplicate` "return" answers the first, "replace" gives the first one its arguments and
    its time, "error" raises DuplicateJob. `debounce` is "queued" and "replace" with that delay: the job runs
    when no further one has come for so long.
    """

    by: tuple[str, ...] | None
    scope: Scope
    period: timedelta | None
    on_duplicate: OnDuplicate
    debounce: timedelta | None

    def __init__(
        self,
        *,
        by: Sequence[str] | None = None,
        scope: ScopeOption | None = None,
        period: Duration | None = None,
        on_duplicate: OnDuplicateOption | None = None,
        debounce: Duration | None = None,
    ) -> None:
        set_field = object.__setattr__
        set_field(self, "by", _valid_names(by))
        set_field(self, "period", None if period is None else duration(period, "unique.period"))
        set_field(self, "debounce", None if debounce is None else duration(debounce, "unique.debounce"))
        set_field(self, "scope", _valid_scope(scope, period, debounce))
        set_field(self, "on_duplicate", _valid_answer(on_duplicate, debounce))

    def check(self, signature: Signature) -> None:
        """Refuse names that the task does not have."""
        for name in self.by or ():
            if name not in signature.names:
                raise InvalidArgument("unique.by", name, f"one of {', '.join(signature.names) or 'no names'}")

    def key(
        self,
        task: str,
        signature: Signature,
        args: Sequence[object],
        kwargs: Mapping[str, object],
        *,
        named: str | None = None,
    ) -> Key:
        """The key of one call; `named` is a key that the caller chose, in place of the arguments."""
        if named is None:
            given = signature.bound(args, kwargs)
            chosen = given if self.by is None else {name: given.get(name) for name in self.by}
            digest = _digest(task, "arguments", chosen)
        else:
            digest = _digest(task, "key", named)
        return Key(
            digest=digest,
            name=digest.hex() if named is None else named,
            scope=self.scope,
            period=self.period,
            on_duplicate=self.on_duplicate,
        )


def _digest(task: str, kind: str, what: object) -> bytes:
    try:
        return hashlib.sha256(_canonical([task, kind, what])).digest()
    except TypeError as error:  # a default that is no JSON
        raise InvalidArgument("unique.by", task, f"parameters whose defaults are JSON ({error})") from None


def with_options(unique: Unique | None, **options: object) -> Unique | None:
    """A task's uniqueness with the options of a single call; unchanged without such options."""
    given = {name: value for name, value in options.items() if value is not None}
    if not given:
        return unique
    kept: dict[str, object] = {}
    if unique is not None:
        kept = {"by": unique.by, "on_duplicate": unique.on_duplicate.value}
        if not given.keys() & {"scope", "period", "debounce"}:
            kept |= {"period": unique.period, "debounce": unique.debounce}
            kept |= {} if unique.period or unique.debounce else {"scope": unique.scope.value}
        if "debounce" in given:
            del kept["on_duplicate"]
    return Unique(**{**kept, **given})  # type: ignore[arg-type]  # each is checked there


def valid_key(key: str) -> str:
    """A key that a caller chose."""
    if not isinstance(key, str) or not 0 < len(key) <= LONGEST_KEY or not key.isprintable():
        raise InvalidArgument("key", key, f"1 to {LONGEST_KEY} printable characters")
    return key


def valid_unique(unique: Unique | None, signature: Signature) -> Unique | None:
    """A task's uniqueness, fit for its parameters."""
    if unique is None:
        return None
    if not isinstance(unique, Unique):
        raise InvalidArgument("task.unique", unique, 'a Unique, such as Unique(by=["customer"])')
    unique.check(signature)
    return unique


def _valid_names(by: Sequence[str] | None) -> tuple[str, ...] | None:
    if by is None:
        return None
    if isinstance(by, str) or not all(isinstance(name, str) for name in by) or not by:
        raise InvalidArgument("unique.by", by, "a list of parameter names")
    return tuple(by)


def _valid_scope(scope: ScopeOption | None, period: Duration | None, debounce: Duration | None) -> Scope:
    if period is not None and debounce is not None:
        raise InvalidArgument("unique.debounce", debounce, "either a period or a debounce, not both")
    fixed = Scope.PERIOD if period is not None else Scope.QUEUED if debounce is not None else None
    asked = None if scope is None else choice(Scope, scope, "unique.scope")
    if asked is Scope.PERIOD and period is None:
        raise InvalidArgument("unique.period", None, 'how long, such as "1h", with scope "period"')
    if fixed is not None and asked not in (None, fixed):
        raise InvalidArgument("unique.scope", scope, f'"{fixed}", or none, with a period or a debounce')
    return asked or fixed or Scope.FINISHED


def _valid_answer(on_duplicate: OnDuplicateOption | None, debounce: Duration | None) -> OnDuplicate:
    if on_duplicate is None:
        return OnDuplicate.RETURN if debounce is None else OnDuplicate.REPLACE
    answer = choice(OnDuplicate, on_duplicate, "unique.on_duplicate")
    if debounce is not None and answer is not OnDuplicate.REPLACE:
        raise InvalidArgument("unique.on_duplicate", on_duplicate, '"replace", or none, with a debounce')
    return answer
