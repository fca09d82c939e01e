"""Which addresses a job may reach.

A list of our own, since `ipaddress.is_global` says yes to ways around it: NAT64, 6to4 and Teredo carry any
IPv4 address inside, and what it says changes between versions of Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from mainspring.errors import InvalidArgument

IPAddress = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

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
