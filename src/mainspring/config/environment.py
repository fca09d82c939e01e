"""Settings from MAINSPRING_* variables."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path

from mainspring.config.keys import Given, Layer, keys, known_setting, sections
from mainspring.errors import InvalidConfig

_URL = "MAINSPRING_DATABASE_URL"
_URL_FILE = f"{_URL}_FILE"
_PLAIN_URL = "DATABASE_URL"
_SO_CLOSE = 0.92


def from_environment(environ: Mapping[str, str]) -> Layer:
    """What the environment sets. An empty variable sets nothing, as compose files leave many such."""
    present = {name: value for name, value in environ.items() if value}
    known = {f"MAINSPRING_{key.replace('.', '_').upper()}": key for key in keys()}
    for name in present:
        if name not in known and name != _URL_FILE and _looks_like_a_setting(name, known):
            raise InvalidConfig(name, name, known_setting(name, known), origin="environment")
    layer = {key: Given(present[name], name) for name, key in known.items() if name in present}
    if url := _database_url(present):
        layer["database.url"] = url
    return layer


def _looks_like_a_setting(name: str, known: Mapping[str, str]) -> bool:
    if not name.startswith("MAINSPRING_"):
        return False
    of_a_section = name.startswith(tuple(f"MAINSPRING_{section.upper()}_" for section in sections()))
    return of_a_section or bool(difflib.get_close_matches(name, known, n=1, cutoff=_SO_CLOSE))


def _database_url(present: Mapping[str, str]) -> Given | None:
    if _URL in present and _URL_FILE in present:
        raise InvalidConfig("database.url", _URL_FILE, f"either {_URL} or {_URL_FILE}", origin="environment")
    if _URL_FILE in present:
        return Given(_secret(present[_URL_FILE]), _URL_FILE)
    name = _URL if _URL in present else _PLAIN_URL
    return Given(present[name], name) if name in present else None


def _secret(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as problem:
        raise InvalidConfig("database.url", path, f"a readable file ({problem})", origin=_URL_FILE) from None
