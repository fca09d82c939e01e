"""Read `-- name: x` statements out of the .sql files that sit beside an adapter."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import resources
from types import MappingProxyType

_HEADING = re.compile(r"^-- name: ([a-z][a-z0-9_]*)\s*$", re.MULTILINE)
_PARAMETER = re.compile(r"(?<![:\w]):([a-z][a-z0-9_]*)")
_PART = re.compile(r"^-- part: ([a-z_]+)\n(.*?)^-- end\n", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"--[^\n]*")


def load(package: str, *filenames: str) -> Mapping[str, str]:
    """Every named statement of these files, by name, with its `:name` parameters as written."""
    found: dict[str, str] = {}
    for filename in filenames:
        text = (resources.files(package) / "sql" / filename).read_text(encoding="utf-8")
        shared = dict(_PART.findall(text))  # what two statements have in common stands in one of them
        for name, part in shared.items():
            text = text.replace(f"-- use: {name}\n", part)
        _, *parts = _HEADING.split(text)
        for name, body in zip(parts[::2], parts[1::2], strict=True):
            if name in found:
                raise ValueError(f"{package}/sql/{filename}: statement {name} is there twice")
            found[name] = _COMMENT.sub("", body).strip().rstrip(";")
    return MappingProxyType(found)


def numbered(statement: str) -> tuple[str, tuple[str, ...]]:
    """The statement with `$n` for each `:name`, and the names in the order of their numbers."""
    names: list[str] = []

    def number(match: re.Match[str]) -> str:
        name = match[1]
        if name not in names:
            names.append(name)
        return f"${names.index(name) + 1}"

    return _PARAMETER.sub(number, statement), tuple(names)
