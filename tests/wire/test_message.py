"""Replies: matching, decoding, rcodes, and the rewriting of the id."""

from __future__ import annotations

import dns.flags
import dns.message
import dns.rcode
import pytest

from conduit.wire import (
    extended_rcode,
    is_truncated,
    iter_records,
    message_decodes,
    message_id,
    parse_query,
    rcode,
    reply_matches,
    with_id,
)
from conduit.wire.query import Query
from conduit.wire.records import Section
from tests.wire.builders import (
    QUESTION,
    SOA,
    WWW,
    addresses,
    glue,
    header,
    opt,
    query,
    record,
    reply,
)

ANSWER = reply([addresses(2)])


def test_ch20_example_19_only_the_id_changes_on_the_way() -> None:
    client = query(id=0x1234) + b"stray"
    parsed = parse_query(client)
    assert isinstance(parsed, Query)
    sent = with_id(parsed.wire, 0xBEEF)
    assert message_id(sent) == 0xBEEF
    assert sent[2:] == client[2:]
    assert sent.endswith(b"stray")
    assert with_id(sent, parsed.id) == client


def test_reply_matches_its_query() -> None:
    assert reply_matches(ANSWER, 0x1234, QUESTION)


@pytest.mark.parametrize(
    "other",
    [
        with_id(ANSWER, 0x1235),
        ANSWER[:2] + bytes((ANSWER[2] & 0x7F,)) + ANSWER[3:],  # QR clear
        ANSWER[:11],
        b"noise",
        b"",
        reply([], name="ww2.example.com."),
        reply([], name="www.example.com.example."),
        reply([], name="example.com."),
        reply([], rtype="AAAA"),
        header(flags=0x8180) + WWW + b"\0\1\0\3",
        header(flags=0x8180),
        header(flags=0x8180) + QUESTION[:-1],
        header(flags=0x8180) + b"\xc0\x0c\0\1\0\1",
        header(flags=0x8180, qd=2) + b"\0\0\1\0\1" + QUESTION,
    ],
)
def test_reply_that_belongs_elsewhere(other: bytes) -> None:
    assert not reply_matches(other, 0x1234, QUESTION)


def test_question_compares_without_case() -> None:
    assert reply_matches(reply([], name="WWW.Example.COM."), 0x1234, QUESTION)


def test_question_case_folding_does_not_reach_type_and_class() -> None:
    # type 0x41 and 0x61 would be equal as letters
    assert not reply_matches(header(flags=0x8000) + WWW + b"\0A\0\1", 0x1234, WWW + b"\0a\0\1")


def test_reply_without_question_is_accepted() -> None:
    assert reply_matches(header(flags=0x8181, qd=0), 0x1234, QUESTION)


def test_of_two_questions_the_first_counts() -> None:
    two = header(flags=0x8180, qd=2) + QUESTION + b"\0\0\1\0\1"
    assert reply_matches(two, 0x1234, QUESTION)


def test_compressed_question_in_a_reply_is_expanded() -> None:
    # the upper octet of QDCOUNT serves as the root
    data = header(flags=0x8000) + b"\1b\xc0\4\0\1\0\1"
    assert reply_matches(data, 0x1234, b"\1B\0\0\1\0\1")
    assert not reply_matches(data, 0x1234, b"\1c\0\0\1\0\1")


def test_facts_of_short_messages() -> None:
    for length in range(4):
        short = b"\xff" * length
        assert message_id(short) == (0xFFFF if length > 1 else 0xFF * length)
        assert rcode(short) == 0
        assert is_truncated(short) is (length > 2)
        assert extended_rcode(short) == 0


def test_rcode_and_tc() -> None:
    truncated = reply([], rcode=dns.rcode.NXDOMAIN, flags=dns.flags.TC)
    assert rcode(truncated) == 3
    assert is_truncated(truncated)
    assert not is_truncated(ANSWER)


def test_extended_rcode_takes_the_upper_bits_from_the_opt() -> None:
    message = dns.message.make_response(dns.message.from_wire(query(use_edns=0)))
    message.set_rcode(dns.rcode.BADVERS)
    wire = message.to_wire()
    assert rcode(wire) == 0
    assert extended_rcode(wire) == 16
    assert extended_rcode(reply([], rcode=5)) == 5
    assert extended_rcode(wire[:-1]) == 0


