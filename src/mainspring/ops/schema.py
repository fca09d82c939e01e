"""The schema as SQL text, for those who migrate with their own tool."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from mainspring.store import sqlfile
from mainspring.store.migrations import migrations

_PACKAGES = {"sqlite": "mainspring.store.sqlite", "postgresql": "mainspring.store.postgres"}
_PARAMETER = re.compile(r"(?<![:\w]):([a-z]+)")


def steps(dialect: str) -> list[dict[str, object]]:
    """Every migration of the dialect, oldest first."""
    return [
        {"version": step.version, "name": step.name, "checksum": step.checksum, "sql": step.sql}
        for step in migrations(_PACKAGES[dialect])
    ]


def script(dialect: str) -> str:
    """One transaction that makes the schema from nothing, and records it, so that `verify` agrees."""
    return "\n".join(["BEGIN;", *_statements(dialect), "COMMIT;", ""])


def _statements(dialect: str) -> Iterator[str]:
    package = _PACKAGES[dialect]
    named = sqlfile.load(package, "admin.sql", "jobs.sql")
    yield f"{named['begin_migrations']};"
    for step in migrations(package):
        yield f"\n-- {step.name}\n{step.sql.rstrip()}\n"
        facts = {
            "version": str(step.version),
            "name": f"'{step.name}'",
            "checksum": f"'{step.checksum}'",
            "now": f"({_filled(named['now'], {'at': 'NULL'})})",
        }
        yield f"{_filled(named['record_migration'], facts)};"
    if "add_partitions" in named:
        yield f"{_filled(named['add_partitions'], {'at': 'NULL'})};"


def _filled(statement: str, literals: Mapping[str, str]) -> str:
    return _PARAMETER.sub(lambda parameter: literals[parameter[1]], statement)
