"""Parse of client messages: chapter 20 section 8 and the hard cases of client input."""

from __future__ import annotations

import dns.edns
import pytest

from conduit.wire import Query, RejectReason, parse_query
from tests.wire.builders import QUESTION, WWW, header, opt, option, query, record

A = b"\xc0\x0c\0\1\0\1\0\0\1\x2c\0\4\xc0\0\2\1"


def parsed(data: bytes) -> Query:
    result = parse_query(data)
    assert isinstance(result, Query), result
    return result


def test_plain_query() -> None:
    data = header() + QUESTION
    found = parsed(data)
    assert found.wire == data
    assert (found.id, found.flags, found.opcode) == (0x1234, 0x0100, 0)
    assert (found.question, found.qname) == (QUESTION, WWW)
    assert (found.qtype, found.qclass) == (1, 1)
    assert found.question_end == len(data)
    assert (found.has_opt, found.opt_offset, found.udp_payload_size) == (False, -1, None)
    assert (found.edns_version, found.edns_flags, found.dnssec_ok) == (0, 0, False)
    assert found.option_codes == ()
    assert found.qname_text == "www.example.com."


def test_query_with_opt() -> None:
    options = option(10, b"12345678") + option(65001, b"") + option(3, b"") + option(10, b"")
    data = header(ar=1) + QUESTION + opt(options, 4096, 0x00017FFF | 0x8000)
    found = parsed(data)
    assert found.opt_offset == found.question_end == 12 + len(QUESTION)
    assert (found.udp_payload_size, found.edns_version, found.edns_flags) == (4096, 1, 0xFFFF)
    assert found.dnssec_ok
    assert found.option_codes == (3, 10, 65001)


def test_case_is_kept_and_folded_on_demand() -> None:
    found = parsed(query("ExAmPle.CoM."))
    assert found.qname == b"\7ExAmPle\3CoM\0"
    assert found.qname_folded == b"\7example\3com\0"
    assert found.qname_text == "ExAmPle.CoM."


def test_empty() -> None:
    assert parse_query(b"") is RejectReason.EMPTY


def test_ch20_example_14_three_octets() -> None:
    assert parse_query(b"\xff\0\1") is RejectReason.WIRE_ERROR


def test_ch20_example_15_response_bit() -> None:
    assert parse_query(header(flags=0x8100) + QUESTION) is RejectReason.NOT_QUERY


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_well_formed_response_is_not_query_whatever_the_question_count(count: int) -> None:
    data = header(flags=0x8180, qd=count) + QUESTION * count
    assert parse_query(data) is RejectReason.NOT_QUERY


def test_malformed_response_is_wire_error() -> None:
    assert parse_query(header(flags=0x8180, an=1) + QUESTION) is RejectReason.WIRE_ERROR


def test_ch20_example_16_question_counts() -> None:
    assert parse_query(header(qd=0)) is RejectReason.NO_QUESTION
    assert parse_query(header(qd=2) + QUESTION * 2) is RejectReason.MULTI_QUESTION


def test_second_question_may_point_into_the_first() -> None:
    data = header(qd=2) + QUESTION + b"\xc0\x0c\0\1\0\1"
    assert parse_query(data) is RejectReason.MULTI_QUESTION


def test_no_question_with_a_cookie_option() -> None:
    data = header(qd=0, ar=1) + opt(option(10, b"12345678"))
    assert parse_query(data) is RejectReason.NO_QUESTION


def test_ch20_example_17_pointer_to_itself() -> None:
    assert parse_query(header() + b"\xc0\x0c\0\1\0\1") is RejectReason.WIRE_ERROR


def test_ch20_example_25_payload_size_below_512_counts_as_512() -> None:
    for size, expected in ((100, 512), (0, 512), (511, 512), (512, 512), (65535, 65535)):
        assert parsed(header(ar=1) + QUESTION + opt(size=size)).udp_payload_size == expected


@pytest.mark.parametrize("opcode", range(16))
def test_opcodes(opcode: int) -> None:
    result = parse_query(header(flags=opcode << 11) + QUESTION)
    if opcode in (0, 2, 4, 5):
        assert isinstance(result, Query)
        assert result.opcode == opcode
    else:
        assert result is RejectReason.WIRE_ERROR


def test_unknown_opcode_without_question_is_wire_error() -> None:
    assert parse_query(header(flags=6 << 11, qd=0)) is RejectReason.WIRE_ERROR


@pytest.mark.parametrize("flags", [0x0000, 0x07FF, 0x0020, 0x0010, 0x0200, 0x0400, 0x000F])
def test_any_other_header_bit_is_accepted(flags: int) -> None:
    assert parsed(header(flags=flags) + QUESTION).flags == flags


@pytest.mark.parametrize("rtype", [0, 64, 65, 255, 262, 65280, 65535])
def test_any_type_and_class_is_accepted(rtype: int) -> None:
    data = header() + WWW + rtype.to_bytes(2, "big") + b"\xff\xfe"
    found = parsed(data)
    assert (found.qtype, found.qclass) == (rtype, 0xFFFE)


