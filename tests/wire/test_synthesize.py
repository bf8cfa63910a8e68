"""Replies that the forwarder makes up: header bits, question, OPT and Extended DNS Error."""

from __future__ import annotations

import dns.edns
import dns.flags
import dns.message
import pytest

from conduit.wire import ExtendedError, Query, parse_query, synthesize_reply
from tests.wire.builders import QUESTION, header, opt, option, query


def parsed(data: bytes) -> Query:
    result = parse_query(data)
    assert isinstance(result, Query), result
    return result


def test_ch20_example_21_with_the_header_bits_of_resolvers() -> None:
    client = query("ExAmPle.CoM.", id=0x1234, use_edns=0, payload=1232, want_dnssec=True)
    reply = synthesize_reply(parsed(client), 2)
    # QR, RD as sent, RA, SERVFAIL; AA clear
    assert reply[:4] == b"\x12\x34\x81\x82"
    assert reply[4:12] == b"\0\1\0\0\0\0\0\1"
    assert reply[12:].startswith(b"\7ExAmPle\3CoM\0\0\1\0\1")
    message = dns.message.from_wire(reply)
    assert (message.payload, message.ednsflags, message.edns) == (1232, 0x8000, 0)
    assert message.options == ()


def test_without_opt_there_is_none() -> None:
    reply = synthesize_reply(parsed(header(flags=0) + QUESTION), 5, ExtendedError.BLOCKED)
    assert reply == header(flags=0x8085) + QUESTION


@pytest.mark.parametrize(
    ("sent", "received"),
    [
        (0x0000, 0x8082),
        (0x0100, 0x8182),
        (0x0010, 0x8092),
        (0x0110, 0x8192),
        (0x0620 | 0x0040 | 0x000F, 0x8082),  # AA, TC, AD, Z and an rcode are not echoed
        (4 << 11, 0xA082),  # NOTIFY
        (5 << 11, 0xA882),  # UPDATE
    ],
)
def test_header_bits(sent: int, received: int) -> None:
    reply = synthesize_reply(parsed(header(flags=sent) + QUESTION), 2)
    assert int.from_bytes(reply[2:4], "big") == received


def test_upper_bits_of_the_rcode_are_lost() -> None:
    reply = synthesize_reply(parsed(header(ar=1) + QUESTION + opt()), 23)
    assert reply[3] & 0xF == 7
    assert dns.message.from_wire(reply).rcode() == 7


def test_nothing_of_the_clients_opt_is_echoed_but_do() -> None:
    options = option(10, b"12345678") + option(8, b"\0\1\x18\0\xc0\0\2") + option(65001, b"x")
    client = header(ar=1) + QUESTION + opt(options, 4096, 0x0064FFFF)
    assert synthesize_reply(parsed(client), 2).endswith(QUESTION + opt(b"", 1232, 0x8000))
    client = header(ar=1) + QUESTION + opt(options, 4096, 0x00007FFF)
    assert synthesize_reply(parsed(client), 2).endswith(QUESTION + opt(b"", 1232, 0))


def test_extended_error() -> None:
    client = parsed(header(ar=1) + QUESTION + opt())
    reply = synthesize_reply(client, 2, ExtendedError.NO_REACHABLE_AUTHORITY, "pool caf\u00e9")
    message = dns.message.from_wire(reply)
    (error,) = message.options
    assert isinstance(error, dns.edns.EDEOption)
    assert (error.code, error.text) == (22, "pool caf\u00e9")


def test_extended_error_text_is_cut_between_characters() -> None:
    client = parsed(header(ar=1) + QUESTION + opt())
    reply = synthesize_reply(client, 2, ExtendedError.OTHER, "x" + "\u00e9" * 300)
    (error,) = dns.message.from_wire(reply).options
    assert isinstance(error, dns.edns.EDEOption)
    assert error.text == "x" + "\u00e9" * 99


def test_largest_reply_fits_in_512_octets() -> None:
    longest = (b"\x3f" + b"a" * 63) * 3 + b"\x3d" + b"a" * 61 + b"\0"
    client = parsed(header(ar=1) + longest + b"\0\1\0\1" + opt())
    assert len(synthesize_reply(client, 2, 22, "x" * 1000)) <= 512


def test_compressed_question_is_sent_uncompressed() -> None:
    client = parsed(header(id=0x0161, flags=0) + b"\1b\xc0\0\0\1\0\1")
    assert synthesize_reply(client, 2)[12:] == b"\1b\1a\0\0\1\0\1"


def test_extended_error_codes_are_those_of_dnspython() -> None:
    # dnspython knows later registrations too; RFC 8914 ends at 24
    theirs = [(code.value, code.name) for code in dns.edns.EDECode if code.value <= 24]
    assert theirs == [(code.value, code.name) for code in ExtendedError]


def test_unencodable_text_does_not_raise() -> None:
    client = parsed(header(ar=1) + QUESTION + opt())
    assert b"a?b" in synthesize_reply(client, 2, 0, "a\ud800b")
