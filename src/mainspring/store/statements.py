"""Named statements from `store/sql`.

The statements in `sql/shared` are PostgreSQL, with `:now` for the moment of the call. For SQLite they are
rewritten when the files are read (see `_RULES`). `sql/postgres` and `sql/sqlite` have the statements of one
dialect, and statements that override a shared statement of the same name. Where PostgreSQL writes several
tables in one WITH, SQLite has several statements, each ended by a semicolon.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Literal

Dialect = Literal["sqlite", "postgres"]

_HEADING = re.compile(r"^-- name: ([a-z][a-z0-9_]*)\s*$", re.MULTILINE)
_PARAMETER = re.compile(r"(?<![:\w]):([a-z][a-z0-9_]*)")
_PART = re.compile(r"^-- part: ([a-z_]+)\n(.*?)^-- end\n", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"--[^\n]*")
_NOW = re.compile(r"(?<![:\w]):now\b")
_POSTGRES_NOW = "coalesce(:at::timestamptz, now())"
_WRITES = re.compile(
    r"\b(insert\s+into|update|delete\s+from|merge\s+into|truncate|create|alter|drop|lock\s+table|pragma"
    r"|nextval|setval|notify|pg_notify|pg_terminate_backend|pg_cancel_backend|pg_(try_)?advisory\w*|set_config"
    r"|for\s+(key\s+)?share)\b|\bmainspring\.\w+\s*\(",
    re.IGNORECASE,
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def _moment(literal: re.Match[str]) -> str:
    return str((datetime.fromisoformat(literal[1]) - _EPOCH) // _MICROSECOND)


def _length(literal: re.Match[str]) -> str:
    return str(timedelta(**{f"{literal[2].lower()}s": int(literal[1])}) // _MICROSECOND)


_Replacement = str | Callable[[re.Match[str]], str]
_RULES: tuple[tuple[str, _Replacement], ...] = (
    # PostgreSQL has numbers for queues and tasks, SQLite has their names. The rules are for the name of a
    # number, the number of a name, and the column.
    (r"\(SELECT name FROM mainspring\.(queue|task)s WHERE id = (\w+\.)?\1_id\)", r"\2\1"),
    (r"\(SELECT id FROM mainspring\.(queue|task)s WHERE name = (:\w+)\)", r"\2"),
    (r"\b(queue|task)_id\b", r"\1"),
    # Moments and lengths of time are microseconds.
    (r"\btimestamptz '([^']+)'", _moment),
    (r"\binterval '(\d+) (second|minute|hour|day)s?'", _length),
    # JSON is text. The last element of a list is `-> -1`.
    (r"([\w.]+) -> -1 ->> '(\w+)'", r"json_extract(\1, '$[#-1].\2')"),
    (r"([\w.]+) -> -1(?! ->)", r"json_extract(\1, '$[#-1]')"),
    (r"([\w.]+) ->> '(\w+)'", r"json_extract(\1, '$.\2')"),
    (r"\bstrpos\(", "instr("),
    (r"\bmainspring\.", ""),
    # A list is bound as JSON.
    (r"\bunnest\((:\w+)::\w+\[\]\) AS (\w+) \((\w+)\)", r"(SELECT value AS \3 FROM json_each(\1)) AS \2"),
    (r"= ANY ?\((:\w+)(::\w+\[\])?\)", r"IN (SELECT value FROM json_each(\1))"),
    (r"<> ALL ?\((:\w+)(::\w+\[\])?\)", r"NOT IN (SELECT value FROM json_each(\1))"),
    (r"::[a-z_]+(\[\])?", ""),
    (r"\bgreatest\(", "max("),
    (r"\bleast\(", "min("),
    (r"\bcardinality\(", "json_array_length("),
    (r"\bIS NOT DISTINCT FROM\b", "IS"),
    (r"\bIS DISTINCT FROM\b", "IS NOT"),
    (r'\s+COLLATE "C"', ""),
    # One transaction writes at a time.
    (r"\s+FOR (NO KEY )?UPDATE( OF \w+)?( SKIP LOCKED)?", ""),
    (r"\bLOCK TABLE [\w. ]+ MODE\b", ""),
)
_TO_SQLITE = tuple((re.compile(pattern, re.IGNORECASE), replacement) for pattern, replacement in _RULES)


@cache
def load(dialect: Dialect) -> Mapping[str, str]:
    """Every statement of this dialect by name, with its `:name` parameters as written."""
    shared = {name: _spelled(text, dialect) for name, text in _folder("shared").items()}
    return MappingProxyType(shared | _folder(dialect))


def numbered(statement: str) -> tuple[str, tuple[str, ...]]:
    """The statement with `$n` for each `:name`, and the names in the order of their numbers."""
    names: list[str] = []

    def number(match: re.Match[str]) -> str:
        name = match[1]
        if name not in names:
            names.append(name)
        return f"${names.index(name) + 1}"

    return _PARAMETER.sub(number, statement), tuple(names)


def takes_now(statement: str) -> bool:
    """Whether the statement has a parameter `:now`."""
    return _NOW.search(statement) is not None


def reading(texts: Mapping[str, str]) -> frozenset[str]:
    """The names of statements that only read: they do not write, lock or call a function of the schema."""
    return frozenset(name for name, text in texts.items() if not _WRITES.search(text))


def _spelled(statement: str, dialect: Dialect) -> str:
    if dialect == "postgres":
        return _NOW.sub(_POSTGRES_NOW, statement)
    for pattern, replacement in _TO_SQLITE:
        statement = pattern.sub(replacement, statement)
    return statement


def _folder(name: str) -> dict[str, str]:
    """Every statement of the files in one folder."""
    found: dict[str, str] = {}
    for file in sorted((resources.files("mainspring.store") / "sql" / name).iterdir(), key=lambda f: f.name):
        for statement, text in _file(file.read_text(encoding="utf-8")):
            if statement in found:
                raise ValueError(f"sql/{name}/{file.name}: statement {statement} is there twice")
            found[statement] = text
    return found


def _file(text: str) -> list[tuple[str, str]]:
    for name, part in _PART.findall(text):  # a part that several statements share is written in one of them
        text = text.replace(f"-- use: {name}\n", part)
    _, *parts = _HEADING.split(text)
    bodies = (_COMMENT.sub("", body).strip().rstrip(";") for body in parts[1::2])
    return list(zip(parts[::2], bodies, strict=True))
