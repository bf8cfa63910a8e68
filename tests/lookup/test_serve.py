"""What a client gets from the cache, judged by dnspython."""

from __future__ import annotations

import itertools

import dns.edns
import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdata
import dns.rdataclass
import dns.rdatatype
import dns.rrset
import pytest
from dns.edns import EDECode, OptionType
from hypothesis import given, settings
from hypothesis import strategies as st

from conduit.lookup.cache.entry import Entry
from conduit.lookup.cache.keys import ancestor_keys
from conduit.lookup.cache.memory import MemoryStore
from conduit.lookup.cache.serve import serve
from conduit.wire import Query, parse_query
from tests.lookup.messages import (
    SOA,
    key_of,
    parse,
    query,
    reply,
    reply_message,
    stored,
    ttls,
)

FOUND = ["a.test. 300 A 192.0.2.1"]
ASKED = query("a.test")


def test_ch40_example_03_ttl_is_lowered_by_whole_seconds() -> None:
    entry = stored(ASKED, reply(ASKED, FOUND), now=1000.0)
    assert ttls(serve(entry, ASKED, 1040.9)) == [260]


def test_ch40_example_05_every_section_decays_down_to_0() -> None:
    answer = reply(ASKED, FOUND, ["test. 20 NS ns.test."], ["ns.test. 5 A 192.0.2.2"])
    entry = stored(ASKED, answer)
    assert ttls(serve(entry, ASKED, 10.0)) == [290, 10, 0]
    assert ttls(serve(entry, ASKED, 0.9)) == [300, 20, 5]


def test_a_clock_that_steps_back_changes_nothing() -> None:
    entry = stored(ASKED, reply(ASKED, FOUND), now=1000.0)
    assert ttls(serve(entry, ASKED, 900.0)) == [300]


def test_ch40_example_07_id_and_spelling_are_the_clients_owners_stay() -> None:
    asked = query("www.test")
    entry = stored(asked, reply(asked, ["www.test. 300 A 192.0.2.1"]))
    again = parse_query(b"\xbe\xef" + query("wWw.TeSt").wire[2:])
    assert isinstance(again, Query)
    served = serve(entry, again, 0.0)
    message = parse(served)
    assert message.id == 0xBEEF
    assert message.question[0].name.to_text() == "wWw.TeSt."
    assert message.answer[0].name.to_text() == "www.test."
    # and the other way round, from an answer that was spelt oddly
    entry = stored(again, reply(again, ["wWw.TeSt. 300 A 192.0.2.1"]))
    message = parse(serve(entry, asked, 0.0))
    assert message.question[0].name.to_text() == "www.test."
    assert message.answer[0].name.to_text() == "wWw.TeSt."


def test_ch40_example_13_nxdomain_answers_for_the_names_below() -> None:
    answer = reply(ASKED, [], [f"test. 900 SOA {SOA} 900"], rcode=3)
    store = MemoryStore()
    store.put(key_of(ASKED), stored(ASKED, answer), 0.0)

    def find(asked: Query) -> Entry | None:
        found = [store.get(key, 7.0) for key in ancestor_keys(key_of(asked))]
        return next((entry for entry in found if entry is not None), None)

    below = query("X.y.a.test", use_edns=0)
    entry = find(below)
    assert entry is not None
    assert entry.covers_descendants
    message = parse(serve(entry, below, 7.0))
    assert message.rcode() == 3
    assert message.question[0].name.to_text() == "X.y.a.test."
    assert message.authority[0].to_text() == f"test. 893 IN SOA {SOA} 900"
    assert find(query("x.y.a.test", "AAAA")) is None
    assert find(query("x.y.a.test", flags="")) is None


def test_flags_rd_and_cd_are_the_clients_the_rest_is_the_upstreams() -> None:
    entry = stored(ASKED, reply(ASKED, FOUND, flags="AA"))
    for flags in ("", "RD", "CD", "RD CD"):
        got = parse(serve(entry, query("a.test", flags=flags), 0.0)).flags
        assert got == dns.flags.from_text(flags + " QR AA RA")


def test_ad_is_cleared_for_a_client_with_neither_ad_nor_do() -> None:
    entry = stored(ASKED, reply(ASKED, FOUND, flags="AD"))

    def authentic(asked: Query) -> bool:
        return bool(parse(serve(entry, asked, 0.0)).flags & dns.flags.AD)

    assert not authentic(query("a.test"))
    assert not authentic(query("a.test", use_edns=0))
    assert authentic(query("a.test", flags="RD AD"))
    assert authentic(query("a.test", use_edns=0, want_dnssec=True))
    without = stored(ASKED, reply(ASKED, FOUND))
    assert not parse(serve(without, query("a.test", flags="RD AD"), 0.0)).flags & dns.flags.AD


