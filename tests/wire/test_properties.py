"""Properties over generated messages, with dnspython as the judge."""

from __future__ import annotations

import dns.edns
import dns.flags
import dns.message
import dns.name
import dns.rdata
import dns.rdataclass
import dns.rdatatype
import dns.rrset
from hypothesis import given, settings
from hypothesis import strategies as st

from conduit.wire import (
    Query,
    RejectReason,
    extended_rcode,
    fit_to_size,
    fold,
    is_truncated,
    iter_records,
    message_decodes,
    message_id,
    name_from_text,
    name_to_text,
    parse_query,
    rcode,
    read_name,
    reply_matches,
    skip_name,
    synthesize_reply,
    with_id,
)
from conduit.wire.query import _parse_general
from conduit.wire.structure import unpack_header
from tests.wire.builders import (
    QUESTION,
    SOA,
    addresses,
    glue,
    header,
    opt,
    option,
    query,
    record,
    reply,
)

labels = st.one_of(
    st.binary(min_size=1, max_size=63),
    st.sampled_from([b"www", b"example", b"com", b"_tcp", b"xn--bcher-kva", b"*", b"a.b"]),
)


def join(parts: list[bytes]) -> dns.name.Name:
    """As many of the labels as fit in 255 octets."""
    kept: list[bytes] = []
    size = 1
    for part in parts:
        size += len(part) + 1
        if size > 255:
            break
        kept.append(part)
    return dns.name.Name([*kept, b""])


names = st.lists(labels, max_size=8).map(join)
words = st.integers(0, 0xFFFF)
edns_options = st.lists(
    st.builds(dns.edns.GenericOption, words, st.binary(max_size=40)), max_size=4
)
# dnspython refuses odd contents of the options it knows
unassigned_options = st.lists(
    st.builds(dns.edns.GenericOption, st.integers(100, 20000), st.binary(max_size=40)), max_size=4
)


@st.composite
def rrsets(draw: st.DrawFn) -> dns.rrset.RRset:
    name = draw(names)
    kind = draw(st.sampled_from(["A", "AAAA", "TXT", "CNAME", "MX", "SRV", "SOA", "NS", "OPAQUE"]))
    target = draw(names)
    if kind == "OPAQUE":
        data = draw(st.binary(max_size=200))
        rdata = dns.rdata.GenericRdata(dns.rdataclass.IN, dns.rdatatype.RdataType(65280), data)
    else:
        wire = {
            "A": b"\xc0\0\2\1",
            "AAAA": b"\x20" * 16,
            "TXT": b"\5hello",
            "CNAME": target.to_wire(),
            "NS": target.to_wire(),
            "MX": b"\0\x0a" + target.to_wire(),
            "SRV": b"\0" * 6 + target.to_wire(),
            "SOA": target.to_wire() * 2 + b"\0" * 20,
        }[kind]
        rdata = dns.rdata.from_wire("IN", kind, wire, 0, len(wire))
    return dns.rrset.from_rdata(name, draw(st.integers(0, 0x7FFFFFFF)), rdata)


@st.composite
def queries(draw: st.DrawFn) -> dns.message.Message:
    message = dns.message.Message(draw(words))
    message.flags = draw(words) & 0x07F0
    message.set_opcode(draw(st.sampled_from([0, 2, 4])))
    question = dns.rrset.RRset(
        draw(names), dns.rdataclass.RdataClass(draw(words)), dns.rdatatype.RdataType(draw(words))
    )
    message.question.append(question)
    message.additional = draw(st.lists(rrsets(), max_size=2))
    if draw(st.booleans()):
        message.use_edns(
            draw(st.integers(0, 255)),
            draw(words),
            draw(words),
            options=draw(edns_options),
        )
    return message


@settings(max_examples=300, deadline=None)
@given(queries())
def test_queries_of_dnspython_parse_the_same(message: dns.message.Message) -> None:
    wire = message.to_wire(max_size=65535)
    found = parse_query(wire)
    assert isinstance(found, Query)
    asked = message.question[0]
    assert (found.id, found.opcode, found.flags) == (message.id, message.opcode(), message.flags)
    assert found.qname == asked.name.to_wire()
    assert (found.qtype, found.qclass) == (asked.rdtype, asked.rdclass)
    assert found.question == found.qname + wire[found.question_end - 4 : found.question_end]
    assert found.has_opt == (message.edns >= 0)
    if found.has_opt:
        assert found.udp_payload_size == max(512, message.payload)
        assert found.edns_version == message.edns
        assert found.edns_flags == message.ednsflags & 0xFFFF
        assert found.option_codes == tuple(sorted({int(o.otype) for o in message.options}))
    assert name_from_text(asked.name.to_text()) == found.qname
    assert found.qname_text.endswith(".")


