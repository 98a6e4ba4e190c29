"""Whose address a request comes from, and whom that is believed of."""

import pytest

from antiphon.http.addresses import UNKNOWN, client_address, is_loopback

PROXIES = ("10.0.0.0/8", "::1")


@pytest.mark.parametrize(
    ("peer", "forwarded", "trusted", "address"),
    [
        ("203.0.113.9", "", PROXIES, "203.0.113.9"),
        ("203.0.113.9", "198.51.100.1", PROXIES, "203.0.113.9"),
        ("10.0.0.2", "198.51.100.1", PROXIES, "198.51.100.1"),
        ("10.0.0.2", "198.51.100.1", (), "10.0.0.2"),
        ("10.0.0.2", "192.0.2.7, 198.51.100.1", PROXIES, "198.51.100.1"),
        ("10.0.0.2", "198.51.100.1, 10.9.9.9", PROXIES, "198.51.100.1"),
        ("10.0.0.2", "nonsense", PROXIES, "10.0.0.2"),
        ("10.0.0.2", "192.0.2.7, nonsense, 10.9.9.9", PROXIES, "10.9.9.9"),
        ("10.0.0.2", "198.51.100.1:4711", PROXIES, "198.51.100.1"),
        ("10.0.0.2", "[2001:db8::1]:443", PROXIES, "2001:db8::/64"),
        ("10.0.0.2", "10.0.0.3, 10.0.0.4", PROXIES, "10.0.0.3"),
        ("::1", "198.51.100.1", PROXIES, "198.51.100.1"),
        ("::ffff:203.0.113.9", "", (), "203.0.113.9"),
        ("2001:db8:0:1:aaaa::1", "", (), "2001:db8:0:1::/64"),
        ("fe80::1%eth0", "", (), "fe80::/64"),
        (None, "198.51.100.1", PROXIES, UNKNOWN),
        ("", "", (), UNKNOWN),
    ],
)
def test_only_trusted_proxies_say_who_the_client_is(peer, forwarded, trusted, address):
    assert client_address(peer, forwarded, trusted) == address


@pytest.mark.parametrize(
    ("address", "is_here"),
    [("127.0.0.1", True), ("::1", True), ("10.0.0.1", False), (UNKNOWN, False)],
)
def test_loopback_is_this_machine(address, is_here):
    assert is_loopback(address) is is_here