@pytest.mark.parametrize("upstream_edns", [False, True])
def test_opt_only_for_a_client_that_sent_one_and_without_its_options(upstream_edns: bool) -> None:
    entry = stored(ASKED, reply(ASKED, FOUND, edns=upstream_edns))
    assert parse(serve(entry, ASKED, 0.0)).edns == -1
    noisy = [
        dns.edns.GenericOption(OptionType.make(10), b"12345678"),
        dns.edns.GenericOption(OptionType.make(3), b""),
        dns.edns.GenericOption(OptionType.make(65001), b"x"),
    ]
    asked = query("a.test", use_edns=0, payload=4096, ednsflags=0x7FFF, options=noisy)
    message = parse(serve(entry, asked, 0.0))
    assert (message.edns, message.ednsflags, message.payload) == (0, 0, 1232)
    assert message.options == ()
    signed = parse(serve(entry, query("a.test", use_edns=0, want_dnssec=True), 0.0))
    assert signed.ednsflags == dns.flags.DO


def test_options_that_speak_of_the_answer_are_kept() -> None:
    subnet = dns.edns.ECSOption("192.0.2.0", 24, 20)
    error = dns.edns.EDEOption(EDECode.make(3), "stale")
    cookie = dns.edns.GenericOption(OptionType.make(10), b"1234567812345678")
    asked = query("a.test", use_edns=0, options=[dns.edns.ECSOption("192.0.2.0", 24)])
    entry = stored(asked, reply(asked, FOUND, options=[cookie, subnet, error]))
    assert parse(serve(entry, asked, 0.0)).options == (subnet, error)
    # an upstream that volunteers a subnet says nothing to a client that sent none
    plain = query("a.test", use_edns=0)
    entry = stored(plain, reply(plain, FOUND, options=[subnet, error]))
    assert parse(serve(entry, plain, 0.0)).options == (error,)
    assert parse(serve(entry, ASKED, 0.0)).edns == -1


def test_an_opt_between_records_leaves_them_in_place() -> None:
    message = reply_message(
        ASKED, FOUND, [], ["ns.test. 60 A 192.0.2.2", "ns.test. 60 AAAA 2001:db8::1"], edns=False
    )
    wire = message.to_wire()
    at = wire.rindex(b"\0\x1c\0\1") - 2
    opt = b"\0\0\x29\x10\0\0\0\0\0\0\0"
    wire = wire[:10] + b"\0\3" + wire[12:at] + opt + wire[at:]
    served = parse(serve(stored(ASKED, wire), ASKED, 0.0))
    assert served.sections[1:] == message.sections[1:]
    assert served.edns == -1


ADDRESSES = [f"a.test. 300 A 192.0.2.{n}" for n in range(81, 84)]


def order(wire: bytes | None) -> list[str]:
    return [rr[0].to_text() for rr in parse(wire).answer]


@pytest.mark.parametrize("name", ["a.test", "A.tesT"])
def test_rotation_turns_an_rrset_by_the_drawn_offset(name: str) -> None:
    entry = stored(ASKED, reply(ASKED, ADDRESSES))
    plain = [f"192.0.2.{n}" for n in (81, 82, 83)]
    assert order(serve(entry, query(name), 0.0)) == plain
    for turn in range(3):
        asked_for: list[int] = []

        def draw(below: int, turn: int = turn, asked_for: list[int] = asked_for) -> int:
            asked_for.append(below)
            return turn

        served = serve(entry, query(name), 5.0, draw)
        assert order(served) == plain[turn:] + plain[:turn]
        assert set(ttls(served)) == {295}
        assert parse(served).question[0].name.to_text() == name + "."
        assert asked_for == [3]


def test_rotation_keeps_the_order_of_rrsets_and_joins_their_members() -> None:
    answer = [
        "a.test. 300 CNAME b.test.",
        "b.test. 300 A 192.0.2.1",
        "b.test. 300 AAAA 2001:db8::1",
        "B.test. 300 A 192.0.2.2",
    ]
    authority = ["test. 300 NS ns1.test.", "test. 300 NS ns2.test."]
    entry = stored(ASKED, reply(ASKED, answer, authority))
    served = serve(entry, ASKED, 0.0, lambda below: below - 1)
    assert order(served) == ["b.test.", "192.0.2.2", "192.0.2.1", "2001:db8::1"]
    assert [rr[0].to_text() for rr in parse(served).authority] == ["ns1.test.", "ns2.test."]
    assert entry.wire == reply(ASKED, answer, authority)


def test_a_message_too_long_to_stand_alone_gives_up_the_spelling_of_owners() -> None:
    long = ".".join(["x" * 60] * 4)
    asked = query(long, "SRV")
    # each record points to the question; one owner written out is one name too many
    records = [f"{long}. 300 SRV {n} 0 53 t.test." for n in range(2505)]
    message = reply_message(asked, records, edns=False)
    entry = stored(asked, message.to_wire(max_size=65535))
    served = parse(serve(entry, query(long.upper(), "SRV"), 1.0))
    assert len(served.answer) == 2505
    assert served.question[0].name.to_text() == long.upper() + "."
    assert served.answer[0].name.to_text() == long.upper() + "."
    assert serve(entry, query("a.b." + long[2:], "SRV"), 1.0) is None


