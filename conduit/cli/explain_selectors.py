"""Evaluates the selectors of one rule one by one, with what the query had in place of each.

The answers come from the compiled predicates that the daemon uses; only the wording is here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from conduit.cli.explain_record import RuleFacts, SelectorFacts
from conduit.config import Rule, Selector
from conduit.policy.selectors import compile_selector
from conduit.policy.tables import Table
from conduit.transaction import Transaction
from conduit.wire import class_name, edns_option_name, opcode_name, rcode_name, record_type_name


def examine(rule: Rule, index: int, txn: Transaction, tables: Mapping[str, Table]) -> RuleFacts:
    """Return how each selector of `rule` stands to `txn` now; `index` is the rule's place."""
    return RuleFacts(
        rule.name,
        index,
        tuple(
            SelectorFacts(
                selector.type,
                _wanted(selector),
                _actual(selector, txn),
                compile_selector(selector, {"rule_name": rule.name}, tables)(txn),
            )
            for selector in rule.selectors
        ),
    )


def rcode_text(rcode: int | None) -> str | None:
    """Return the name of the transaction's rcode, None while it has none."""
    return None if rcode is None else rcode_name(rcode)


def tags_of(txn: Transaction) -> dict[str, str | bool]:
    """Return all tags; a key that is both a flag and a string shows its string."""
    return {**(txn.flags or {}), **(txn.strings or {})}


def _wanted(selector: Selector) -> str:
    if selector.key:
        return f"{selector.value} (key {selector.key})"
    if selector.key_from:
        return f"{selector.value} (key_from {selector.key_from})"
    return selector.value


def _actual(selector: Selector, txn: Transaction) -> str:
    return _ACTUAL[selector.type](txn)


def _options(txn: Transaction) -> str:
    codes = txn.query.option_codes
    return ", ".join(edns_option_name(code) for code in codes) if codes else "no options"


def _tags(txn: Transaction) -> str:
    present = sorted(key for key in tags_of(txn) if txn.has_tag(key))
    return ", ".join(present) if present else "no tags"


def _qname(txn: Transaction) -> str:
    return txn.query.qname_text


_ACTUAL: Final[Mapping[str, Callable[[Transaction], str]]] = {
    "qname_exact": _qname,
    "qname_suffix": _qname,
    "qtype": lambda txn: record_type_name(txn.query.qtype),
    "qclass": lambda txn: class_name(txn.query.qclass),
    "opcode": lambda txn: opcode_name(txn.query.opcode),
    "edns_option": _options,
    "rcode": lambda txn: rcode_text(txn.rcode) or "no rcode yet",
    "tag": _tags,
    "answer_source": lambda txn: txn.answer_source or "no answer",
    "cache_instance": lambda txn: txn.cache_instance or "no cache",
    "client_cidr": lambda txn: txn.client_address,
    "sample_percent": lambda txn: f"id {txn.id}",
    "every_nth_worker": lambda txn: f"query {txn.worker_index} of the worker",
    "every_nth_global": lambda txn: f"query {txn.id}",
}
