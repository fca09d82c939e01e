"""Settings from MAINSPRING_* variables."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path

from mainspring.config.keys import Given, Layer, keys, known_setting, sections
from mainspring.config.secrets import EMPTY
from mainspring.errors import InvalidConfig

_URL = "MAINSPRING_DATABASE_URL"
_IN_FILES = {
    f"{variable}_FILE": key
    for variable, key in (
        (_URL, "database.url"),
        ("MAINSPRING_ACCESS_OIDC_CLIENT_SECRET", "access.oidc_client_secret"),
        ("MAINSPRING_ALERTS_TO", "alerts.to"),
        ("MAINSPRING_ALERTS_SECRET", "alerts.secret"),
        ("MAINSPRING_ALERTS_PING_URL", "alerts.ping_url"),
    )
}
"""Secrets that may be named by the file that holds them."""
_PLAIN_URL = "DATABASE_URL"
NEVER_EMPTY = {
    "database.url": "postgresql://… or sqlite:///…; leave it out for a file in this folder",
    "access.oidc_client_secret": "a secret; leave it out for none",
    "alerts.to": "who is told; leave it out for the log alone",
    "alerts.secret": "a secret; leave it out for none",
    "alerts.ping_url": "a URL; leave it out for none",
    "worker.name": "1 to 100 printable characters; leave it out for host:pid",
}
"""Settings that must not be taken as left out where somebody has set them and the value came out empty:
webhooks would go unsigned, alerts to nobody, jobs into a file, and nobody would know."""
_SO_CLOSE = 0.92


def from_environment(environ: Mapping[str, str]) -> Layer:
    """What the environment sets. An empty variable sets nothing, as compose files leave many such; but what
    is `NEVER_EMPTY`, or is to be in a file, is there for whoever reads it to refuse."""
    known = {f"MAINSPRING_{key.replace('.', '_').upper()}": key for key in keys()}
    told = {*_IN_FILES, *(name for name, key in known.items() if key in NEVER_EMPTY)}
    present = {name: value for name, value in environ.items() if value or name in told}
    for name in present:
        if name not in known and name not in _IN_FILES and _looks_like_a_setting(name, known):
            raise InvalidConfig(name, name, known_setting(name, known), origin="environment")
    layer = {key: Given(present[name], name) for name, key in known.items() if name in present}
    if _PLAIN_URL in present:
        layer.setdefault("database.url", Given(present[_PLAIN_URL], _PLAIN_URL))
    for name, key in _IN_FILES.items():
        if name in present:
            variable = name.removesuffix("_FILE")
            if variable in present:
                raise InvalidConfig(key, name, f"either {variable} or {name}", origin="environment")
            layer[key] = Given(_secret(key, present[name], name), name)
    return layer


def _looks_like_a_setting(name: str, known: Mapping[str, str]) -> bool:
    if not name.startswith("MAINSPRING_"):
        return False
    of_a_section = name.startswith(tuple(f"MAINSPRING_{section.upper()}_" for section in sections()))
    return of_a_section or bool(difflib.get_close_matches(name, known, n=1, cutoff=_SO_CLOSE))


def _secret(key: str, path: str, origin: str) -> str:
    if not path:
        raise InvalidConfig(key, EMPTY, "the path of a file; leave it out for none", origin=origin)
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as problem:
        raise InvalidConfig(key, path, f"a readable file ({problem})", origin=origin) from None
