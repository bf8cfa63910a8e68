"""Size fitting of UDP replies (chapter 20 section 16.2)."""

from __future__ import annotations

import dns.flags
import dns.message
import dns.rrset

from conduit.wire import fit_to_size, is_truncated, iter_records, message_decodes
from conduit.wire.records import Record, Section
from tests.wire.builders import (
    QUESTION,
    SOA,
    addresses,
    glue,
    header,
    opt,
    option,
    record,
    reply,
)


def sections(wire: bytes) -> dict[Section, list[Record]]:
    found = iter_records(wire)
    assert found is not None
    return {
        section: [one for one in found if one.section is section and one.rtype != 41]
        for section in Section
    }


def name_servers(count: int) -> dns.rrset.RRset:
    texts = [f"ns{i}.example.com." for i in range(count)]
    return dns.rrset.from_text_list("example.com.", 300, "IN", "NS", texts)


def test_ch20_example_22_prefix_of_whole_records() -> None:
    wire = reply([addresses(40)])
    assert len(wire) > 512
    fitted, truncated = fit_to_size(wire, 512)
    assert truncated
    assert is_truncated(fitted)
    assert 512 - 16 < len(fitted) <= 512
    kept = sections(fitted)[Section.ANSWER]
    assert 0 < len(kept) < 40
    assert fitted[12:] == wire[12 : len(fitted)]
    assert len(dns.message.from_wire(fitted).answer[0]) == len(kept)
    # a TCP client's limit is the message itself
    assert fit_to_size(wire, 65535) == (wire, False)


def test_ch20_example_23_additionals_go_first() -> None:
    wire = reply([addresses(1)], additional=glue(30), payload=1232)
    fitted, truncated = fit_to_size(wire, 512)
    assert not truncated
    assert not is_truncated(fitted)
    kept = sections(fitted)
    assert len(kept[Section.ANSWER]) == 1
    assert not kept[Section.ADDITIONAL]
    assert dns.message.from_wire(fitted).payload == 1232


def test_ch20_example_24_authority_of_a_negative_answer() -> None:
    wire = reply([], [SOA], glue(40), rcode=3)
    fitted, truncated = fit_to_size(wire, 512)
    kept = sections(fitted)
    assert not truncated
    assert not is_truncated(fitted)
    assert len(kept[Section.AUTHORITY]) == 1
    assert not kept[Section.ADDITIONAL]

    tight = len(fitted) - 1
    fitted, truncated = fit_to_size(wire, tight)
    assert truncated
    assert is_truncated(fitted)
    assert not sections(fitted)[Section.AUTHORITY]


def test_ch20_example_24_authority_of_a_positive_answer() -> None:
    wire = reply([addresses(1)], [name_servers(30)])
    fitted, truncated = fit_to_size(wire, 512)
    kept = sections(fitted)
    assert not truncated
    assert not is_truncated(fitted)
    assert len(kept[Section.ANSWER]) == 1
    assert not kept[Section.AUTHORITY]


def test_message_within_the_limit_is_untouched() -> None:
    wire = reply([addresses(3)], additional=glue(2)) + b"trailing"
    assert fit_to_size(wire, len(wire)) == (wire, False)


def test_tc_of_the_upstream_stays_and_is_not_ours() -> None:
    wire = reply([addresses(1)], additional=glue(30), flags=dns.flags.TC)
    fitted, truncated = fit_to_size(wire, 512)
    assert is_truncated(fitted)
    assert not truncated


def test_sections_are_dropped_whole() -> None:
    wire = reply([addresses(2)], [name_servers(3)], glue(20))
    # room for all but the last additional record
    fitted, _ = fit_to_size(wire, len(wire) - 1)
    kept = sections(fitted)
    assert (len(kept[Section.ANSWER]), len(kept[Section.AUTHORITY])) == (2, 3)
    assert not kept[Section.ADDITIONAL]


def test_opt_is_kept_wherever_it_stands() -> None:
    ours = opt(option(10, b"12345678"), 4096, 0x8000)
    other = record(b"\1a\0", 16, b"\x63" + b"x" * 99)
    for records in ([ours] + [other] * 6, [other] * 3 + [ours] + [other] * 3):
        wire = header(flags=0x8180, ar=7) + QUESTION + b"".join(records)
        fitted, truncated = fit_to_size(wire, 512)
        assert fitted == header(flags=0x8180, ar=1) + QUESTION + ours
        assert not truncated


def test_opt_is_kept_while_answers_go() -> None:
    wire = reply([addresses(60)], payload=1400)
    fitted, truncated = fit_to_size(wire, 512)
    assert truncated
    message = dns.message.from_wire(fitted)
    assert message.payload == 1400
    assert 0 < len(message.answer[0]) < 60
    # the next record would not have fitted
    assert len(fitted) + 16 > 512


def test_tsig_goes_with_the_other_additionals() -> None:
    signature = record(b"\3key\0", 250, b"\0" * 60, 255, 0)
    wire = header(flags=0x8180, an=1, ar=1) + QUESTION + record(b"\xc0\x0c", 16, b"x" * 400)
    fitted, truncated = fit_to_size(wire + signature, 512)
    assert fitted == wire[:11] + b"\0" + wire[12:]
    assert not truncated


def test_not_one_answer_fits() -> None:
    wire = header(flags=0x8180, an=1, ar=1) + QUESTION
    wire += record(b"\xc0\x0c", 16, b"x" * 600) + opt()
    assert fit_to_size(wire, 512) == (header(flags=0x8380, ar=1) + QUESTION + opt(), True)


def test_opt_that_is_too_big_itself_is_cut() -> None:
    big = opt(option(12, b"\0" * 600))
    wire = header(flags=0x8180, ar=1) + QUESTION + big
    fitted, truncated = fit_to_size(wire, 512)
    assert truncated
    assert fitted == header(flags=0x8380, ar=1) + (QUESTION + big)[:500]


def test_message_that_does_not_decode_is_cut() -> None:
    wire = reply([addresses(40)])[:-1]
    assert not message_decodes(wire)
    fitted, truncated = fit_to_size(wire, 512)
    assert truncated
    assert fitted == wire[:2] + bytes((wire[2] | 2,)) + wire[3:512]


def test_faulty_question_is_cut() -> None:
    wire = header(flags=0x8180) + b"\x80" * 600
    fitted, truncated = fit_to_size(wire, 512)
    assert (len(fitted), truncated) == (512, True)
    assert is_truncated(fitted)


def test_trailing_octets_go_with_the_additionals() -> None:
    wire = reply([addresses(1)])
    assert fit_to_size(wire + b"x" * 600, 512) == (wire, False)


def test_2000_octet_answer_for_a_client_without_opt() -> None:
    wire = reply([addresses(120)])
    assert len(wire) > 1900
    fitted, truncated = fit_to_size(wire, 512)
    assert len(fitted) <= 512
    assert truncated
    assert message_decodes(fitted)


def test_limits_below_a_header_do_not_raise() -> None:
    wire = reply([addresses(1)])
    for limit in range(-1, 13):
        assert len(fit_to_size(wire, limit)[0]) == max(limit, 0)
    assert fit_to_size(b"\0\0\0\0\0", 4) == (b"\0\0\2\0", True)
