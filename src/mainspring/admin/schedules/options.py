"""Options of a schedule as plain values, such as JSON or a command line has: instants are text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import datetime

from mainspring.errors import InvalidArgument
from mainspring.tasks.schedule import GivenOptions
from mainspring.tasks.schedule_options import WHEN_OPTIONS, PolicyOptions
from mainspring.triggers.zones import read_instant, read_wall_or_instant

POLICY_OPTIONS = tuple(each.name for each in fields(PolicyOptions))
CALL_OPTIONS = ("task", "args", "kwargs", "queue", "priority", "attempts")
OPTIONS = frozenset((*WHEN_OPTIONS, *POLICY_OPTIONS, *CALL_OPTIONS))


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What somebody said, by who reads it; what was not said is not in it."""

    when: GivenOptions
    """The calendar is still a name."""
    policies: GivenOptions
    call: GivenOptions


def read(given: Mapping[str, object]) -> Wishes:
    """Sort the options and read those that are text. None stands for an option's default."""
    for name in given:
        if name not in OPTIONS:
            raise InvalidArgument("schedule", name, f"only options it has ({', '.join(sorted(OPTIONS))})")
    read = {
        name: value if value is None or name not in _READERS else _READERS[name](value, name)
        for name, value in given.items()
    }
    return Wishes(
        when=_of(WHEN_OPTIONS, read), policies=_of(POLICY_OPTIONS, read), call=_of(CALL_OPTIONS, read)
    )


def _of(names: Iterable[str], given: GivenOptions) -> GivenOptions:
    return {name: given[name] for name in names if name in given}


def _moment(value: object, field: str) -> object:
    return value if isinstance(value, datetime) else read_instant(value, field)  # type: ignore[arg-type]  # checked there


def _wall(value: object, field: str) -> object:
    return value if isinstance(value, datetime) else read_wall_or_instant(value, field)  # type: ignore[arg-type]  # checked there


def _moments(value: object, field: str) -> object:
    return tuple(_moment(each, field) for each in (value if isinstance(value, list | tuple) else (value,)))


def _walls(value: object, field: str) -> object:
    return tuple(_wall(each, field) for each in (value if isinstance(value, list | tuple) else (value,)))


def _array(value: object, field: str) -> object:
    if not isinstance(value, list | tuple):
        raise InvalidArgument(f"schedule.{field}", value, "a JSON array")
    return list(value)


def _object(value: object, field: str) -> object:
    if not isinstance(value, Mapping) or not all(isinstance(each, str) for each in value):
        raise InvalidArgument(f"schedule.{field}", value, "a JSON object")
    return dict(value)


_READERS: dict[str, Callable[[object, str], object]] = {
    "at": _moments,
    "anchor": _moment,
    "dtstart": _wall,
    "exdates": _walls,
    "rdates": _walls,
    "start": _moment,
    "end": _moment,
    "args": _array,
    "kwargs": _object,
}