# any upstream message

LABEL = st.text("abAB", min_size=1, max_size=3)
NAME = st.lists(LABEL, min_size=1, max_size=4).map(lambda labels: ".".join([*labels, "tEst."]))
TTL = st.one_of(st.integers(1, 400), st.integers(1, 0x7FFFFFFF))


def record_text(draw: st.DrawFn) -> tuple[str, str]:
    name = draw(NAME)
    other = draw(NAME)
    third = draw(NAME)
    number = draw(st.integers(0, 255))
    return draw(
        st.sampled_from(
            [
                ("A", f"192.0.2.{number}"),
                ("AAAA", f"2001:db8::{number:x}"),
                ("CNAME", name),
                ("NS", name),
                ("PTR", name),
                ("DNAME", name),
                ("MX", f"{number} {name}"),
                ("SOA", f"{name} {other} 1 2 3 4 {number + 1}"),
                ("RP", f"{name} {other}"),
                ("AFSDB", f"1 {name}"),
                ("KX", f"1 {name}"),
                ("PX", f"1 {name} {other}"),
                ("SRV", f"1 {number} 53 {name}"),
                ("NAPTR", f'1 2 "s" "sip+d2u" "" {name}'),
                ("TXT", f'"{name}" "x"'),
                ("RRSIG", f"A 8 2 300 20300101000000 20200101000000 1 {third} AAAA"),
                ("NSEC", f"{name} A NS"),
                ("TYPE65280", "\\# 4 c00c0102"),
                ("HTTPS", f"1 {name} alpn=h2"),
            ]
        )
    )


@st.composite
def upstream_messages(draw: st.DrawFn) -> tuple[Query, bytes]:
    """A query and an answer to it that is stored, with names that point all over the message."""
    asked = query(draw(NAME), use_edns=0)
    message = reply_message(asked, edns=draw(st.booleans()))
    owners = st.one_of(st.just(message.question[0].name.to_text()), NAME)
    for section in message.sections[1:]:
        for _ in range(draw(st.integers(0, 4))):
            rtype, data = record_text(draw)
            rrset = dns.rrset.from_text(draw(owners), draw(TTL), "IN", rtype, data)
            section.append(rrset)
    message.set_rcode(draw(st.sampled_from([dns.rcode.NOERROR, dns.rcode.NXDOMAIN])))
    wire = message.to_wire(max_size=65535)
    if draw(st.booleans()):
        # an upstream that spells the question its own way
        folded = wire[12 : 12 + len(asked.qname)]
        wire = wire[:12] + folded.swapcase() + wire[12 + len(folded) :]
    return asked, wire


def records(message: dns.message.Message, age: int) -> list[list[tuple[object, ...]]]:
    """All that a client sees of the records, TTLs lowered by `age`, spelling kept."""
    return [
        [(rr.name.labels, rr.rdtype, max(0, rr.ttl - age), rr[0].to_text()) for rr in section]
        for section in message.sections[1:]
    ]


@settings(max_examples=300, deadline=None)
@given(
    upstream_messages(),
    st.integers(0, 500),
    st.sampled_from([str.lower, str.upper, str.swapcase, str]),
    st.booleans(),
    st.lists(LABEL, max_size=3),
    st.integers(0, 3),
)
def test_a_hit_holds_the_records_of_the_upstream_with_lowered_ttls(
    exchange: tuple[Query, bytes],
    age: int,
    spell: object,
    edns: bool,
    below: list[str],
    turn: int,
) -> None:
    asked, answer = exchange
    assert callable(spell)
    entry = stored(asked, answer, now=50.0)
    name = spell(dns.message.from_wire(asked.wire).question[0].name.to_text())
    again = query(".".join([*below, name]), use_edns=0 if edns else False)
    served = serve(entry, again, 50.5 + age)
    message = parse(served)
    assert message.question[0].name.labels == dns.name.from_text(".".join([*below, name])).labels
    assert message.id == again.id
    assert message.edns == (0 if edns else -1)
    upstream = parse(answer)
    assert records(message, 0) == records(upstream, age)
    assert message.rcode() == upstream.rcode()
    rotated = parse(serve(entry, again, 50.5 + age, lambda count: turn % count))
    for mine, theirs in zip(records(rotated, 0), records(upstream, age), strict=True):
        assert sorted(map(repr, mine)) == sorted(map(repr, theirs))
    assert records(rotated, 0)[1:] == records(upstream, age)[1:]


def test_served_octets_never_change_the_entry() -> None:
    answer = reply(ASKED, ADDRESSES, ["test. 300 NS ns.test."], edns=True)
    entry = stored(ASKED, answer)
    for name, age, turn in itertools.product(("a.test", "A.test", "x.a.test"), (0, 9), (None, 1)):
        draw = None if turn is None else (lambda count: 1)
        assert serve(entry, query(name), float(age), draw) is not None
    assert entry.wire == answer
