"""Numbered migrations: which there are, which are still to come, and whether the store agrees."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from importlib import resources

from mainspring.errors import SchemaMismatch
from mainspring.model.value import Value

_FILE = re.compile(r"(\d{4})_[a-z0-9_]+\.sql")


class Migration(Value, frozen=True, kw_only=True):
    """One step of the schema. Its checksum is kept in the store, so an edited file is noticed."""

    version: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()


def migrations(package: str) -> list[Migration]:
    """Every migration of one dialect, oldest first."""
    folder = resources.files(package) / "migrations"
    found = []
    for entry in folder.iterdir():
        if match := _FILE.fullmatch(entry.name):
            sql = entry.read_text(encoding="utf-8")
            name = entry.name.removesuffix(".sql")
            found.append(Migration(version=int(match[1]), name=name, sql=sql))
    found.sort(key=lambda step: step.version)
    if [step.version for step in found] != list(range(1, len(found) + 1)):
        raise ValueError(f"{package}/migrations: numbers must run from 1 without a gap")
    return found


def pending(known: Sequence[Migration], applied: Mapping[int, str]) -> list[Migration]:
    """What is still to be applied, given version -> checksum of what was. Refuses a store that
    is ahead of this code or was built from other files."""
    if applied and max(applied) > len(known):
        raise SchemaMismatch(max(applied), len(known))
    for step in known:
        if applied.get(step.version, step.checksum) != step.checksum:
            raise SchemaMismatch(
                max(applied), len(known), f"migration {step.name} was applied from another text"
            )
    return [step for step in known if step.version not in applied]


def require_current(known: Sequence[Migration], applied: Mapping[int, str]) -> None:
    """Raise SchemaMismatch unless every known migration, and no other, has been applied."""
    if pending(known, applied):
        raise SchemaMismatch(max(applied, default=0), len(known))
