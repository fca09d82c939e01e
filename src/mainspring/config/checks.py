"""What a setting may be: checks that name it when it is not."""

from __future__ import annotations

from datetime import timedelta

from mainspring.duration import written
from mainspring.errors import InvalidConfig

_LONGEST = timedelta(days=36525)


def check_range(name: str, value: int, least: int, most: int) -> None:
    """A whole number between two others."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InvalidConfig(name, value, f"a whole number from {least} to {most}")


def check_length(
    name: str, value: timedelta, *, least: timedelta = timedelta(), most: timedelta = _LONGEST
) -> None:
    """A length of time between two others."""
    if not isinstance(value, timedelta) or not least <= value <= most:
        shown = written(value) if isinstance(value, timedelta) else value
        raise InvalidConfig(name, shown, f"from {written(least)} to {written(most)}")


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    """One of a few words."""
    if value not in choices:
        raise InvalidConfig(name, value, f"one of {', '.join(choices)}")


def check_flag(name: str, value: bool) -> None:
    """True or false, and nothing that is merely taken for one."""
    if not isinstance(value, bool):
        raise InvalidConfig(name, value, "true or false")
