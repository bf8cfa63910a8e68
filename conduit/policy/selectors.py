"""Selectors compiled to predicates over a transaction (chapter 30 section 4).

Names compare with ASCII case folded, a deliberate difference from the reference: a blocklist that
a client evades by writing capital letters is a hole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from conduit.config import Selector
from conduit.policy.sampling import BUCKETS, global_bucket, parse_percent, salted_bucket, threshold
from conduit.policy.tables import CidrTable, Table
from conduit.wire.enums import (
    parse_edns_option,
    parse_opcode,
    parse_query_class,
    parse_rcode,
    parse_record_type,
)

if TYPE_CHECKING:
    from conduit.transaction import Transaction

Predicate = Callable[["Transaction"], bool]

_FOLD: Final = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}


def fold_text(text: str) -> str:
    """Return `text` with ASCII letters in lower case and all others as they are."""
    return text.lower() if text.isascii() else text.translate(_FOLD)


def compile_selector(
    selector: Selector, salts: Mapping[str, str], tables: Mapping[str, Table]
) -> Predicate:
    """Compile one validated selector.

    `salts` gives the fixed texts that `key_from` may name (`rule_name`, `sink_name`). Raises
    ValueError for a value that validation would have refused.
    """
    value = selector.value
    compiler = _COMPILERS.get(selector.type)
    if compiler is not None:
        return compiler(value)
    if selector.type == "sample_percent":
        return _sample_percent(value, selector.key or "", selector.key_from or "", salts)
    if selector.type == "client_cidr":
        table = tables.get(value)
        if not isinstance(table, CidrTable):
            raise ValueError(f"client_cidr '{value}' is not a type:cidr data_sources name")
        covers = table.covers
        return lambda txn: covers(txn.client_address)
    raise ValueError(f"unknown selector type '{selector.type}'")


def _qname_exact(value: str) -> Predicate:
    wanted = fold_text(value)
    return lambda txn: fold_text(txn.query.qname_text) == wanted


def _qname_suffix(value: str) -> Predicate:
    wanted = fold_text(value)
    return lambda txn: fold_text(txn.query.qname_text).endswith(wanted)


def _qtype(value: str) -> Predicate:
    wanted = parse_record_type(value)
    return lambda txn: txn.query.qtype == wanted


def _qclass(value: str) -> Predicate:
    wanted = parse_query_class(value)
    return lambda txn: txn.query.qclass == wanted


def _opcode(value: str) -> Predicate:
    wanted = parse_opcode(value)
    return lambda txn: txn.query.opcode == wanted


def _edns_option(value: str) -> Predicate:
    wanted = parse_edns_option(value)
    return lambda txn: wanted in txn.query.option_codes


def _rcode(value: str) -> Predicate:
    wanted = parse_rcode(value)
    return lambda txn: txn.rcode == wanted


def _tag(value: str) -> Predicate:
    return lambda txn: txn.has_tag(value)


def _answer_source(value: str) -> Predicate:
    wanted = value.strip().lower()
    if wanted not in ("cache", "forward"):
        raise ValueError(f"answer_source '{value}' must be cache or forward")
    return lambda txn: txn.answer_source == wanted


def _cache_instance(value: str) -> Predicate:
    return lambda txn: txn.cache_instance == value


def _every_nth_worker(value: str) -> Predicate:
    every = parse_cadence(value)
    return lambda txn: txn.worker_index % every == 0


def _every_nth_global(value: str) -> Predicate:
    every = parse_cadence(value)
    return lambda txn: txn.id % every == 0


def parse_cadence(text: str) -> int:
    """Return the N of an `every_nth_*` selector; raises ValueError unless it is at least 1."""
    digits = text.strip().removeprefix("+")
    if not (digits.isascii() and digits.isdigit()) or int(digits) < 1:
        raise ValueError(f"'{text}' is not an integer of at least 1")
    return int(digits)


def _sample_percent(value: str, key: str, key_from: str, salts: Mapping[str, str]) -> Predicate:
    limit = threshold(parse_percent(value))
    if limit >= BUCKETS and key_from != "qname":
        return lambda txn: True
    if limit <= 0:
        return lambda txn: False
    if key_from == "qname":
        return lambda txn: salted_bucket(txn.id, txn.query.qname_text.encode("utf-8")) < limit
    if key_from:
        if key_from not in salts:
            raise ValueError(f"sample_percent key_from '{key_from}' is not available here")
        key = salts[key_from]
    if key:
        salt = key.encode("utf-8")
        return lambda txn: salted_bucket(txn.id, salt) < limit
    return lambda txn: global_bucket(txn.id) < limit


_COMPILERS: Final[Mapping[str, Callable[[str], Predicate]]] = {
    "qname_exact": _qname_exact,
    "qname_suffix": _qname_suffix,
    "qtype": _qtype,
    "qclass": _qclass,
    "opcode": _opcode,
    "edns_option": _edns_option,
    "rcode": _rcode,
    "tag": _tag,
    "answer_source": _answer_source,
    "cache_instance": _cache_instance,
    "every_nth_worker": _every_nth_worker,
    "every_nth_global": _every_nth_global,
}
