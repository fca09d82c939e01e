"""One finding about the state of the system, in a sentence."""

from __future__ import annotations

from enum import StrEnum

from mainspring.model.value import Value


class Level(StrEnum):
    """The result of a check."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Check(Value, frozen=True, kw_only=True):
    """One finding."""

    name: str
    level: Level
    sentence: str


def ok(name: str, sentence: str) -> Check:
    """A finding without a problem."""
    return Check(name=name, level=Level.OK, sentence=sentence)


def warn(name: str, sentence: str) -> Check:
    """A finding that an operator should look at."""
    return Check(name=name, level=Level.WARN, sentence=sentence)


def fail(name: str, sentence: str) -> Check:
    """A finding that something does not work."""
    return Check(name=name, level=Level.FAIL, sentence=sentence)