@settings(max_examples=200, deadline=None)
@given(queries(), words, st.integers(0, 24), st.text(max_size=300))
def test_synthesized_replies_parse_and_match(
    message: dns.message.Message, code: int, error: int, text: str
) -> None:
    found = parse_query(message.to_wire(max_size=65535))
    assert isinstance(found, Query)
    wire = synthesize_reply(found, code, error, text)
    assert reply_matches(wire, found.id, found.question)
    assert message_decodes(wire)
    back = dns.message.from_wire(wire)
    assert back.rcode() == code & 0xF
    assert back.opcode() == message.opcode()
    assert back.question[0].name.to_wire() == found.qname
    assert back.edns == (0 if message.edns >= 0 else -1)
    assert bool(back.flags & dns.flags.RD) == bool(message.flags & dns.flags.RD)
    assert not back.answer + back.authority + back.additional


@st.composite
def replies(draw: st.DrawFn) -> bytes:
    message = dns.message.Message(draw(words))
    message.flags = 0x8000 | draw(words) & 0x07FF
    message.question.append(
        dns.rrset.RRset(draw(names), dns.rdataclass.IN, dns.rdatatype.RdataType(draw(words)))
    )
    message.answer = draw(st.lists(rrsets(), max_size=6))
    message.authority = draw(st.lists(rrsets(), max_size=3))
    message.additional = draw(st.lists(rrsets(), max_size=3))
    if draw(st.booleans()):
        message.use_edns(0, 0, draw(words), options=draw(unassigned_options))
    return message.to_wire(max_size=65535)


@settings(max_examples=300, deadline=None)
@given(replies(), st.one_of(st.integers(480, 1300), st.just(512)))
def test_fitted_replies_are_prefixes_that_dnspython_reads(wire: bytes, limit: int) -> None:
    assert message_decodes(wire)
    fitted, truncated = fit_to_size(wire, limit)
    assert len(fitted) <= max(limit, 0)
    before = iter_records(wire)
    after = iter_records(fitted)
    assert before is not None
    assert after is not None
    dns.message.from_wire(fitted)
    assert is_truncated(fitted) == (truncated or is_truncated(wire))

    def contents(octets: bytes, found: list) -> list[tuple[object, ...]]:
        return [
            (r.section, r.owner, r.rtype, r.rclass, r.ttl, octets[r.rdata_offset : r.end])
            for r in found
        ]

    old = [item for item in contents(wire, before) if item[2] != 41]
    new = [item for item in contents(fitted, after) if item[2] != 41]
    assert new == old[: len(new)]
    assert [c for c in contents(wire, before) if c[2] == 41] == [
        c for c in contents(fitted, after) if c[2] == 41
    ]
    if len(wire) <= limit:
        assert fitted == wire
    elif not truncated:
        # what was asked for is all there
        assert [i for i in old if i[0] == 1] == [i for i in new if i[0] == 1]


@settings(max_examples=200, deadline=None)
@given(replies())
def test_records_are_those_of_dnspython(wire: bytes) -> None:
    found = iter_records(wire)
    assert found is not None
    message = dns.message.from_wire(wire, one_rr_per_rrset=True)
    theirs = [
        (s + 1, rrset.name.to_wire(), int(rrset.rdtype), rrset.ttl)
        for s, section in enumerate((message.answer, message.authority, message.additional))
        for rrset in section
    ]
    ours = [(int(r.section), r.owner, r.rtype, r.ttl) for r in found if r.rtype != 41]
    assert ours == theirs
    for one in found:
        assert read_name(wire, one.offset) == (one.owner, one.type_offset)


@settings(max_examples=200, deadline=None)
@given(names)
def test_names_read_back(name: dns.name.Name) -> None:
    wire = name.to_wire()
    assert read_name(b"xyz" + wire, 3) == (wire, 3 + len(wire))
    assert fold(wire) == name.canonicalize().to_wire()
    text = name_to_text(wire)
    assert text.isprintable()
    if text.replace(".", "").isalnum() and text.isascii():
        assert text == name.to_text(omit_final_dot=False)