@pytest.mark.parametrize("tail", [b"", opt()])
def test_trailing_octets_are_kept_in_the_wire_and_nowhere_else(tail: bytes) -> None:
    clean = header(ar=1 if tail else 0) + QUESTION + tail
    found = parsed(clean + b"\0\1\2\3")
    assert found.wire == clean + b"\0\1\2\3"
    assert found.question == QUESTION
    assert found.option_codes == ()
    assert found.question_end == 12 + len(QUESTION)


@pytest.mark.parametrize(
    "name",
    [
        b"\x40" + b"a" * 64 + b"\0",
        b"\x80\0",
        b"\3www\7example\3com",
        (b"\x3f" + b"a" * 63) * 4 + b"\0",
        b"\1a\xc0\x0c",
        b"\xc0\x20",
        b"\xc0",
    ],
)
def test_faulty_question_names(name: bytes) -> None:
    assert parse_query(header() + name + b"\0\1\0\1") is RejectReason.WIRE_ERROR


def test_question_cut_at_every_octet() -> None:
    data = header(ar=1) + QUESTION + opt(option(10, b"12345678"))
    for length in range(1, len(data)):
        assert parse_query(data[:length]) is RejectReason.WIRE_ERROR, length


def test_question_name_of_255_octets() -> None:
    longest = (b"\x3f" + b"a" * 63) * 3 + b"\x3d" + b"a" * 61 + b"\0"
    assert parsed(header() + longest + b"\0\1\0\1").qname == longest
    too_long = (b"\x3f" + b"a" * 63) * 3 + b"\x3e" + b"a" * 62 + b"\0"
    assert parse_query(header() + too_long + b"\0\1\0\1") is RejectReason.WIRE_ERROR


def test_question_pointer_into_the_header_is_followed() -> None:
    # the id 0x0161 and the flags word read as the name "a."
    data = header(id=0x0161, flags=0x0000) + b"\1b\xc0\0\0\1\0\1"
    found = parsed(data)
    assert found.qname == b"\1b\1a\0"
    assert found.question == b"\1b\1a\0\0\1\0\1"
    assert found.question_end == len(data)


@pytest.mark.parametrize(
    "record_octets",
    [
        opt(rdlength=65535),
        opt(option(10, b"1234", length=5)),
        opt(option(10, b"", length=65535)),
        opt(b"\0\x0a\0"),
        opt(b"\0", rdlength=1),
        opt(owner=b"\1a\0"),
        opt(owner=b"\xc0\x0c"),
        opt(owner=b"\xc0\x04"),  # a pointer to a zero octet
    ],
)
def test_malformed_opt(record_octets: bytes) -> None:
    assert parse_query(header(ar=1) + QUESTION + record_octets) is RejectReason.WIRE_ERROR


def test_option_longer_than_the_rdlength() -> None:
    ecs = option(8, b"\0\1\x18\0\xc0\0\2")
    data = header(ar=1) + QUESTION + opt(ecs, rdlength=len(ecs) - 1)
    assert parse_query(data) is RejectReason.WIRE_ERROR


@pytest.mark.parametrize(
    "options",
    [
        option(8, b"\0\1\x18\x10\xc0\0\2"),  # ECS with a scope
        option(8, b"\0\1\x21\0\xc0\0\2\1\1"),  # prefix 33
        option(8, b"\0\x09\x08\0\1"),  # family 9
        option(8, b""),
        option(10, b"1"),
        option(10, b"1" * 41),
        option(65001, b"\0" * 100),
        b"".join(option(code, b"") for code in range(64)),
        option(10, b"12345678") * 2,
        option(15, b""),
    ],
)
def test_odd_but_well_formed_options_pass(options: bytes) -> None:
    found = parsed(header(ar=1) + QUESTION + opt(options, ttl=0x00FF0000))
    assert found.edns_version == 255
    assert found.option_codes == tuple(sorted(set(found.option_codes)))
    assert found.option_codes


def test_two_opts() -> None:
    assert parse_query(header(ar=2) + QUESTION + opt() * 2) is RejectReason.WIRE_ERROR


@pytest.mark.parametrize("opt_first", [True, False])
def test_position_of_the_opt_does_not_matter(opt_first: bool) -> None:
    ours = opt(option(3, b""), 1400, 0x8000)
    data = header(ar=2) + QUESTION + (ours + A if opt_first else A + ours)
    found = parsed(data)
    assert (found.udp_payload_size, found.dnssec_ok, found.option_codes) == (1400, True, (3,))
    assert data[found.opt_offset : found.opt_offset + len(ours)] == ours


def test_opt_in_the_answer_section_is_not_the_opt_of_the_message() -> None:
    found = parsed(header(an=1) + QUESTION + opt(option(3, b"")))
    assert not found.has_opt
    assert found.option_codes == ()


def test_records_in_a_query_are_accepted() -> None:
    data = header(an=1, ns=1, ar=1) + QUESTION + A * 2 + opt()
    assert parsed(data).opt_offset == len(data) - len(opt())


