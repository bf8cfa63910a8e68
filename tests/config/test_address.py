"""Socket and source addresses (chapter 10 section 4.3)."""

from __future__ import annotations

import socket

import pytest

from conduit.config.address import parse_socket_address, parse_source_address


@pytest.mark.parametrize(
    ("text", "sockaddr", "canonical"),
    [
        ("127.0.0.1:53", ("127.0.0.1", 53), "127.0.0.1:53"),
        ("0.0.0.0:0", ("0.0.0.0", 0), "0.0.0.0:0"),
        ("255.255.255.255:65535", ("255.255.255.255", 65535), "255.255.255.255:65535"),
        ("[::1]:53", ("::1", 53, 0, 0), "[::1]:53"),
        ("[2001:DB8:0:0::1]:053", ("2001:db8::1", 53, 0, 0), "[2001:db8::1]:53"),
        ("[::ffff:192.0.2.1]:1", ("::ffff:192.0.2.1", 1, 0, 0), "[::ffff:192.0.2.1]:1"),
    ],
)
def test_socket_addresses(text: str, sockaddr: tuple[str, int], canonical: str) -> None:
    address = parse_socket_address(text)
    assert address.sockaddr == sockaddr
    assert str(address) == canonical
    assert address.family == (socket.AF_INET6 if "[" in text else socket.AF_INET)
    assert parse_socket_address(canonical) == address


@pytest.mark.parametrize(
    "text",
    [
        "", "53", "127.0.0.1", "127.0.0.1:", ":53", "localhost:53", "127.0.0.1:65536", "::1:53",
        "[::1]", "[::1]:", "::1", "127.0.0.1:-1", "127.0.0.1:+1", "127.0.0.1:000053",
        " 127.0.0.1:1",
        "127.0.0.1:1 ", "127.0.0.1:1\n", "010.0.0.1:1", "1.2.3:1", "1.2.3.4.5:1", "256.0.0.1:1",
        "1.2.3.4/32:1", "[1.2.3.4]:1", "[::g]:1", "[::1", "[[::1]]:1", "127.0.0.1:٥",
        "[::ffff:01.2.3.4]:1",
        "[::1%]:1", "[::1%no-such-if0]:1", "[::1%99999999999999999999]:1", "[:" + ":" * 90 + "]:1",
    ],
)  # fmt: skip
def test_socket_addresses_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=r"must be|not a valid|above 65535|no network interface"):
        parse_socket_address(text)


def test_zone_is_resolved_and_kept_as_written() -> None:
    index = socket.if_nametoindex("lo")
    address = parse_socket_address("[fe80::1%lo]:53")
    assert (address.scope, address.scope_id) == ("lo", index)
    assert address.sockaddr == ("fe80::1", 53, 0, index)
    assert str(address) == "[fe80::1%lo]:53"
    assert parse_socket_address(f"[fe80::1%{index}]:53").scope_id == index


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0.0.0.0:1", True), ("[::]:1", True), ("127.0.0.1:1", False), ("[::1]:1", False)],
)
def test_wildcard(text: str, expected: bool) -> None:
    assert parse_socket_address(text).is_wildcard is expected


def test_source_addresses() -> None:
    assert parse_source_address("192.0.2.1", socket.AF_INET) == "192.0.2.1"
    assert parse_source_address("2001:DB8::0:1", socket.AF_INET6) == "2001:db8::1"


@pytest.mark.parametrize(
    ("text", "family"),
    [
        ("::1", socket.AF_INET),
        ("1.2.3.4", socket.AF_INET6),
        ("01.2.3.4", socket.AF_INET),
        ("1.2.3.4:53", socket.AF_INET),
        ("1.2.3.4/8", socket.AF_INET),
        (" 1.2.3.4", socket.AF_INET),
        ("fe80::1%lo", socket.AF_INET6),
        ("::1/128", socket.AF_INET6),
        ("[::1]", socket.AF_INET6),
        ("", socket.AF_INET6),
        ("::1\0", socket.AF_INET6),
    ],
)
def test_source_addresses_rejected(text: str, family: int) -> None:
    version = "4" if family == socket.AF_INET else "6"
    with pytest.raises(ValueError, match=f"is not a valid IPv{version} address"):
        parse_source_address(text, family)
