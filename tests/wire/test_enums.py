"""The tables of chapter 30 section 4.2."""

from __future__ import annotations

from collections.abc import Callable

import dns.edns
import dns.opcode
import dns.rcode
import dns.rdatatype
import pytest

from conduit.wire import (
    class_name,
    edns_option_name,
    opcode_name,
    parse_edns_option,
    parse_opcode,
    parse_query_class,
    parse_rcode,
    parse_record_type,
    rcode_name,
    record_type_name,
)

Parse = Callable[[str], int]
Name = Callable[[int], str]

REGISTRIES = [
    (parse_record_type, record_type_name, "RecordType", "TYPE", 101),
    (parse_query_class, class_name, "QueryClass", "CLASS", 8),
    (parse_opcode, opcode_name, "DnsOpcode", "OPCODE", 7),
    (parse_rcode, rcode_name, "Rcode", "RCODE", 21),
    (parse_edns_option, edns_option_name, "EdnsOptionCode", "CODE", 29),
]


@pytest.mark.parametrize(("parse", "name", "kind", "prefix", "named"), REGISTRIES)
def test_every_number_has_a_name_that_parses_back(
    parse: Parse, name: Name, kind: str, prefix: str, named: int
) -> None:
    count = 0
    for number in range(0x10000):
        text = name(number)
        assert parse(text) == number
        if text != f"{prefix}{number}":
            count += 1
            assert parse(text.lower()) == parse(f"{prefix}{number}") == number
    assert count == named


@pytest.mark.parametrize(("parse", "name", "kind", "prefix", "named"), REGISTRIES)
@pytest.mark.parametrize(
    "value",
    ["28", "", "BOGUS", "{}", "{}65536", "{}-1", "{} 1", "{}1_0", "{}++1", "{}\u0661", "A\u017f"],
)
def test_unknown_values(
    parse: Parse, name: Name, kind: str, prefix: str, named: int, value: str
) -> None:
    text = value.format(prefix)
    with pytest.raises(ValueError) as caught:
        parse(text)
    assert str(caught.value) == (f"unknown {kind} value '{text}' (use IANA name or {prefix}N)")


def test_ch30_example_20_spellings() -> None:
    assert parse_record_type("type28") == parse_record_type("AAAA") == 28
    with pytest.raises(ValueError, match="unknown RecordType value '28'"):
        parse_record_type("28")
    assert parse_edns_option("ede") == 15
    assert parse_opcode("dso") == 6
    assert parse_rcode("badsig") == 16


@pytest.mark.parametrize(
    ("parse", "text", "number"),
    [
        (parse_record_type, "ANY", 255),
        (parse_record_type, "TYPE255", 255),
        (parse_record_type, " \taaaa\n", 28),
        (parse_record_type, "\u2003A\u3000", 1),
        (parse_record_type, "TYPE+0001", 1),
        (parse_record_type, "TYPE" + "0" * 5000 + "1", 1),
        (parse_record_type, "TYPE0", 0),
        (parse_record_type, "nsap_ptr", 23),
        (parse_record_type, "TYPE65535", 65535),
        (parse_query_class, "in", 1),
        (parse_query_class, "CLASS3", 3),
        (parse_opcode, "OPCODE300", 300),
        (parse_opcode, "DNS_STATEFUL_OPERATIONS", 6),
        (parse_rcode, "RCODE3", 3),
        (parse_edns_option, "UL", 2),
        (parse_edns_option, "CLIENT_SUBNET", 8),
        (parse_edns_option, "EXPIRE", 9),
        (parse_edns_option, "TCP_KEEPALIVE", 11),
        (parse_edns_option, "KEY_TAG", 14),
        (parse_edns_option, "UMBRELLA", 20292),
        (parse_edns_option, "CODE65001", 65001),
    ],
)
def test_spellings(parse: Parse, text: str, number: int) -> None:
    assert parse(text) == number


def test_control_separators_are_not_trimmed() -> None:
    with pytest.raises(ValueError):
        parse_record_type("A\x1f")


def test_aliases_are_not_shown() -> None:
    assert edns_option_name(8) == "EDNS_CLIENT_SUBNET"
    assert opcode_name(6) == "DNS_STATEFUL_OPERATIONS"
    assert rcode_name(16) == "BADVERS"
    assert record_type_name(255) == "ANY"
    assert record_type_name(65280) == "TYPE65280"
    assert class_name(9) == "CLASS9"
    assert opcode_name(9) == "OPCODE9"
    assert rcode_name(3000) == "RCODE3000"
    assert edns_option_name(65001) == "CODE65001"


def test_names_agree_with_dnspython() -> None:
    shared = 0
    for rtype in dns.rdatatype.RdataType:
        if rtype.name in ("NONE", "TYPE0"):
            continue
        assert parse_record_type(rtype.name) == rtype.value
        shared += 1
    assert shared > 60
    for code in dns.rcode.Rcode:
        assert parse_rcode(code.name) == code.value
    for opcode in dns.opcode.Opcode:
        assert parse_opcode(opcode.name) == opcode.value
    for option in (dns.edns.NSID, dns.edns.COOKIE, dns.edns.PADDING, dns.edns.EDE):
        assert parse_edns_option(option.name) == option.value
