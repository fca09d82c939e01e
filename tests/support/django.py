"""Django without a project: settings made by hand, and a database for as long as a test needs it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote, urlsplit

import django
from django.conf import settings
from django.db import connections

ALIAS = "shop"


@contextmanager
def configured(url: str) -> Iterator[str]:
    """Has this database under an alias, and takes it away afterwards."""
    if not settings.configured:
        settings.configure(DATABASES={}, USE_TZ=True, INSTALLED_APPS=[], LOGGING_CONFIG=None)
        django.setup()
    connections.databases.setdefault("default", {"ENGINE": "django.db.backends.dummy"})
    connections.databases[ALIAS] = _database(url)
    connections.configure_settings(connections.databases)
    try:
        yield ALIAS
    finally:
        connections[ALIAS].close()
        del connections[ALIAS]
        del connections.databases[ALIAS]


def _database(url: str) -> dict[str, object]:
    if url.startswith("sqlite:///"):
        return {"ENGINE": "django.db.backends.sqlite3", "NAME": url.removeprefix("sqlite:///")}
    parts = urlsplit(url)
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts.path.removeprefix("/"),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": parts.hostname or "",
        "PORT": str(parts.port or ""),
    }
