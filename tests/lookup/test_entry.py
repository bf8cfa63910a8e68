"""Which answers are stored, and for how long."""

from __future__ import annotations

import dns.edns
import dns.message
import pytest
from dns.edns import EDECode
from hypothesis import given
from hypothesis import strategies as st

from conduit.lookup.cache.entry import Entry, Kind, Refusal, build_entry
from conduit.lookup.cache.layout import lay_out
from conduit.lookup.cache.policy import CachePolicy
from tests.lookup.messages import PLAIN, SOA, lifetime, query, reply, stored

ASKED = query("a.test")
TRUNCATING = CachePolicy(truncated_ttl=30)

NOERROR, FORMERR, SERVFAIL, NXDOMAIN, NOTIMP, REFUSED = range(6)


def refusal(answer: bytes, policy: CachePolicy = PLAIN, tcp: bool = False) -> object:
    return build_entry(ASKED, answer, 0.0, policy, tcp)


def test_ch40_example_05_lifetime_is_the_smallest_in_answer_and_authority() -> None:
    answer = reply(
        ASKED, ["a.test. 300 A 192.0.2.1"], ["test. 20 NS ns.test."], ["ns.test. 5 A 192.0.2.2"]
    )
    assert lifetime(ASKED, answer) == 20


def test_chain_lives_as_long_as_its_shortest_link() -> None:
    chain = ["a.test. 300 CNAME b.test.", "b.test. 1 CNAME c.test.", "c.test. 300 A 192.0.2.1"]
    assert lifetime(ASKED, reply(ASKED, chain)) == 1


def test_ch40_example_06_ttl_0_is_never_stored() -> None:
    assert refusal(reply(ASKED, ["a.test. 0 A 192.0.2.1"])) is Refusal.UNCACHEABLE
    one_of_many = reply(ASKED, ["a.test. 300 A 192.0.2.1"], ["test. 0 NS ns.test."])
    assert refusal(one_of_many) is Refusal.UNCACHEABLE
    in_additional = reply(ASKED, ["a.test. 300 A 192.0.2.1"], [], ["ns.test. 0 A 192.0.2.2"])
    assert lifetime(ASKED, in_additional) == 300


@pytest.mark.parametrize("ttl", [0x80000000, 0xFFFFFFFF])
def test_a_ttl_with_the_top_bit_counts_as_0(ttl: int) -> None:
    answer = reply(ASKED, ["a.test. 300 A 192.0.2.1"])
    answer = answer.replace((300).to_bytes(4, "big"), ttl.to_bytes(4, "big"))
    assert refusal(answer) is Refusal.UNCACHEABLE
    longest = reply(ASKED, ["a.test. 2147483647 A 192.0.2.1"])
    assert lifetime(ASKED, longest) == 0x7FFFFFFF


@pytest.mark.parametrize("rcode", [NOERROR, NXDOMAIN])
def test_ch40_example_11_negative_lifetime_is_bounded_by_the_soa_minimum(rcode: int) -> None:
    def soa(ttl: int, minimum: int) -> bytes:
        return reply(ASKED, [], [f"test. {ttl} SOA {SOA} {minimum}"], rcode=rcode)

    assert lifetime(ASKED, soa(900, 60)) == 60
    assert lifetime(ASKED, soa(60, 900)) == 60
    assert lifetime(ASKED, soa(900, 0)) is None


def test_the_missing_end_of_a_chain_is_bounded_by_the_soa_minimum() -> None:
    answer = reply(ASKED, ["a.test. 300 CNAME b.test."], [f"test. 900 SOA {SOA} 60"])
    assert lifetime(ASKED, answer) == 60


@pytest.mark.parametrize("rcode", [NOERROR, NXDOMAIN])
def test_ch40_example_12_negative_answers_without_records_live_300_s(rcode: int) -> None:
    assert lifetime(ASKED, reply(ASKED, rcode=rcode)) == 300
    assert lifetime(ASKED, reply(ASKED, rcode=rcode, edns=True)) == 300


