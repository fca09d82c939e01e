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
# What has this shape can be shown in part; of all else nobody can tell where its password begins. A password
# goes up to the last @, since one that nobody percent-encoded may hold one itself.
_SHAPE = re.compile(
    r"""
    (?P<before>["'\s]*(?:[A-Za-z][A-Za-z0-9+.-]*:)?[A-Za-z][A-Za-z0-9+.-]*://)
    (?:(?P<user>[^:@/?#]*)(?P<password>:.*)?@)?
    (?P<hosts>(?:[A-Za-z0-9_.-]*|\[[0-9A-Fa-f:.]*\])(?::[0-9]{0,6})?
        (?:,(?:[A-Za-z0-9_.-]*|\[[0-9A-Fa-f:.]*\])(?::[0-9]{0,6})?)*)
    (?P<path>/[^?\#@]*)?
    (?:\?(?P<options>[^\#]*))?(?P<fragment>\#.*)?
    """,
    re.DOTALL | re.VERBOSE,
)
_SUSPICIOUS = re.compile(r"[@:=;]|pass|pwd|secret", re.IGNORECASE)
_SCHEME = re.compile(r"""["'\s]*[A-Za-z][A-Za-z0-9+.-]*://""")
_SIMPLE = re.compile(r"[A-Za-z0-9_.-]*")
_HIDDEN = "***"


def masked_url(url: str) -> str:
    """The URL as it may be shown: without its password, however it is written. Of one that is not made like a
    URL little is shown."""
    if url == MEMORY:
        return url
    found = _SHAPE.fullmatch(url)
    if found is None:
        scheme = _SCHEME.match(url)
        if scheme is not None:
            return f"{scheme[0]}{_HIDDEN}"
        return _HIDDEN if _SUSPICIOUS.search(url) else url
    user, password, options = found["user"], found["password"], found["options"]
    who = user if user is None or _SIMPLE.fullmatch(user) else _HIDDEN
    account = "" if who is None else f"{who}@" if password is None else f"{who}:{_HIDDEN}@"
    path = found["path"] or ""
    shown = f"{found['before']}{account}{found['hosts']}{path}"
    if options is not None:
        shown += "?" + "&".join(_masked_option(each) for each in options.split("&"))
    return f"{shown}#{_HIDDEN}" if found["fragment"] else shown


def holds_password(url: str) -> bool:
    """Whether a text is a URL with a password in it."""
    found = _SHAPE.fullmatch(url)
    return found is not None and (bool(found["password"]) or masked_url(url) != url)


def _masked_option(option: str) -> str:
    name, sign, value = option.partition("=")
    is_known = not any(unknown_options(option)) and not _SUSPICIOUS.search(name)
    plain = "%" not in value and not _SUSPICIOUS.search(value.replace(":", ""))
    return option if not sign or (is_known and plain and name.lower() != "options") else f"{name}={_HIDDEN}"


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
