"""The dotted names of all settings, and what a source gives for them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from functools import cache
from typing import NamedTuple, get_type_hints

from mainspring.config.settings import Settings


class Given(NamedTuple):
    """A value as a source holds it, not yet read, and where exactly it stands."""

    value: object
    origin: str


Layer = Mapping[str, Given]


@cache
def sections() -> Mapping[str, type]:
    """The classes that make up Settings, by section."""
    return get_type_hints(Settings)


@cache
def keys() -> Mapping[str, object]:
    """The type of every setting, by dotted name."""
    return {
        f"{section}.{name}": kind
        for section, config in sections().items()
        for name, kind in get_type_hints(config).items()
    }


def known_setting(wrong: str, known: Iterable[str]) -> str:
    """What to say was expected instead of a name that is not known."""
    close = difflib.get_close_matches(wrong, list(known), n=1)
    return f"a known setting (did you mean {close[0]}?)" if close else "a known setting"