def test_ch40_example_15_negative_cache_off_still_stores_servfail() -> None:
    policy = CachePolicy(negative=False)
    assert refusal(reply(ASKED, rcode=NXDOMAIN), policy) is Refusal.UNCACHEABLE
    assert refusal(reply(ASKED), policy) is Refusal.UNCACHEABLE
    assert lifetime(ASKED, reply(ASKED, rcode=SERVFAIL), policy) == 10


def test_ch40_example_16_servfail_lifetime_of_0_stores_none() -> None:
    policy = CachePolicy(servfail_ttl=0)
    assert refusal(reply(ASKED, rcode=SERVFAIL), policy) is Refusal.UNCACHEABLE


@pytest.mark.parametrize("rcode", [FORMERR, NOTIMP, REFUSED])
def test_ch40_example_17_refusals_without_records_are_never_stored(rcode: int) -> None:
    assert refusal(reply(ASKED, rcode=rcode)) is Refusal.UNCACHEABLE
    assert lifetime(ASKED, reply(ASKED, [], ["test. 30 NS ns.test."], rcode=rcode)) == 30


def test_other_rcodes_without_records_live_60_s() -> None:
    entry = stored(ASKED, reply(ASKED, rcode=9))
    assert (entry.expires, entry.kind, entry.rcode) == (60, Kind.POSITIVE, 9)


def test_extended_rcodes_are_never_stored() -> None:
    assert refusal(reply(ASKED, rcode=16, edns=True)) is Refusal.UNCACHEABLE
    found = ["a.test. 300 A 192.0.2.1"]
    assert refusal(reply(ASKED, found, rcode=23, edns=True)) is Refusal.UNCACHEABLE


def test_kinds() -> None:
    found = ["a.test. 300 A 192.0.2.1"]
    assert stored(ASKED, reply(ASKED, found)).kind == Kind.POSITIVE
    assert stored(ASKED, reply(ASKED, rcode=NXDOMAIN)).kind == Kind.NXDOMAIN
    assert stored(ASKED, reply(ASKED, [], ["test. 30 NS ns.test."])).kind == Kind.NODATA
    assert stored(ASKED, reply(ASKED, found, rcode=SERVFAIL)).kind == Kind.SERVFAIL


def test_nxdomain_behind_an_alias_covers_nothing() -> None:
    assert stored(ASKED, reply(ASKED, rcode=NXDOMAIN)).covers_descendants
    alias = stored(ASKED, reply(ASKED, ["a.test. 60 CNAME b.test."], rcode=NXDOMAIN))
    assert alias.kind == Kind.NXDOMAIN
    assert not alias.covers_descendants
    assert not stored(ASKED, reply(ASKED)).covers_descendants


def test_ch40_example_21_truncated_answers_only_for_udp_clients_and_only_when_enabled() -> None:
    answer = reply(ASKED, ["a.test. 300 A 192.0.2.1"], flags="TC")
    kept = build_entry(ASKED, answer, 0.0, TRUNCATING, False)
    assert isinstance(kept, Entry)
    assert (kept.truncated, kept.expires) == (True, 30)
    assert refusal(answer, TRUNCATING, tcp=True) is Refusal.TRUNCATED


def test_ch40_example_22_truncated_answers_are_not_stored_when_disabled() -> None:
    answer = reply(ASKED, ["a.test. 300 A 192.0.2.1"], flags="TC")
    assert refusal(answer) is Refusal.TRUNCATED
    assert refusal(answer, tcp=True) is Refusal.TRUNCATED


def test_truncated_answers_must_be_cacheable_otherwise_too() -> None:
    policy = CachePolicy(truncated_ttl=30, negative=False)
    assert refusal(reply(ASKED, flags="TC"), policy) is Refusal.UNCACHEABLE
    zero = reply(ASKED, ["a.test. 0 A 192.0.2.1"], flags="TC")
    assert refusal(zero, TRUNCATING) is Refusal.UNCACHEABLE
    cut = reply(ASKED, ["a.test. 60 A 192.0.2.1"], flags="TC")[:-2]
    assert refusal(cut, TRUNCATING) is Refusal.UNDECODABLE


