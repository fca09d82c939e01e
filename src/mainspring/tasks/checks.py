"""Names, ids and numbers that callers give, each checked where it is given."""

from __future__ import annotations

import re

from mainspring.errors import InvalidArgument
from mainspring.model.job import HIGHEST_PRIORITY, LOWEST_PRIORITY

LONGEST = 200
# Words joined by single signs: safe in a path, a log line, a shell and a spreadsheet cell. No leading
# sign, so a name is never taken for an option or a hidden file; no leading double underscore.
_NAME = re.compile(r"(?!__)[A-Za-z0-9_]+(?:[.:/-][A-Za-z0-9_]+)*", re.ASCII)
_HALF = re.compile("[\ud800-\udfff]")
_EXPECTED = f"1 to {LONGEST} ASCII letters, digits and _, in words joined by . : - or /"
MOST_ATTEMPTS = 1000


def valid_name(name: str, field: str) -> str:
    """The name itself, or InvalidArgument naming the field."""
    if not isinstance(name, str) or not is_name(name):
        raise InvalidArgument(field, name, _EXPECTED)
    return name


def looked_for(name: str, field: str) -> str:
    """A name to look for, or InvalidArgument: a store can look only for text that it could store."""
    if not isinstance(name, str) or not 1 <= len(name) <= LONGEST or not is_text(name):
        raise InvalidArgument(field, name, f"1 to {LONGEST} characters of text")
    return name


def is_text(text: str) -> bool:
    """Whether it can be stored: without NUL and without lone surrogates."""
    return "\0" not in text and (text.isascii() or _HALF.search(text) is None)


def is_name(text: str) -> bool:
    """Whether it has the form of a name."""
    return len(text) <= LONGEST and _NAME.fullmatch(text) is not None


def valid_attempts(attempts: int, field: str) -> int:
    """How many times a job may be tried in all."""
    if not _is_whole(attempts) or not 1 <= attempts <= MOST_ATTEMPTS:
        raise InvalidArgument(field, attempts, f"a whole number from 1 to {MOST_ATTEMPTS}")
    return attempts


def valid_priority(priority: int, field: str = "priority") -> int:
    """Higher runs first."""
    if not _is_whole(priority) or not LOWEST_PRIORITY <= priority <= HIGHEST_PRIORITY:
        raise InvalidArgument(
            field, priority, f"a whole number from {LOWEST_PRIORITY} to {HIGHEST_PRIORITY}; higher runs first"
        )
    return priority


def _is_whole(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool)