@pytest.mark.parametrize(("rtype", "name"), [(250, b"\3key\0"), (24, b"\0"), (250, b"\xc0\x0c")])
def test_tsig_and_sig0_anywhere(rtype: int, name: bytes) -> None:
    rdata = b"\0" * 18 + b"\0" + b"s" * 8
    signature = record(name, rtype, rdata, 255, 0)
    assert parsed(header(ar=2) + QUESTION + signature + opt()).has_opt
    assert parsed(header(an=1) + QUESTION + signature).question == QUESTION


@pytest.mark.parametrize(
    "counts", [{"an": 1}, {"ns": 1}, {"ar": 1}, {"qd": 2}, {"an": 65535}, {"ar": 65535}]
)
def test_section_shorter_than_its_count(counts: dict[str, int]) -> None:
    assert parse_query(header(**counts) + QUESTION) is RejectReason.WIRE_ERROR


SOA_NUMBERS = b"\0" * 20


@pytest.mark.parametrize(
    ("rtype", "rdata", "good"),
    [
        (1, b"\1\2\3\4", True),
        (1, b"\1\2\3", False),
        (1, b"\1\2\3\4\5", False),
        (1, b"", False),
        (28, b"\1" * 16, True),
        (28, b"\1" * 15, False),
        (2, b"\xc0\x0c", True),
        (2, b"\xc0\x0c\0", False),
        (2, b"\2ns\0", True),
        (2, b"\2ns", False),
        (2, b"", False),
        (5, b"\xc0\x40", False),
        (12, b"\x40a\0", False),
        (6, b"\0\xc0\x0c" + SOA_NUMBERS, True),
        (6, b"\0\xc0\x0c" + SOA_NUMBERS[1:], False),
        (6, b"\0\xc0\x0c" + SOA_NUMBERS + b"\0", False),
        (6, b"\0", False),
        (15, b"\0\x0a\xc0\x0c", True),
        (15, b"\0\x0a", False),
        (15, b"\0\x0a\xc0\x0c\0", False),
        (33, b"\0" * 6 + b"\1a\0", True),
        (33, b"\0" * 5, False),
        (35, b"\0\1\0\1\1u\3sip\0\xc0\x0c", True),
        (35, b"\0\1\0\1\1u\3sip\0", False),
        (35, b"\0\1\0\1\1u\xffsip\0\0", False),
        (35, b"\0\1\0\1\1u\3sip\0\xc0\x0c\0", False),
        (39, b"\1a\0", True),
        (46, b"\0" * 18 + b"\3com\0sig", True),
        (46, b"\0" * 18, False),
        (46, b"\0" * 18 + b"\5com", False),
        (47, b"\1a\0\0\1\x40", True),
        (47, b"\5a\0", False),
        (16, b"\5a", True),
        (64, b"\0", True),
        (65, b"opaque", True),
        (262, b"opaque", True),
        (65280, b"\xc0\xff", True),
        (10, b"", True),
    ],
)
def test_rdata_of_known_types(rtype: int, rdata: bytes, good: bool) -> None:
    result = parse_query(header(an=1) + QUESTION + record(b"\xc0\x0c", rtype, rdata))
    assert isinstance(result, Query) if good else result is RejectReason.WIRE_ERROR


@pytest.mark.parametrize("rtype", [1, 2, 6, 28, 255])
def test_empty_rdata_is_legal_in_an_update(rtype: int) -> None:
    deletion = record(b"\xc0\x0c", rtype, b"", rclass=255, ttl=0)
    assert parsed(header(flags=5 << 11, ns=1) + QUESTION + deletion).opcode == 5


def test_rdlength_past_the_end() -> None:
    data = header(an=1) + QUESTION + record(b"\xc0\x0c", 16, b"\1a", rdlength=3)
    assert parse_query(data) is RejectReason.WIRE_ERROR


def test_unclosed_owner_with_room_for_the_fixed_fields() -> None:
    data = header(an=1) + QUESTION + b"\x0a" + b"a" * 10
    assert parse_query(data) is RejectReason.WIRE_ERROR


def test_owner_that_leaves_no_room_for_the_fixed_fields() -> None:
    data = header(an=1) + QUESTION + b"\5aaaaa\0" + b"\0" * 9
    assert parse_query(data) is RejectReason.WIRE_ERROR


def test_many_records_with_long_pointer_chains_take_bounded_steps() -> None:
    # each owner points to the owner before it: the 128th chain is too long
    data = bytearray(header(an=200) + QUESTION)
    target = 12
    for _ in range(200):
        here = len(data)
        data += record(bytes((0xC0 | target >> 8, target & 0xFF)), 16, b"\0")
        target = here
    assert parse_query(bytes(data)) is RejectReason.WIRE_ERROR


def test_dig_like_query_with_cookie() -> None:
    cookie = dns.edns.CookieOption(b"12345678", b"")
    found = parsed(query(options=[cookie], use_edns=0, payload=1232))
    assert found.option_codes == (10,)
    assert "www.example.com." in repr(found)
