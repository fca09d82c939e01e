"""The two options of a PostgreSQL URL that are ours: `pool` and `listen`."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from mainspring.errors import InvalidConfig

FIELD = "database.url"
POOL, LISTEN = "pool", "listen"
OWN = frozenset({POOL, LISTEN})
"""Read here; neither the driver nor the server is shown them."""
SESSION, TRANSACTION = "session", "transaction"
_PLACE = "a place such as 10.0.0.5:5432 or 10.0.0.5:5432/name, where PostgreSQL itself answers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A URL, taken apart."""

    url: str
    """As the driver may have it."""
    pooled: bool = False
    """Whether somebody in between gives us another session for every transaction."""
    listen: str | None = None
    """Where to listen for hints; None where nobody can."""


def address(url: str) -> Address:
    """What a URL says. Whoever has a session keeps it and listens there, unless it says otherwise."""
    parts = urlsplit(url)
    options = parse_qsl(parts.query, keep_blank_values=True)
    own = {name: value for name, value in options if name in OWN}
    if not own:
        return Address(url=url, listen=url)
    if len(own) < sum(name in OWN for name, _ in options):
        raise InvalidConfig(FIELD, "&".join(name for name, _ in options), "each option once")
    rest = [(name, value) for name, value in options if name not in OWN]
    plain = urlunsplit(parts._replace(query=urlencode(rest, quote_via=quote)))
    pool = own.get(POOL, SESSION)
    if pool not in (SESSION, TRANSACTION):
        raise InvalidConfig(f"{FIELD} {POOL}", pool, f"{SESSION} or {TRANSACTION}")
    elsewhere = _elsewhere(plain, own[LISTEN]) if LISTEN in own else None
    return Address(
        url=plain,
        pooled=pool == TRANSACTION,
        listen=elsewhere or (None if pool == TRANSACTION else plain),
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
        told = urlsplit(f"//{where}")
        fit = bool(told.hostname) and told.port != 0 and told.username is None
    except ValueError:
        fit = False
    if not fit or not place.isprintable() or {" ", "?", "#", ","} & set(place) or "/" in database:
        named = place.rpartition("@")
        # Somebody may have put a password there, too.
        raise InvalidConfig(f"{FIELD} {LISTEN}", f"***@{named[2]}" if named[1] else place, _PLACE)
    user, at, _ = parts.netloc.rpartition("@")
    options = [(name, value) for name, value in parse_qsl(parts.query) if name not in ("host", "port")]
    path = f"/{database}" if database else parts.path
    return urlunsplit(
        parts._replace(netloc=f"{user}{at}{where}", path=path, query=urlencode(options, quote_via=quote))
    )
