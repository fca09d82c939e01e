"""Which addresses a job may reach."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from mainspring.errors import InvalidArgument
from mainspring.targets.address import is_reachable, networks


@pytest.mark.parametrize(
    "text",
    [
        "0.0.0.0", "10.0.0.1", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.255.255.254",
        "168.63.129.16", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.8", "192.0.2.1",
        "192.88.99.1", "192.168.1.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1",
        "239.1.1.1", "240.0.0.1", "255.255.255.255", "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1",
        "::ffff:8.8.8.8", "::ffff:0:7f00:1", "64:ff9b::7f00:1", "64:ff9b:1::1", "100::1", "2001::1",
        "2001:0:7f00:1::", "2001:10::1", "2001:2::1", "2001:db8::1", "2002:7f00:1::", "3fff::1",
        "5f00::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1",
        "2606:4700::1%eth0",
    ],
)  # fmt: skip
def test_private_reserved_and_wrapped_addresses_are_out_of_reach(text: str) -> None:
    assert not is_reachable(ip_address(text), ())


@pytest.mark.parametrize(
    "text",
    [
        "1.1.1.1", "8.8.8.8", "93.184.216.34", "172.15.255.255", "172.32.0.1", "192.0.1.1",
        "223.255.255.255", "2606:2800:220:1:248:1893:25c8:1946", "2a00:1450::1", "2001:4860:4860::8888",
        "2620:fe::fe",
    ],
)  # fmt: skip
def test_public_addresses_are_within_reach(text: str) -> None:
    assert is_reachable(ip_address(text), ())


def test_what_is_allowed_is_allowed_and_nothing_beside_it() -> None:
    allowed = networks(["10.1.0.0/16", "fd00::/8"], "allow_private")

    assert is_reachable(ip_address("10.1.2.3"), allowed)
    assert is_reachable(ip_address("fd00::1"), allowed)
    assert not is_reachable(ip_address("10.2.0.1"), allowed)
    assert not is_reachable(ip_address("::ffff:10.1.2.3"), allowed)


@pytest.mark.parametrize("wrong", ["10.0.0.0/8", ["10.0.0.1/8"], ["everything"], [8], None])
def test_a_network_that_cannot_be_read_is_refused(wrong: object) -> None:
    with pytest.raises(InvalidArgument, match="network"):
        networks(wrong, "allow_private")  # type: ignore[arg-type]
