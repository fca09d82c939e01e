"""Names of tasks, queues and schedules."""

from __future__ import annotations

import re

from mainspring.errors import InvalidArgument

LONGEST = 200
# Words joined by single signs: safe in a path, a log line, a shell and a spreadsheet cell. No leading
# sign, so a name is never taken for an option or a hidden file; no leading double underscore.
_NAME = re.compile(r"(?!__)[A-Za-z0-9_]+(?:[.:/-][A-Za-z0-9_]+)*", re.ASCII)
_EXPECTED = f"1 to {LONGEST} ASCII letters, digits and _, in words joined by . : - or /"


def valid_name(name: str, field: str) -> str:
    """The name itself, or InvalidArgument naming the field."""
    if not isinstance(name, str) or len(name) > LONGEST or not _NAME.fullmatch(name):
        raise InvalidArgument(field, name, _EXPECTED)
    return name
