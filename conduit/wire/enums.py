"""Names and numbers of record types, classes, opcodes, rcodes and EDNS options, both ways.

The tables are those of chapter 30 section 4.2 (IANA's names with `_` for other punctuation), with
`ANY` added to the record types. Parsing ignores ASCII case and surrounding white space, and takes
the generic spelling, such as `TYPE65280`, for numbers without a name.
"""

from __future__ import annotations

import re
from typing import Final

# white space as Unicode has it; str.strip() alone also takes U+001C to U+001F
_WHITE_SPACE: Final = (
    "\t\n\x0b\x0c\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006"
    "\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
_NUMBER: Final = re.compile(r"\+?0*([0-9]{1,5})")

_RECORD_TYPES: Final[dict[str, int]] = {
    "ZERO": 0,
    "A": 1,
    "NS": 2,
    "MD": 3,
    "MF": 4,
    "CNAME": 5,
    "SOA": 6,
    "MB": 7,
    "MG": 8,
    "MR": 9,
    "NULL": 10,
    "WKS": 11,
    "PTR": 12,
    "HINFO": 13,
    "MINFO": 14,
    "MX": 15,
    "TXT": 16,
    "RP": 17,
    "AFSDB": 18,
    "X25": 19,
    "ISDN": 20,
    "RT": 21,
    "NSAP": 22,
    "NSAP_PTR": 23,
    "SIG": 24,
    "KEY": 25,
    "PX": 26,
    "GPOS": 27,
    "AAAA": 28,
    "LOC": 29,
    "NXT": 30,
    "EID": 31,
    "NIMLOC": 32,
    "SRV": 33,
    "ATMA": 34,
    "NAPTR": 35,
    "KX": 36,
    "CERT": 37,
    "A6": 38,
    "DNAME": 39,
    "SINK": 40,
    "OPT": 41,
    "APL": 42,
    "DS": 43,
    "SSHFP": 44,
    "IPSECKEY": 45,
    "RRSIG": 46,
    "NSEC": 47,
    "DNSKEY": 48,
    "DHCID": 49,
    "NSEC3": 50,
    "NSEC3PARAM": 51,
    "TLSA": 52,
    "SMIMEA": 53,
    "UNASSIGNED": 54,
    "HIP": 55,
    "NINFO": 56,
    "RKEY": 57,
    "TALINK": 58,
    "CDS": 59,
    "CDNSKEY": 60,
    "OPENPGPKEY": 61,
    "CSYNC": 62,
    "ZONEMD": 63,
    "SVCB": 64,
    "HTTPS": 65,
    "DSYNC": 66,
    "HHIT": 67,
    "BRID": 68,
    "SPF": 99,
    "UINFO": 100,
    "UID": 101,
    "GID": 102,
    "UNSPEC": 103,
    "NID": 104,
    "L32": 105,
    "L64": 106,
    "LP": 107,
    "EUI48": 108,
    "EUI64": 109,
    "NXNAME": 128,
    "TKEY": 249,
    "TSIG": 250,
    "IXFR": 251,
    "AXFR": 252,
    "MAILB": 253,
    "MAILA": 254,
    "ANY": 255,
    "URI": 256,
    "CAA": 257,
    "AVC": 258,
    "DOA": 259,
    "AMTRELAY": 260,
    "RESINFO": 261,
    "WALLET": 262,
    "CLA": 263,
    "IPN": 264,
    "TA": 32768,
    "DLV": 32769,
    "ANAME": 65305,
    "RESERVED": 65535,
}

_QUERY_CLASSES: Final[dict[str, int]] = {
    "RESERVED": 0,
    "IN": 1,
    "UNASSIGNED": 2,
    "CH": 3,
    "HS": 4,
    "NONE": 254,
    "ANY": 255,
    "RESERVED65535": 65535,
}

_OPCODES: Final[dict[str, int]] = {
    "QUERY": 0,
    "IQUERY": 1,
    "STATUS": 2,
    "UNASSIGNED": 3,
    "NOTIFY": 4,
    "UPDATE": 5,
    "DNS_STATEFUL_OPERATIONS": 6,
}

_OPCODE_ALIASES: Final[dict[str, int]] = {
    "DSO": 6,
}

_RCODES: Final[dict[str, int]] = {
    "NOERROR": 0,
    "FORMERR": 1,
    "SERVFAIL": 2,
    "NXDOMAIN": 3,
    "NOTIMP": 4,
    "REFUSED": 5,
    "YXDOMAIN": 6,
    "YXRRSET": 7,
    "NXRRSET": 8,
    "NOTAUTH": 9,
    "NOTZONE": 10,
    "DSOTYPENI": 11,
    "BADVERS": 16,
    "BADKEY": 17,
    "BADTIME": 18,
    "BADMODE": 19,
    "BADNAME": 20,
    "BADALG": 21,
    "BADTRUNC": 22,
    "BADCOOKIE": 23,
    "RESERVED_CAN_BE_ALLOCATED_BY_STANDARDS_ACTION": 65535,
}

_RCODE_ALIASES: Final[dict[str, int]] = {
    "BADSIG": 16,
}

_EDNS_OPTIONS: Final[dict[str, int]] = {
    "ZERO": 0,
    "LLQ": 1,
    "UPDATE_LEASE": 2,
    "NSID": 3,
    "RESERVED4": 4,
    "DAU": 5,
    "DHU": 6,
    "N3U": 7,
    "EDNS_CLIENT_SUBNET": 8,
    "EDNS_EXPIRE": 9,
    "COOKIE": 10,
    "EDNS_TCP_KEEPALIVE": 11,
    "PADDING": 12,
    "CHAIN": 13,
    "EDNS_KEY_TAG": 14,
    "EXTENDED_DNS_ERROR": 15,
    "EDNS_CLIENT_TAG": 16,
    "EDNS_SERVER_TAG": 17,
    "REPORT_CHANNEL": 18,
    "ZONEVERSION": 19,
    "MQTYPE_QUERY": 20,
    "MQTYPE_RESPONSE": 21,
    "EDE_EXTRA_TEXT_LANGUAGE": 22,
    "FILTERING_CONTACT": 23,
    "FILTERING_ORGANIZATION": 24,
    "FILTERING_DB": 25,
    "UMBRELLA_IDENT": 20292,
    "DEVICEID": 26946,
    "RESERVED_FOR_FUTURE_EXPANSION": 65535,
}

_EDNS_OPTION_ALIASES: Final[dict[str, int]] = {
    "UL": 2,
    "CLIENT_SUBNET": 8,
    "EXPIRE": 9,
    "TCP_KEEPALIVE": 11,
    "KEY_TAG": 14,
    "EDE": 15,
    "UMBRELLA": 20292,
}


class _Table:
    """One registry: names to numbers for parsing, numbers to names for display."""

    __slots__ = ("_kind", "_names", "_numbers", "_prefix")

    def __init__(
        self, kind: str, prefix: str, names: dict[str, int], aliases: dict[str, int] | None = None
    ) -> None:
        self._kind = kind
        self._prefix = prefix
        self._numbers = {**(aliases or {}), **names}
        self._names = {number: name for name, number in names.items()}

    def parse(self, text: str) -> int:
        value = text.strip(_WHITE_SPACE)
        # upper() would turn a few non-ASCII letters into ASCII ones
        if value.isascii():
            upper = value.upper()
            number = self._numbers.get(upper)
            if number is not None:
                return number
            if upper.startswith(self._prefix):
                digits = _NUMBER.fullmatch(upper, len(self._prefix))
                if digits is not None and int(digits[1]) <= 0xFFFF:
                    return int(digits[1])
        raise ValueError(f"unknown {self._kind} value '{value}' (use IANA name or {self._prefix}N)")

    def name(self, number: int) -> str:
        name = self._names.get(number)
        return f"{self._prefix}{number}" if name is None else name


_record_types: Final = _Table("RecordType", "TYPE", _RECORD_TYPES)
_query_classes: Final = _Table("QueryClass", "CLASS", _QUERY_CLASSES)
_opcodes: Final = _Table("DnsOpcode", "OPCODE", _OPCODES, _OPCODE_ALIASES)
_rcodes: Final = _Table("Rcode", "RCODE", _RCODES, _RCODE_ALIASES)
_edns_options: Final = _Table("EdnsOptionCode", "CODE", _EDNS_OPTIONS, _EDNS_OPTION_ALIASES)


def parse_record_type(text: str) -> int:
    """The number of a record type name or `TYPEn`. Raises ValueError when it is neither."""
    return _record_types.parse(text)


def parse_query_class(text: str) -> int:
    """The number of a class name or `CLASSn`. Raises ValueError when it is neither."""
    return _query_classes.parse(text)


def parse_opcode(text: str) -> int:
    """The number of an opcode name or `OPCODEn`. Raises ValueError when it is neither.

    Numbers above 15 are legal and match no message (chapter 30 section 4.2).
    """
    return _opcodes.parse(text)


def parse_rcode(text: str) -> int:
    """The number of an rcode name or `RCODEn`. Raises ValueError when it is neither."""
    return _rcodes.parse(text)


def parse_edns_option(text: str) -> int:
    """The number of an EDNS option name or `CODEn`. Raises ValueError when it is neither."""
    return _edns_options.parse(text)


def record_type_name(number: int) -> str:
    """The name of a record type, `TYPEn` (RFC 3597 section 5) without one."""
    return _record_types.name(number)


def class_name(number: int) -> str:
    """The name of a class, `CLASSn` (RFC 3597 section 5) without one."""
    return _query_classes.name(number)


def opcode_name(number: int) -> str:
    """The name of an opcode, `OPCODEn` without one."""
    return _opcodes.name(number)


def rcode_name(number: int) -> str:
    """The name of an rcode, `RCODEn` without one."""
    return _rcodes.name(number)


def edns_option_name(number: int) -> str:
    """The name of an EDNS option, `CODEn` without one."""
    return _edns_options.name(number)
