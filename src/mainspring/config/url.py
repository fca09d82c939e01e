"""Database URLs: one spelling inside, and no password in any message."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from mainspring.config.dsn import unknown_options
from mainspring.config.pooling import address
from mainspring.errors import InvalidConfig

MEMORY = "sqlite://:memory:"
_FIELD = "database.url"
_ALLOWED = (
    "postgresql://user:password@host:5432/name, sqlite:///relative/file.db, "
    "sqlite:////absolute/file.db or sqlite://:memory:"
)
_POSTGRES = re.compile(r"(?:postgres|postgresql|postgresql\+asyncpg)://")
# Up to the last @, since a password that nobody percent-encoded may hold one itself.
_PASSWORD = re.compile(r"(://[^:@/?#]*):.*@", re.DOTALL)
_PASSWORD_OPTION = re.compile(r"([?&](?:password|passfile|sslpassword)=)[^&#]*", re.IGNORECASE)


def masked_url(url: str) -> str:
    """The URL as it may be shown: without its password."""
    return _PASSWORD_OPTION.sub(r"\1***", _PASSWORD.sub(r"\1:***@", url))


def sqlite_file(url: str) -> str | None:
    """The file behind a normal URL; None if it is a server or in memory."""
    return url.removeprefix("sqlite:///") if url.startswith("sqlite:///") else None


def normal_url(url: str) -> str:
    """The URL in the one spelling that stores read: postgresql://… or sqlite://…"""
    if not isinstance(url, str) or not url.isprintable() or url != url.strip():
        raise _refused(url, _ALLOWED)
    if prefix := _POSTGRES.match(url):
        return _checked(f"postgresql://{url[prefix.end() :]}")
    if url in (MEMORY, "sqlite:///:memory:"):
        return MEMORY
    if url.startswith("sqlite:///") and not url.endswith("/") and not {"?", "#"} & set(url):
        return url
    raise _refused(url, _ALLOWED)


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url)
        # Several, for a primary and its standbys: each may have a port.
        ports = [urlsplit(f"//{place}").port for place in parts.netloc.rpartition("@")[2].split(",")]
    except ValueError:
        ports = [0]
    if 0 in ports:
        raise _refused(url, f"{_ALLOWED}, with a port from 1 to 65535")
    if parts.fragment or "#" in url or "@" in parts.path:
        raise _refused(url, "a password with / # ? and @ written as %2F %23 %3F and %40")
    if not parts.path.strip("/"):
        raise _refused(url, "a database name after the host")
    for option in unknown_options(parts.query):
        expected = "options that PostgreSQL or its driver knows, such as sslmode and application_name"
        raise InvalidConfig(_FIELD, option, expected)
    address(url)  # which refuses what `pool` and `listen` may not be
    return url


def _refused(url: object, expected: str) -> InvalidConfig:
    return InvalidConfig(_FIELD, masked_url(url) if isinstance(url, str) else url, expected)
