"""DNS enum values as scripts see them: `RecordType::A`, `Rcode::SERVFAIL`, ... (chapter 35, 10)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, Final, NamedTuple

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


class EnumFamily(NamedTuple):
    """One enum module: how numbers print and names parse."""

    name: str
    prefix: str
    largest: int
    name_of: Callable[[int], str]
    parse: Callable[[str], int]
    #: Extra names of known numbers.
    aliases: Mapping[str, int]


RECORD_TYPE: Final = EnumFamily(
    "RecordType", "TYPE", 65535, record_type_name, parse_record_type, {}
)
RCODE: Final = EnumFamily("Rcode", "RCODE", 65535, rcode_name, parse_rcode, {"BADSIG": 16})
QUERY_CLASS: Final = EnumFamily("QueryClass", "CLASS", 65535, class_name, parse_query_class, {})
OPCODE: Final = EnumFamily("DnsOpcode", "OPCODE", 15, opcode_name, parse_opcode, {"DSO": 6})
EDNS_OPTION: Final = EnumFamily(
    "EdnsOptionCode",
    "CODE",
    65535,
    edns_option_name,
    parse_edns_option,
    {
        "UL": 2,
        "CLIENT_SUBNET": 8,
        "EXPIRE": 9,
        "TCP_KEEPALIVE": 11,
        "KEY_TAG": 14,
        "EDE": 15,
        "UMBRELLA": 20292,
    },
)
FAMILIES: Final = (RECORD_TYPE, RCODE, QUERY_CLASS, OPCODE, EDNS_OPTION)


class EnumValue:
    """One value; equal to values of its own family with the same number, to nothing else."""

    __slots__ = ("value",)

    family: ClassVar[EnumFamily]

    def __init__(self, value: int) -> None:
        self.value = value

    def number(self) -> int:
        """Return the wire number."""
        return self.value

    def name(self) -> str:
        """Return the canonical name, or the prefix and the number."""
        return self.family.name_of(self.value)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.value == self.value

    def __hash__(self) -> int:
        return hash((self.family.name, self.value))

    def __str__(self) -> str:
        return self.name()

    def __repr__(self) -> str:
        return f"{self.family.name}({self.value}: {self.name()})"


class RecordType(EnumValue):
    """A record type."""

    __slots__ = ()
    family = RECORD_TYPE


class Rcode(EnumValue):
    """A response code."""

    __slots__ = ()
    family = RCODE


class QueryClass(EnumValue):
    """A query class."""

    __slots__ = ()
    family = QUERY_CLASS


class DnsOpcode(EnumValue):
    """An opcode."""

    __slots__ = ()
    family = OPCODE


class EdnsOptionCode(EnumValue):
    """An EDNS option code."""

    __slots__ = ()
    family = EDNS_OPTION


ENUM_TYPES: Final = (RecordType, Rcode, QueryClass, DnsOpcode, EdnsOptionCode)


def from_number(kind: type[EnumValue], number: int) -> EnumValue:
    """Return the value for a number; raises ValueError when it is out of range."""
    if not 0 <= number <= kind.family.largest:
        raise ValueError(f"{kind.family.name} number out of range: {number}")
    return kind(number)


def constants(kind: type[EnumValue]) -> dict[str, EnumValue]:
    """Return the constants of a module: each known name, its prefixed number, the aliases."""
    family = kind.family
    found: dict[str, EnumValue] = {}
    for number in range(65536):
        name = family.name_of(number)
        # a number without a name of its own prints as the prefix and the number
        if name == f"{family.prefix}{number}":
            continue
        value = kind(number)
        found[name] = value
        found[f"{family.prefix}{number}"] = value
    for alias, number in family.aliases.items():
        found[alias] = kind(number)
    return found
