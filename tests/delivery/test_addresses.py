"""Which addresses events may be sent to."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.delivery.addresses import Allowed
from vedette.delivery.urls import find_fault, host_of
from vedette.errors import PipelineError

# Written out by hand from the registries of special addresses (RFC 6890 and its updates).
SPECIAL = [
    "0.0.0.0", "10.1.2.3", "100.64.0.1", "127.0.0.1", "127.255.255.254", "169.254.169.254", "172.16.0.1",
    "172.31.255.255",
    "192.0.0.1", "192.0.2.1", "192.168.0.1", "198.18.0.1", "198.51.100.7", "203.0.113.9", "224.0.0.1", "239.1.2.3",
    "240.0.0.1", "255.255.255.255", "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1",
    "::ffff:169.254.169.254", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "2002:a9fe:a9fe::1", "100::1",
    "2001:db8::1", "fc00::1", "fd12:3456::1", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "ff0e::1",
    "2001:0:a9fe:a9fe::1",
]  # fmt: skip
PUBLIC = [
    "1.1.1.1",
    "8.8.8.8",
    "93.184.216.34",
    "172.32.0.1",
    "2606:4700:4700::1111",
    "::ffff:8.8.8.8",
    "64:ff9b::808:808",
]


@pytest.mark.parametrize("address", SPECIAL)
def test_a_special_address_is_refused(address):
    assert "is not public; to allow it, add it or its network to allow_addresses" in Allowed().refuses(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_allowed(address):
    assert Allowed().refuses(address) is None


@pytest.mark.parametrize(
    "text", ["2130706433", "0x7f000001", "127.1", "0177.0.0.1", "localhost", "", "1.1.1.1 ", "\uff11.1.1.1"]
)
def test_an_address_in_an_unusual_form_is_refused(text):
    assert "is not an IP address in its usual form" in Allowed().refuses(text)


def test_only_the_given_networks_are_allowed_besides():
    allowed = Allowed.read(["127.0.0.1", "10.0.0.0/8", "fd00::/8"])

    assert [allowed.refuses(each) for each in ("127.0.0.1", "10.9.9.9", "::ffff:10.0.0.1", "fd00::1", "1.1.1.1")] == [
        None
    ] * 5
    assert all(allowed.refuses(each) for each in ("127.0.0.2", "192.168.0.1", "fe80::1"))


@given(st.integers(0, 2**32 - 1).map(ipaddress.IPv4Address))
def test_an_ipv4_address_inside_an_ipv6_address_is_judged_like_the_address_itself(address):
    alone = Allowed().refuses(str(address)) is None
    mapped = ipaddress.IPv6Address(0xFFFF << 32 | int(address))
    translated = ipaddress.IPv6Address(int(ipaddress.IPv6Address("64:ff9b::")) | int(address))

    assert (Allowed().refuses(str(mapped)) is None) == alone
    assert (Allowed().refuses(str(translated)) is None) == alone


@pytest.mark.parametrize("given_", [["10.0.0.0/33"], ["example.com"], "nonsense"])
def test_a_network_that_is_none_is_refused(given_):
    with pytest.raises(PipelineError, match=r"^allow_addresses must have addresses or networks such as '127.0.0.1'"):
        Allowed.read(given_)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("ftp://example.com/x", "has the scheme 'ftp'; use https://"),
        ("example.com/hook", "has the scheme ''; use https://"),
        ("https://", "has no host"),
        ("https://user:pass@example.com/", "the URL of host example.com has a user or a password"),
        ("https://example.com/#part", "has a fragment"),
        ("https://example.com:99999/", "is not a URL such as"),
        ("https://exa mple.com/", "is not a URL such as"),
        ("https://example.com/\r\nX-Evil: 1", "is not a URL such as"),
        ("https://[::1/", "is not a URL such as"),
        ("https://example.com/" + "a" * 3000, "is not a URL such as"),
    ],
)
def test_an_invalid_url_is_refused_with_the_reason(url, message):
    assert message in find_fault(url)
    assert "pass@" not in find_fault(url)


def test_messages_show_only_the_host_and_port_of_a_url():
    assert host_of("https://hooks.example.com/services/T0/B0/secret?token=1") == "hooks.example.com:443"
    assert host_of("not a url") == "?"
