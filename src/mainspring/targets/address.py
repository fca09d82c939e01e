"""Where an HTTP call may go: its URL, and the networks that it may reach."""

from __future__ import annotations

import re
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import NoReturn

from mainspring.errors import InvalidArgument
from mainspring.model.value import Value

IPAddress = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
# A list of our own: `ipaddress.is_global` accepts ways around it (NAT64, 6to4 and Teredo carry any IPv4
# address inside), and its answers differ between versions of Python.
_DENIED_4 = tuple(
    IPv4Network(each)
    for each in (
        "0.0.0.0/8",  # this network; 0.0.0.0 connects to this host
        "10.0.0.0/8",
        "100.64.0.0/10",  # carrier-grade NAT, and a cloud's metadata
        "127.0.0.0/8",
        "168.63.129.16/32",  # a cloud's host agent, on a public address
        "169.254.0.0/16",  # link-local: the metadata of most clouds
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",  # documentation, as are 198.51.100 and 203.0.113
        "192.31.196.0/24",
        "192.52.193.0/24",
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",
        "192.175.48.0/24",
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
    )
)
# Only this is given out to hosts: mapped and compatible addresses, NAT64, link-local, site-local,
# private and multicast ones are all outside.
_GIVEN_OUT_6 = IPv6Network("2000::/3")
_DENIED_6 = tuple(
    IPv6Network(each)
    for each in (
        "2001::/23",  # protocols: Teredo, ORCHID, benchmarks
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4
        "2620:4f:8000::/48",
        "3fff::/20",  # documentation
    )
)
LONGEST = 2048
PORTS = (80, 443, 8080, 8443)
_DEFAULT_PORTS = {"http": 80, "https": 443}
# Characters that RFC 3986 lets stand for themselves after the host; a space or a backslash is not among them.
_URL = re.compile(
    r"(https?)://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?((?:[/?][A-Za-z0-9._~:/?\[\]@!$&'()*+,;=%-]*)?)",
    re.ASCII | re.IGNORECASE,
)
_VISIBLE = re.compile(r"[!-~]+")
_IN_BRACKETS = re.compile(r"\[[0-9A-Fa-f:.]+\]")
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)", re.ASCII)
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)
_PRIVATE_NAMES = ("localhost", "internal", "local", "localdomain", "home.arpa")


def networks(given: Sequence[str], field: str) -> tuple[Network, ...]:
    """Networks that a target may reach although they are private."""
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise InvalidArgument(field, given, 'a list of networks, such as ["10.0.0.0/8"]')
    return tuple(_network(each, field) for each in given)


def address_of(text: str) -> IPAddress | None:
    """The address that is written so; None for anything else, such as a name."""
    try:
        return ip_address(text)
    except ValueError:
        return None


def is_reachable(address: IPAddress, allowed: Sequence[Network]) -> bool:
    """Whether a job may connect to it."""
    if any(address in network for network in allowed):
        return True
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _DENIED_4)
    if address.scope_id is not None or address not in _GIVEN_OUT_6:
        return False
    return not any(address in network for network in _DENIED_6)


def _network(text: str, field: str) -> Network:
    try:
        return ip_network(text) if isinstance(text, str) else _no_network()
    except ValueError:
        raise InvalidArgument(field, text, "a network, such as 10.0.0.0/8 or fd00::/8") from None


def _no_network() -> Network:
    raise ValueError


class Address(Value, frozen=True, kw_only=True):
    """Where an HTTP call goes."""

    scheme: str
    host: str
    """A name, in lower case, or an IP address without brackets."""
    port: int
    path: str
    """Path and query, as they are sent."""
    literal: IPAddress | None
    """The address itself, if the URL names no host."""

    @property
    def authority(self) -> str:
        """As it stands in the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        """Without its query, which may hold what logs should not."""
        return f"{self.scheme}://{self.authority}{self.path.partition('?')[0]}"


def read_url(
    url: object, field: str, *, ports: Sequence[int] = PORTS, allowed: Sequence[Network] = ()
) -> Address:
    """The address, or InvalidArgument. A name is looked up, and checked again, when it is connected to."""
    if not isinstance(url, str):
        raise InvalidArgument(field, url, "a URL such as https://example.com/hook")
    if len(url) > LONGEST:
        raise InvalidArgument(field, url, f"at most {LONGEST} characters")
    found = _URL.fullmatch(url)
    if found is None:
        _explain(url, field)
    scheme, host, port_text, path = found[1].lower(), found[2].lower(), found[3], found[4]
    port = int(port_text) if port_text else _DEFAULT_PORTS[scheme]
    if port not in ports:
        raise InvalidArgument(
            field, url, f"one of the ports {', '.join(map(str, ports))}; ports=… names others"
        )
    host = host.removeprefix("[").removesuffix("]").removesuffix(".")
    literal = address_of(host)
    if literal is not None:
        if not is_reachable(literal, allowed):
            raise InvalidArgument(field, url, "a host that is not private; allow_private=… names exceptions")
    else:
        _check_name(host, url, field, anywhere=bool(allowed))
    path = path if path.startswith("/") else f"/{path}"
    return Address(scheme=scheme, host=host, port=port, path=path, literal=literal)


def _explain(url: str, field: str) -> NoReturn:
    scheme, colons, rest = url.partition("://")
    if not colons or scheme.lower() not in _DEFAULT_PORTS or rest[:1] in ("", "/", "?", "#"):
        raise InvalidArgument(field, url, "a URL that begins with http:// or https:// and a host")
    authority = re.split(r"[/?#\\]", rest, maxsplit=1)[0]
    if "@" in authority:
        # The message shows the field and not the URL: there may be a password in it.
        raise InvalidArgument(field, "a URL with @ in it", "no user or password; put them into a header")
    if authority.startswith("[") and not _IN_BRACKETS.match(authority):
        raise InvalidArgument(field, url, "an IP address in brackets, without a zone, that is not private")
    if ":" in authority and _VISIBLE.fullmatch(authority):
        raise InvalidArgument(field, url, "a port from 1 to 65535 after the host")
    raise InvalidArgument(
        field,
        url,
        "visible ASCII without fragment, user or backslash; the rest percent-encoded, names in punycode",
    )


def _check_name(host: str, url: str, field: str, *, anywhere: bool) -> None:
    labels = host.split(".")
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise InvalidArgument(field, url, "a host name or an IP address")
    if _NUMBER.fullmatch(labels[-1]):
        # 127.1, 0x7f000001 and 0177.0.0.1 are addresses to some and names to others.
        raise InvalidArgument(field, url, "an IP address in its usual form, that is not private")
    if not anywhere and any(host == name or host.endswith(f".{name}") for name in _PRIVATE_NAMES):
        raise InvalidArgument(field, url, "a host that is not private; allow_private=… names exceptions")