SEEDS = [
    query(),
    query(use_edns=0, payload=1232, options=[dns.edns.CookieOption(b"12345678", b"")]),
    header(an=1, ar=2) + QUESTION + b"\xc0\x0c\0\5\0\1\0\0\0\1\0\2\xc0\x10" + opt() + opt(),
    header(ar=1) + QUESTION + opt(option(8, b"\0\1\x18\0\1\2\3") + option(3, b"")),
    header(flags=5 << 11, ns=1) + QUESTION + b"\xc0\x0c\0\1\0\xff\0\0\0\0\0\0",
    reply([addresses(3)], [SOA], glue(2), payload=1232),
    reply([], [SOA], rcode=3),
    header(flags=0x8180, an=1) + QUESTION + record(b"\xc0\x0c", 35, b"\0\1\0\1\1u\3sip\0\1a\0"),
    header(qd=0),
    reply([addresses(45)], additional=glue(5)),
]


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    data = bytearray(draw(st.sampled_from(SEEDS)))
    for _ in range(draw(st.integers(0, 6))):
        position = draw(st.integers(0, max(len(data) - 1, 0)))
        kind = draw(st.integers(0, 3))
        if kind == 0 and data:
            data[position] = draw(st.integers(0, 255))
        elif kind == 1:
            data[position:position] = draw(st.binary(max_size=12))
        elif kind == 2:
            del data[position : position + draw(st.integers(1, 20))]
        elif data:
            data[position:] = b""
    return bytes(data)


def exercise(data: bytes, offset: int) -> None:
    """Every function that takes octets from outside; the assertions say how they agree."""
    found = parse_query(data)
    if isinstance(found, Query):
        assert message_decodes(data)
        assert found.qname_text
        assert list(found.option_codes) == sorted(set(found.option_codes))
        assert found.qname_folded == fold(found.qname)
        assert message_decodes(synthesize_reply(found, 2, 22, "x"))
        assert found.dnssec_ok == (found.edns_flags >= 0x8000)
    elif found is not RejectReason.WIRE_ERROR and found is not RejectReason.EMPTY:
        assert message_decodes(data)
    if len(data) >= 12 and (data[2] >> 3) & 0xF in (0, 2, 4, 5):
        # the fast path and the general walk come to one result
        general = _parse_general(data, unpack_header(data))
        if isinstance(found, Query):
            assert isinstance(general, Query)
            for slot in Query.__slots__:
                if not slot.startswith("_"):
                    assert getattr(found, slot) == getattr(general, slot), slot
        else:
            assert general is found
    after = skip_name(data, offset)
    name = read_name(data, offset)
    if name is None:
        assert after == -1
    else:
        assert name[1] == after
        assert len(name[0]) <= 255
        assert name_to_text(name[0]).endswith(".")
    name_to_text(data)
    assert (iter_records(data) is not None) == message_decodes(data)
    assert extended_rcode(data) & 0xF == rcode(data)
    assert len(fit_to_size(data, offset)[0]) <= offset
    assert with_id(data, 7)[:2] == b"\0\7"
    if reply_matches(data, message_id(data), QUESTION):
        assert data[2] & 0x80
    assert is_truncated(data) == (len(data) > 2 and bool(data[2] & 2))


@settings(max_examples=1500, deadline=None)
@given(mutated(), st.integers(0, 600))
def test_no_mutated_message_raises(data: bytes, offset: int) -> None:
    exercise(data, offset)


@settings(max_examples=500, deadline=None)
@given(st.binary(max_size=120), st.integers(0, 130))
def test_no_octets_raise(data: bytes, offset: int) -> None:
    exercise(data, offset)


@settings(max_examples=500, deadline=None)
@given(
    st.lists(st.integers(0, 3), min_size=4, max_size=4),
    st.integers(0, 0x7FFF),
    st.binary(max_size=80),
)
def test_no_octets_behind_a_plausible_header_raise(
    counts: list[int], flags: int, rest: bytes
) -> None:
    exercise(header(7, flags, *counts) + rest, 12)
    exercise(header(7, flags, 1, *counts[1:]) + QUESTION + rest, 40)


@settings(max_examples=300, deadline=None)
@given(st.binary(min_size=1, max_size=59).map(lambda tail: b"xn--" + tail))
def test_no_a_label_raises(label: bytes) -> None:
    assert name_to_text(bytes((len(label),)) + label + b"\0").isprintable()


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=80))
def test_text_is_a_name_or_a_value_error(text: str) -> None:
    try:
        name = name_from_text(text)
    except ValueError:
        return
    assert read_name(name, 0) == (name, len(name))
