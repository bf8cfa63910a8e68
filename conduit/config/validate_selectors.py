"""Validation of selectors, shared by rules, event sink filters and trace activation.

Texts: chapter 30 sections 4 and 7.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from conduit.config.diagnostics import KeyPath
from conduit.config.model_policy import Selector
from conduit.config.report import Report
from conduit.wire.enums import (
    parse_edns_option,
    parse_opcode,
    parse_query_class,
    parse_rcode,
    parse_record_type,
)

_ENUMS: Final[dict[str, Callable[[str], int]]] = {
    "qtype": parse_record_type,
    "qclass": parse_query_class,
    "opcode": parse_opcode,
    "edns_option": parse_edns_option,
    "rcode": parse_rcode,
}
_CADENCES: Final = frozenset({"every_nth_worker", "every_nth_global"})
RULES_ONLY: Final = _CADENCES | {"client_cidr"}
SELECTOR_TYPES: Final = frozenset(_ENUMS) | RULES_ONLY | {
    "qname_exact",
    "qname_suffix",
    "tag",
    "answer_source",
    "cache_instance",
    "sample_percent",
}  # fmt: skip

# Rust's number syntax, which is narrower than Python's
_FLOAT: Final = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_INTEGER: Final = re.compile(r"\+?0*([0-9]{1,20})")
_U64_MAX: Final = 2**64 - 1


@dataclass(frozen=True, slots=True)
class SelectorPlace:
    """Where selectors stand: what messages begin with, and what is allowed there.

    `key_sources` are the accepted `key_from` values. `cidr_names` is None outside rules, where
    client and cadence selectors are refused.
    """

    prefix: str
    key_sources: frozenset[str]
    cidr_names: frozenset[str] | None = None


def validate_selector(
    selector: Selector, path: KeyPath, place: SelectorPlace, report: Report
) -> None:
    """Report what is wrong with one selector."""
    kind = selector.type
    prefix = place.prefix
    type_path = (*path, "type")
    value_path = (*path, "value")
    if kind not in SELECTOR_TYPES:
        report.error(
            type_path,
            f"{prefix}: unknown selector type '{kind}' "
            "(there is no negation, no value list and no pattern selector)",
        )
        return
    if kind in RULES_ONLY and place.cidr_names is None:
        report.error(
            type_path, f"{prefix}: selector type '{kind}' is only valid in rules selectors"
        )
    elif kind in _ENUMS:
        try:
            _ENUMS[kind](selector.value)
        except ValueError as error:
            report.error(value_path, f"{prefix}: {error}")
    elif kind == "answer_source":
        if selector.value.strip().lower() not in ("cache", "forward"):
            report.error(
                value_path,
                f"{prefix}: answer_source '{selector.value}' must be cache or forward",
            )
    elif kind == "cache_instance":
        if not selector.value.strip():
            report.error(value_path, f"{prefix}: cache_instance selector value must be non-empty")
    elif kind == "sample_percent":
        if not is_percent(selector.value):
            report.error(
                value_path, f"{prefix} selector sample_percent must be a float in [0, 100]"
            )
    elif kind in _CADENCES:
        if not _is_positive_integer(selector.value):
            report.error(value_path, f"{prefix} selector '{kind}' requires integer value >= 1")
    elif kind == "client_cidr" and selector.value not in (place.cidr_names or ()):
        report.error(
            value_path,
            f"{prefix} selector client_cidr '{selector.value}' is not a type:cidr data_sources "
            "name",
        )
    _check_sampling_key(selector, path, place, report)


def _check_sampling_key(
    selector: Selector, path: KeyPath, place: SelectorPlace, report: Report
) -> None:
    if not selector.key and not selector.key_from:
        return
    prefix = place.prefix
    if selector.type != "sample_percent":
        report.error(
            (*path, "key" if selector.key else "key_from"),
            f"{prefix}: selector type '{selector.type}' does not support key or key_from",
        )
        return
    if selector.key and selector.key_from:
        report.error(
            (*path, "key_from"), f"{prefix}: sample key and key_from are mutually exclusive"
        )
    if selector.key_from:
        check_key_source(
            selector.key_from,
            (*path, "key_from"),
            f"{prefix}: sample_percent key_from",
            place.key_sources,
            report,
        )


def check_key_source(
    value: str, path: KeyPath, what: str, allowed: frozenset[str], report: Report
) -> None:
    """Report a sampling key source that is unknown or not available at this place."""
    if value in allowed:
        return
    if value == "sink_name":
        report.error(path, f"{what} 'sink_name' is only valid on event sink filters")
    elif value == "rule_name":
        report.error(path, f"{what} 'rule_name' is only valid in rules selectors")
    else:
        report.error(path, f"{what} '{value}' must be qname, rule_name, or sink_name")


def is_percent(text: str) -> bool:
    """True for a decimal number from 0 to 100, white space around it allowed."""
    trimmed = text.strip()
    return _FLOAT.fullmatch(trimmed) is not None and 0 <= float(trimmed) <= 100


def in_percent_range(value: float) -> bool:
    """True for a number from 0 to 100; false for NaN."""
    return not math.isnan(value) and 0 <= value <= 100


def _is_positive_integer(text: str) -> bool:
    match = _INTEGER.fullmatch(text)
    return match is not None and 1 <= int(match.group(1)) <= _U64_MAX