def test_what_is_no_reply_to_the_question_is_refused() -> None:
    found = ["a.test. 300 A 192.0.2.1"]
    good = reply(ASKED, found)
    assert refusal(ASKED.wire) is Refusal.UNDECODABLE
    assert refusal(reply(query("b.test"), found)) is Refusal.UNDECODABLE
    assert refusal(reply(query("a.test", "AAAA"), found)) is Refusal.UNDECODABLE
    assert isinstance(refusal(good), Entry)
    notify = bytearray(good)
    notify[2] |= 4 << 3
    assert refusal(bytes(notify)) is Refusal.UNDECODABLE
    assert refusal(b"") is Refusal.UNDECODABLE


def test_an_opt_outside_the_additional_section_is_refused() -> None:
    message = reply(ASKED, edns=True)
    moved = message[:6] + b"\0\1\0\0\0\0" + message[12:]
    assert refusal(moved) is Refusal.UNDECODABLE


def test_a_signed_answer_is_for_one_client_only() -> None:
    answer = reply(ASKED, ["a.test. 300 A 192.0.2.1"])
    tsig = b"\0\0\xfa\0\xff\0\0\0\0\0\0"
    signed = answer[:10] + b"\0\1" + answer[12:] + tsig
    assert refusal(signed) is Refusal.UNCACHEABLE


def test_the_upstreams_octets_are_stored_unchanged() -> None:
    answer = reply(ASKED, ["a.test. 300 A 192.0.2.1", "a.test. 300 A 192.0.2.2"], edns=True)
    assert stored(ASKED, answer).wire == answer
    assert stored(ASKED, answer + b"behind").wire == answer


def test_every_cut_and_every_flipped_octet_is_decided_without_an_exception() -> None:
    options = [dns.edns.ECSOption("192.0.2.0", 24, 24), dns.edns.EDEOption(EDECode.make(22), "why")]
    answer = reply(
        ASKED,
        ["a.test. 300 CNAME b.test.", "b.test. 300 MX 10 mx.b.test."],
        [f"test. 900 SOA {SOA} 60"],
        ["mx.b.test. 60 A 192.0.2.1"],
        options=options,
    )
    for end in range(len(answer)):
        assert refusal(answer[:end]) is Refusal.UNDECODABLE
    for at in range(len(answer)):
        for value in (0, 0xC0, 0xFF):
            changed = answer[:at] + bytes((value,)) + answer[at + 1 :]
            assert isinstance(refusal(changed), Entry | Refusal)


@given(st.binary(max_size=80))
def test_noise_behind_a_right_question_is_decided_without_an_exception(noise: bytes) -> None:
    answer = ASKED.wire[:2] + b"\x81\x80\0\1\0\2\0\1\0\1" + ASKED.question + noise
    assert isinstance(refusal(answer), Entry | Refusal)


@pytest.mark.parametrize("questions", [0, 2])
def test_an_answer_with_no_or_two_questions_gets_the_one_that_was_asked(questions: int) -> None:
    plain = dns.message.from_wire(reply(ASKED, ["a.test. 300 A 192.0.2.1"]))
    record = b"\x01a\x04test\0\0\1\0\1\0\0\1\x2c\0\4\xc0\0\2\1"
    wire = (
        plain.to_wire()[:4] + bytes((0, questions)) + b"\0\1\0\0\0\0" + ASKED.question * questions
    )
    layout = lay_out(wire + record, ASKED.question)
    assert layout is not None
    assert dns.message.from_wire(layout.wire) == plain


def test_a_name_that_leans_on_the_header_is_written_out() -> None:
    # the id's octets 01 61 and a zero count spell the name "a."
    header = b"\x01\x61\x81\x80\0\1\0\1\0\0\0\0"
    # owner: pointer to offset 4, a zero octet and so the root
    wire = header + ASKED.question + b"\xc0\x04\0\1\0\1\0\0\1\x2c\0\4\xc0\0\2\1"
    layout = lay_out(wire, ASKED.question)
    assert layout is not None
    assert layout.wire[layout.question_end] == 0
    # an address that only looks like such a pointer changes nothing
    harmless = reply(ASKED, ["a.test. 300 A 192.0.2.1"])
    found = lay_out(harmless, ASKED.question)
    assert found is not None
    assert found.wire is harmless
