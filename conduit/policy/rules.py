"""Rules compiled to one pass a hook: the first matching rule in file order runs its actions.

Name rules go through dictionaries, so that ten thousand of them cost about as much as one: an
exact name is one look-up, a suffix that starts with a dot one look-up a label of the query name,
any other suffix one look-up for each distinct length (chapter 30 section 3.1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from conduit.config import Rule, Selector
from conduit.policy.actions import DROP_NOW, GO_ON, Step
from conduit.policy.outcome import CONTINUE, DROP, RETRY
from conduit.policy.selectors import Predicate, compile_selector, fold_text
from conduit.policy.tables import Table

if TYPE_CHECKING:
    from conduit.transaction import Transaction


class CompiledRule:
    """One rule: its place in the hook's order, what is left to test, and its steps."""

    __slots__ = ("index", "name", "position", "predicates", "steps")

    def __init__(
        self,
        index: int,
        position: int,
        name: str,
        predicates: Sequence[Predicate],
        steps: Sequence[Step],
    ) -> None:
        self.index = index
        #: Place of the rule in the whole list, from 0.
        self.position = position
        self.name = name
        self.predicates = tuple(predicates)
        self.steps = tuple(steps)

    def run(self, txn: Transaction) -> int:
        """Run the actions in list order and return the outcome of the pass."""
        txn.soft_retry = False
        txn.hook_scratch = None
        for step in self.steps:
            hard = step(txn)
            if hard != GO_ON:
                return DROP if hard == DROP_NOW or txn.soft_drop else RETRY
        if txn.soft_drop:
            return DROP
        return RETRY if txn.soft_retry else CONTINUE


class RuleSet:
    """The rules of one hook with their name indexes; calling it is the rule pass."""

    __slots__ = ("_by_exact", "_by_length", "_by_suffix", "_general", "_lengths", "rules")

    def __init__(self, rules: Sequence[tuple[CompiledRule, Selector | None]]) -> None:
        """Each rule comes with the name selector it is indexed by, or None."""
        self.rules = [rule for rule, _ in rules]
        self._by_exact: dict[str, list[CompiledRule]] = {}
        self._by_suffix: dict[str, list[CompiledRule]] = {}
        self._by_length: dict[int, dict[str, list[CompiledRule]]] = {}
        self._general: list[CompiledRule] = []
        for rule, selector in rules:
            _add(self._list_for(selector), rule)
        self._lengths = sorted(self._by_length)

    def _list_for(self, selector: Selector | None) -> list[CompiledRule]:
        if selector is None:
            return self._general
        text = fold_text(selector.value)
        if selector.type == "qname_exact":
            return self._by_exact.setdefault(text, [])
        if text.startswith("."):
            return self._by_suffix.setdefault(text, [])
        return self._by_length.setdefault(len(text), {}).setdefault(text, [])

    def __call__(self, txn: Transaction) -> int:
        """Run the first matching rule; returns CONTINUE, DROP or RETRY."""
        rule = self.find(txn)
        return CONTINUE if rule is None else rule.run(txn)

    def find(self, txn: Transaction) -> CompiledRule | None:
        """Return the first rule in file order whose selectors all match, or None."""
        best: CompiledRule | None = None
        if self._by_exact or self._by_suffix or self._lengths:
            best = self._find_by_name(txn)
        limit = best.index if best is not None else len(self.rules)
        for rule in self._general:
            if rule.index > limit:
                break
            if _matches(rule, txn):
                return rule
        return best

    def _find_by_name(self, txn: Transaction) -> CompiledRule | None:
        text = fold_text(txn.query.qname_text)
        best: CompiledRule | None = None
        found = self._by_exact.get(text)
        if found is not None:
            best = _first(found, txn, best)
        by_suffix = self._by_suffix
        if by_suffix:
            dot = text.find(".")
            while dot >= 0:
                found = by_suffix.get(text[dot:])
                if found is not None:
                    best = _first(found, txn, best)
                dot = text.find(".", dot + 1)
        size = len(text)
        for length in self._lengths:
            if length > size:
                break
            found = self._by_length[length].get(text[size - length :])
            if found is not None:
                best = _first(found, txn, best)
        return best


def _add(rules: list[CompiledRule], rule: CompiledRule) -> None:
    # behind a rule without further tests nothing of the same name can ever match
    if not rules or rules[-1].predicates:
        rules.append(rule)


def _matches(rule: CompiledRule, txn: Transaction) -> bool:
    for predicate in rule.predicates:  # noqa: SIM110 - all() with a generator costs twice as much
        if not predicate(txn):
            return False
    return True


def _first(
    rules: list[CompiledRule], txn: Transaction, best: CompiledRule | None
) -> CompiledRule | None:
    """Return the first matching rule of `rules` if it comes before `best`, else `best`."""
    for rule in rules:
        if best is not None and rule.index > best.index:
            return best
        if _matches(rule, txn):
            return rule
    return best


def name_selector(rule: Rule) -> Selector | None:
    """Return the selector a rule is indexed by: the first exact name, else the first suffix."""
    for kind in ("qname_exact", "qname_suffix"):
        for selector in rule.selectors:
            # the empty suffix matches every name: it is no index
            if selector.type == kind and (selector.value or kind == "qname_exact"):
                return selector
    return None


def compile_hook(
    rules: Sequence[Rule],
    hook: str,
    tables: Mapping[str, Table],
    steps_of: Mapping[str, Sequence[Step]],
) -> RuleSet | None:
    """Compile the rules of one hook; None when it has none.

    `steps_of` gives the compiled steps of each rule by name. Raises ValueError, prefixed with the
    rule, for what validation would have refused.
    """
    compiled: list[tuple[CompiledRule, Selector | None]] = []
    for position, rule in enumerate(rules):
        if rule.hook != hook:
            continue
        indexed = name_selector(rule)
        try:
            predicates = [
                compile_selector(selector, {"rule_name": rule.name}, tables)
                for selector in rule.selectors
                if selector is not indexed
            ]
        except ValueError as error:
            raise ValueError(f"rule '{rule.name}': {error}") from error
        compiled.append(
            (
                CompiledRule(len(compiled), position, rule.name, predicates, steps_of[rule.name]),
                indexed,
            )
        )
    return RuleSet(compiled) if compiled else None
