"""One finding about the state of things, in a sentence."""

from __future__ import annotations

from enum import StrEnum

from mainspring.model.value import Value


class Level(StrEnum):
    """How a check came out."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Check(Value, frozen=True, kw_only=True):
    """One finding."""

    name: str
    level: Level
    sentence: str


def ok(name: str, sentence: str) -> Check:
    """As it should be."""
    return Check(name=name, level=Level.OK, sentence=sentence)


def warn(name: str, sentence: str) -> Check:
    """Somebody should look at it."""
    return Check(name=name, level=Level.WARN, sentence=sentence)


def fail(name: str, sentence: str) -> Check:
    """Something does not work."""
    return Check(name=name, level=Level.FAIL, sentence=sentence)
