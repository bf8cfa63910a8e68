"""Which queries share a cache key, which have their own, and which have none."""

from __future__ import annotations

import dns.edns
import dns.flags
import dns.message
import dns.rrset
import dns.tsigkeyring
import pytest
from dns.edns import OptionType
from hypothesis import given
from hypothesis import strategies as st

from conduit.lookup.cache.keys import (
    ancestor_keys,
    cache_key,
    has_client_subnet,
    question_length,
    truncated_key,
)
from conduit.wire import Query, parse_query
from tests.lookup.messages import key_of, query

EXAMPLE = bytes.fromhex("010011037777770765 78616d706c6503636f6d 00 0001 0001 00 00 00")


def subnet(address: str, prefix: int) -> dns.edns.ECSOption:
    return dns.edns.ECSOption(address, prefix)


def with_option(code: int, body: bytes, *more: tuple[int, bytes]) -> Query:
    options = [
        dns.edns.GenericOption(OptionType.make(number), data)
        for number, data in ((code, body), *more)
    ]
    return query("www.example.com", use_edns=0, options=options)


def test_ch40_section_5_layout_of_an_ordinary_query() -> None:
    assert key_of(query("www.example.com")) == EXAMPLE
    assert len(EXAMPLE) == 27


def test_letters_fold_but_type_and_class_do_not() -> None:
    assert key_of(query("wWw.ExamPLE.com")) == EXAMPLE
    # 0x41 and 0x61 are "A" and "a": numbers must not be folded
    assert key_of(query("a.test", "TYPE65")) != key_of(query("a.test", "TYPE97"))


def test_opt_presence_size_ad_and_other_options_share_the_key() -> None:
    assert key_of(query("www.example.com", use_edns=0, payload=4096)) == EXAMPLE
    assert key_of(query("www.example.com", flags="RD AD")) == EXAMPLE
    assert key_of(with_option(10, b"12345678")) == EXAMPLE
    assert key_of(with_option(65001, b"x", (3, b""))) == EXAMPLE


def test_ch40_example_08_do_cd_and_rd_have_their_own_keys() -> None:
    keys = {
        key_of(query("a.test", flags=flags, use_edns=0, want_dnssec=dnssec))
        for flags in ("", "RD", "CD", "RD CD")
        for dnssec in (False, True)
    }
    assert len(keys) == 8


def test_ch40_example_09_client_subnets_have_their_own_keys() -> None:
    first = query("a.test", use_edns=0, options=[subnet("192.0.2.0", 24)])
    second = query("a.test", use_edns=0, options=[subnet("198.51.100.0", 24)])
    nowhere = query("a.test", use_edns=0, options=[subnet("0.0.0.0", 0)])
    without = query("a.test", use_edns=0)
    keys = [key_of(q) for q in (first, second, nowhere, without)]
    assert len(set(keys)) == 4
    assert keys[0].endswith(bytes.fromhex("07 0001 18 00 c00002"))
    assert [has_client_subnet(key) for key in keys] == [True, True, True, False]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\0\1\x18",
        b"\0\1\x18\0\xc0\0",  # an octet short
        b"\0\1\x18\0\xc0\0\2\0",  # an octet too many
        b"\0\1\x18\x08\xc0\0\2",  # scope in a query
        b"\0\1\x21\0\xc0\0\2\0\0",  # /33
        b"\0\2\x81\0" + bytes(17),
        b"\0\x09\x08\0\1",  # family 9
        b"\0\1\x14\0\xc0\0\x01",  # a bit beyond the prefix
    ],
)
def test_odd_client_subnets_bypass(body: bytes) -> None:
    assert cache_key(with_option(8, body)) is None


def test_two_client_subnets_bypass() -> None:
    one = b"\0\1\x18\0\xc0\0\2"
    assert cache_key(with_option(8, one)) is not None
    assert cache_key(with_option(8, one, (8, one))) is None


def test_other_opcodes_versions_and_transfers_bypass() -> None:
    for opcode in (2, 4, 5):
        wire = bytearray(query("a.test").wire)
        wire[2] |= opcode << 3
        asked = parse_query(bytes(wire))
        assert isinstance(asked, Query)
        assert cache_key(asked) is None
    assert cache_key(query("a.test", use_edns=1)) is None
    assert cache_key(query("a.test", use_edns=100)) is None
    for rtype in ("AXFR", "IXFR", "TSIG", "TKEY", "OPT"):
        assert cache_key(query("a.test", rtype)) is None
    assert cache_key(query("a.test", "ANY")) is not None


def test_signed_queries_and_queries_with_records_bypass() -> None:
    message = dns.message.make_query("a.test", "A")
    message.use_tsig(dns.tsigkeyring.from_text({"key.": "c2VjcmV0c2VjcmV0c2VjcmV0"}))
    asked = parse_query(message.to_wire())
    assert isinstance(asked, Query)
    assert cache_key(asked) is None
    message = dns.message.make_query("a.test", "A", use_edns=0)
    message.answer.append(dns.rrset.from_text("a.test.", 60, "IN", "A", "192.0.2.1"))
    asked = parse_query(message.to_wire())
    assert isinstance(asked, Query)
    assert cache_key(asked) is None


def test_octets_behind_the_message_never_reach_the_key() -> None:
    asked = parse_query(query("www.example.com", use_edns=0).wire + b"\0\x08\0\4")
    assert isinstance(asked, Query)
    assert cache_key(asked) == EXAMPLE


def test_truncated_key_differs_in_the_shape_alone() -> None:
    other = truncated_key(EXAMPLE)
    assert [i for i in range(27) if other[i] != EXAMPLE[i]] == [25]
    assert other[25] == 2


def test_ancestors_nearest_first_without_the_root() -> None:
    options = {"use_edns": 0, "want_dnssec": True, "options": [subnet("192.0.2.0", 24)]}
    below = key_of(query("x.y.a.test", "AAAA", flags="CD", **options))
    expected = [
        key_of(query(name, "AAAA", flags="CD", **options))
        for name in ("y.a.test", "a.test", "test")
    ]
    assert list(ancestor_keys(below)) == expected
    assert list(ancestor_keys(key_of(query("test")))) == []
    assert list(ancestor_keys(key_of(query(".")))) == []


LABELS = st.lists(st.binary(min_size=1, max_size=20), max_size=6)


@given(LABELS, st.integers(0, 248), st.integers(0, 0xFFFF), st.booleans(), st.booleans())
def test_keys_of_any_name(labels: list[bytes], rtype: int, qclass: int, do: bool, cd: bool) -> None:
    if rtype == 41:
        return
    name = b"".join(bytes((len(label),)) + label for label in labels) + b"\0"
    question = name + rtype.to_bytes(2, "big") + qclass.to_bytes(2, "big")
    header = b"\1\2\1" + bytes((0x10 if cd else 0,)) + b"\0\1\0\0\0\0\0\1"
    opt = b"\0\0\x29\x04\xd0\0\0" + (b"\x80\0" if do else b"\0\0") + b"\0\0"
    asked = parse_query(header + question + opt)
    assert isinstance(asked, Query)
    key = key_of(asked)
    length = len(name)
    assert key[1:3] == length.to_bytes(2, "big")
    assert key[3 : 3 + length] == name.lower()
    assert key[3 + length : 7 + length] == question[-4:]
    assert key[7 + length :] == bytes((do | cd << 1, 0, 0))
    assert question_length(key) == len(question)
    assert len(list(ancestor_keys(key))) == max(0, len(labels) - 1)