def test_whole_replies_decode() -> None:
    assert message_decodes(ANSWER)
    assert message_decodes(reply([], [SOA], glue(3), rcode=3, payload=1232))
    assert message_decodes(header(flags=0x8181, qd=0))
    assert message_decodes(ANSWER + b"trailing")
    assert message_decodes(header(flags=0x8000 | 15 << 11) + QUESTION)


def test_replies_cut_anywhere_do_not_decode() -> None:
    whole = reply([addresses(2)], [SOA], glue(1), payload=1232)
    for length in range(len(whole)):
        assert not message_decodes(whole[:length]), length


def test_pointer_loops_in_answers_do_not_decode() -> None:
    offset = 12 + len(QUESTION)
    to_itself = record(bytes((0xC0, offset)), 16, b"\0")
    assert not message_decodes(header(flags=0x8180, an=1) + QUESTION + to_itself)
    rdata_loop = record(b"\xc0\x0c", 5, bytes((0xC0, offset + 12)))
    assert not message_decodes(header(flags=0x8180, an=1) + QUESTION + rdata_loop)


def test_two_opts_in_a_reply_do_not_decode() -> None:
    assert message_decodes(header(flags=0x8180, ar=1) + QUESTION + opt())
    assert not message_decodes(header(flags=0x8180, ar=2) + QUESTION + opt() * 2)


def test_iter_records_gives_sections_and_offsets() -> None:
    wire = reply([addresses(2)], [SOA], glue(1), payload=1232)
    records = iter_records(wire)
    assert records is not None
    kinds = [(found.section, found.rtype) for found in records]
    assert kinds == [
        (Section.ANSWER, 1),
        (Section.ANSWER, 1),
        (Section.AUTHORITY, 6),
        (Section.ADDITIONAL, 28),
        (Section.ADDITIONAL, 41),
    ]
    first = records[0]
    assert first.owner == WWW
    assert (first.rclass, first.ttl, first.rdlength) == (1, 300, 4)
    # dnspython shuffles the records of a set when it writes them
    addresses_found = {wire[one.rdata_offset : one.end] for one in records[:2]}
    assert addresses_found == {b"\xc0\0\2\0", b"\xc0\0\2\1"}
    assert wire[first.ttl_offset : first.ttl_offset + 4] == (300).to_bytes(4, "big")
    assert wire[first.type_offset : first.type_offset + 2] == b"\0\1"
    assert first.offset == 12 + len(QUESTION)
    assert [one.end for one in records[:-1]] == [one.offset for one in records[1:]]
    assert records[-1].end == len(wire)


def test_iter_records_of_a_malformed_message() -> None:
    assert iter_records(ANSWER[:-1]) is None
    assert iter_records(b"") is None
    assert iter_records(header(flags=0x8180) + QUESTION) == []


def test_walking_from_behind_a_known_question_decides_the_same() -> None:
    good = reply([addresses(2)], [SOA], glue(3), payload=1232)
    question = QUESTION
    for wire in (good, good[:-1], good[:40], good + b"x"):
        assert message_decodes(wire, question) == message_decodes(wire)
    # a pointer into the middle of a label of the question is no known name
    inside = record(bytes((0xC0, 14)), 1, b"\xc0\0\2\1")
    wire = header(flags=0x8180, an=1) + question + inside
    assert message_decodes(wire, question) == message_decodes(wire)
    forward = record(b"\xc0\x0c", 5, bytes((0xC0, 12 + len(question) + 20)))
    wire = header(flags=0x8180, an=1) + question + forward
    assert not message_decodes(wire, question)


def test_a_name_in_rdata_is_limited_together_with_what_it_points_to() -> None:
    long_name = b"\x3f" + b"a" * 63 + b"\x3f" + b"b" * 63 + b"\x3f" + b"c" * 63 + b"\0"
    question = long_name + b"\0\1\0\1"
    for extra, good in ((61, True), (62, False)):
        rdata = bytes((extra,)) + b"d" * extra + b"\xc0\x0c"
        wire = header(flags=0x8180, an=1) + question + record(b"\xc0\x0c", 5, rdata)
        assert message_decodes(wire, question) is good
        assert message_decodes(wire) is good
