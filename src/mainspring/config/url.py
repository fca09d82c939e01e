"""Database URLs: one spelling inside, no password in any message, and what a pooler in between changes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from mainspring.errors import InvalidConfig

_FIELD = "database.url"
_POOL, _LISTEN = "pool", "listen"
_OWN = frozenset({_POOL, _LISTEN})
"""Read here; neither the driver nor the server is shown them."""
_SESSION_POOL, _TRANSACTION_POOL = "session", "transaction"
_PLACE = "a place such as 10.0.0.5:5432 or 10.0.0.5:5432/name, where PostgreSQL itself answers"
MEMORY = "sqlite://:memory:"
_ALLOWED_URLS = (
    "postgresql://user:password@host:5432/name, sqlite:///relative/file.db, "
    "sqlite:////absolute/file.db or sqlite://:memory:"
)
_POSTGRES = re.compile(r"(?:postgres|postgresql|postgresql\+asyncpg)://")
# What has this shape can be shown in part; in all else the start of a password is unknown. A password
# goes up to the last @, since a password that is not percent-encoded may contain one.
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
_SIMPLE_NAME = re.compile(r"[A-Za-z0-9_.-]*")
_HIDDEN = "***"
# fmt: off
_CONNECTION = frozenset({
    "host", "port", "user", "database", "dbname", "password", "passfile", "sslmode", "sslcert", "sslkey",
    "sslrootcert", "sslcrl", "sslpassword", "sslnegotiation", "ssl_min_protocol_version",
    "ssl_max_protocol_version", "target_session_attrs", "krbsrvname", "gsslib", "service", "servicefile",
})
"""Those that the driver reads."""
_SESSION = frozenset({
    "application_name", "client_connection_check_interval", "idle_in_transaction_session_timeout",
    "idle_session_timeout", "jit", "lock_timeout", "options", "role", "search_path", "statement_timeout",
    "tcp_keepalives_count", "tcp_keepalives_idle", "tcp_keepalives_interval", "tcp_user_timeout", "timezone",
    "work_mem",
})
"""Those that are passed on to the server, which refuses a connection over one that it does not know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseAddress:
    """A URL, taken apart."""

    url: str
    """As the driver may have it."""
    pooled: bool = False
    """Whether a pooler gives us another session for every transaction."""
    listen: str | None = None
    """Where to listen for hints; None where that is not possible."""


def database_address(url: str) -> DatabaseAddress:
    """What a URL says. Unless it says otherwise, a session is kept, and hints come in on it."""
    parts = urlsplit(url)
    options = parse_qsl(parts.query, keep_blank_values=True)
    own = {name: value for name, value in options if name in _OWN}
    if not own:
        return DatabaseAddress(url=url, listen=url)
    if len(own) < sum(name in _OWN for name, _ in options):
        raise InvalidConfig(_FIELD, "&".join(name for name, _ in options), "each option once")
    rest = [(name, value) for name, value in options if name not in _OWN]
    plain = urlunsplit(parts._replace(query=urlencode(rest, quote_via=quote)))
    pool = own.get(_POOL, _SESSION_POOL)
    if pool not in (_SESSION_POOL, _TRANSACTION_POOL):
        raise InvalidConfig(f"{_FIELD} {_POOL}", pool, f"{_SESSION_POOL} or {_TRANSACTION_POOL}")
    elsewhere = _elsewhere(plain, own[_LISTEN]) if _LISTEN in own else None
    return DatabaseAddress(
        url=plain,
        pooled=pool == _TRANSACTION_POOL,
        listen=elsewhere or (None if pool == _TRANSACTION_POOL else plain),
    )


def apart(url: str) -> tuple[str, ...]:
    """The same URL for each of its hosts alone."""
    parts = urlsplit(url)
    user, at, hosts = parts.netloc.rpartition("@")
    options = parse_qsl(parts.query, keep_blank_values=True)
    named = dict(options)
    if "," in named.get("host", ""):
        places = named["host"].split(",")
        ports = named.get("port", "").split(",")
        ports = ports * len(places) if len(ports) == 1 else ports
        rest = [(name, value) for name, value in options if name not in ("host", "port")]
        queries = [
            urlencode([*rest, ("host", place), *([("port", port)] if port else [])], quote_via=quote)
            for place, port in zip(places, ports, strict=False)
        ]
        return tuple(urlunsplit(parts._replace(query=query)) for query in queries)
    return tuple(urlunsplit(parts._replace(netloc=f"{user}{at}{host}")) for host in hosts.split(","))


def _elsewhere(url: str, place: str) -> str:
    """The same user and options at another host, and in another database if one is named."""
    parts = urlsplit(url)
    where, _, database = place.partition("/")
    try:
        parts_of_place = urlsplit(f"//{where}")
        fit = bool(parts_of_place.hostname) and parts_of_place.port != 0 and parts_of_place.username is None
    except ValueError:
        fit = False
    if not fit or not place.isprintable() or {" ", "?", "#", ","} & set(place) or "/" in database:
        named = place.rpartition("@")
        # A password may be there, too.
        raise InvalidConfig(f"{_FIELD} {_LISTEN}", f"***@{named[2]}" if named[1] else place, _PLACE)
    user, at, _ = parts.netloc.rpartition("@")
    options = [(name, value) for name, value in parse_qsl(parts.query) if name not in ("host", "port")]
    path = f"/{database}" if database else parts.path
    return urlunsplit(
        parts._replace(netloc=f"{user}{at}{where}", path=path, query=urlencode(options, quote_via=quote))
    )


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
    who = user if user is None or _SIMPLE_NAME.fullmatch(user) else _HIDDEN
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
        raise _refused(url, _ALLOWED_URLS)
    if prefix := _POSTGRES.match(url):
        return _checked(f"postgresql://{url[prefix.end() :]}")
    if url in (MEMORY, "sqlite:///:memory:"):
        return MEMORY
    if url.startswith("sqlite:///") and not url.endswith("/") and not {"?", "#"} & set(url):
        return url
    raise _refused(url, _ALLOWED_URLS)


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url)
        # Several, for a primary and its standbys: each may have a port.
        ports = [urlsplit(f"//{place}").port for place in parts.netloc.rpartition("@")[2].split(",")]
    except ValueError:
        ports = [0]
    if 0 in ports:
        raise _refused(url, f"{_ALLOWED_URLS}, with a port from 1 to 65535")
    if parts.fragment or "#" in url or "@" in parts.path:
        raise _refused(url, "a password with / # ? and @ written as %2F %23 %3F and %40")
    if not parts.path.strip("/"):
        raise _refused(url, "a database name after the host")
    for option in unknown_options(parts.query):
        expected = "options that PostgreSQL or its driver knows, such as sslmode and application_name"
        raise InvalidConfig(_FIELD, option, expected)
    database_address(url)  # which refuses what `pool` and `listen` may not be
    return url


def _refused(url: object, expected: str) -> InvalidConfig:
    return InvalidConfig(_FIELD, masked_url(url) if isinstance(url, str) else url, expected)


# fmt: on


def unknown_options(query: str) -> Iterator[str]:
    """Options of a URL that mean nothing here. Names with a dot are an extension's or the user's own."""
    for name, _ in parse_qsl(query, keep_blank_values=True):
        if name not in _OWN and name.lower() not in _CONNECTION | _SESSION and "." not in name:
            yield name
