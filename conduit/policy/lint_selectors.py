"""Lint of single rules: selectors that can never match, or that match more than they seem to.

Also gives selectors a canonical form, so that different spellings of one condition compare equal
(chapter 30 section 4).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from conduit.config import Config, Rule, Selector
from conduit.policy.lint_finding import Finding, rule_path
from conduit.policy.sampling import BUCKETS, parse_percent, threshold
from conduit.policy.selectors import fold_text, parse_cadence
from conduit.wire import (
    parse_edns_option,
    parse_opcode,
    parse_query_class,
    parse_rcode,
    parse_record_type,
)

EXACT: Final = "qname_exact"
SUFFIX: Final = "qname_suffix"

#: A selector in canonical form: its type and the values that decide, comparable by equality.
Atom = tuple[str, str | int] | tuple[str, str | int, str]

_NUMBERS: Final[Mapping[str, Callable[[str], int]]] = {
    "qtype": parse_record_type,
    "qclass": parse_query_class,
    "opcode": parse_opcode,
    "edns_option": parse_edns_option,
    "rcode": parse_rcode,
}
# a query has one of each: two selectors with different values contradict each other
_SINGLE: Final = frozenset({EXACT, "qtype", "qclass", "opcode", "rcode", "answer_source",
                            "cache_instance"})  # fmt: skip
_AFTER_LOOKUP: Final = frozenset({"rcode", "answer_source", "cache_instance"})
_NOT_ON_NO_ANSWER: Final = frozenset({"answer_source", "cache_instance"})
_MAX_OPCODE: Final = 15


def canonical(selector: Selector, rule_name: str) -> Atom | None:
    """Return the canonical form of a validated selector, None when it matches every query."""
    kind, value = selector.type, selector.value
    number = _NUMBERS.get(kind)
    if number is not None:
        return kind, number(value)
    if kind == EXACT:
        return kind, fold_text(value)
    if kind == SUFFIX:
        # every query name ends with a dot
        return None if value in ("", ".") else (kind, fold_text(value))
    if kind == "answer_source":
        return kind, value.strip().lower()
    if kind in ("every_nth_worker", "every_nth_global"):
        every = parse_cadence(value)
        return None if every == 1 else (kind, every)
    if kind == "sample_percent":
        limit = threshold(parse_percent(value))
        if limit >= BUCKETS:
            return None
        salt = f"key:{selector.key}" if selector.key else ""
        if selector.key_from:
            salt = f"key:{rule_name}" if selector.key_from == "rule_name" else "qname"
        return kind, limit, salt
    return kind, value


def implied(wanted: Atom, given: Atom) -> bool:
    """True when every query that satisfies `given` satisfies `wanted` too."""
    if wanted == given:
        return True
    if wanted[0] == SUFFIX and given[0] in (EXACT, SUFFIX):
        return str(given[1]).endswith(str(wanted[1]))
    return False


def selector_findings(config: Config) -> Iterator[Finding]:
    """Yield what is odd about the selectors of each rule, in file order."""
    caches = frozenset(cache.name for cache in config.caches)
    for index, rule in enumerate(config.rules.rules):
        dead = False
        for position, selector in enumerate(rule.selectors):
            finding = _never_on_hook(rule, index, selector, position) or _check_value(
                rule, index, selector, position, caches
            )
            if finding is not None:
                dead = dead or finding.rule_is_dead
                yield finding
        if not dead and len(rule.selectors) > 1:
            conflict = _conflict(rule)
            if conflict is not None:
                first, second = conflict
                yield Finding(
                    rule_path(index, "selectors", second),
                    f"rule '{rule.name}' never matches: {_shown(rule.selectors[second])} "
                    f"contradicts {_shown(rule.selectors[first])}; all selectors of a rule must "
                    "match (write one rule for each value)",
                    "selector-conflict",
                    rule_is_dead=True,
                )


def _never_on_hook(rule: Rule, index: int, selector: Selector, position: int) -> Finding | None:
    kind = selector.type
    reason = ""
    if rule.hook == "request" and kind in _AFTER_LOOKUP:
        reason = f"a {kind} selector never matches on hook 'request': there is no answer yet"
    elif rule.hook == "no_answer" and kind in _NOT_ON_NO_ANSWER:
        reason = f"a {kind} selector never matches on hook 'no_answer': there is no answer"
    elif kind == "opcode" and parse_opcode(selector.value) > _MAX_OPCODE:
        reason = f"opcode '{selector.value}' never matches: the header has room for 0 to 15"
    if not reason:
        return None
    return Finding(
        rule_path(index, "selectors", position, "type"),
        f"rule '{rule.name}': {reason}",
        "selector-never-matches",
        rule_is_dead=True,
    )


def _check_value(
    rule: Rule, index: int, selector: Selector, position: int, caches: frozenset[str]
) -> Finding | None:
    kind, value = selector.type, selector.value
    path = rule_path(index, "selectors", position, "value")
    start = f"rule '{rule.name}' {kind} '{value}'"
    if kind in (EXACT, SUFFIX) and not value.endswith(".") and (value or kind == EXACT):
        return Finding(
            path,
            f"{start} never matches: query names end with a dot",
            "missing-trailing-dot",
            rule_is_dead=True,
        )
    if kind == SUFFIX and value not in ("", ".") and value[0] != ".":
        return Finding(
            path,
            f"{start} also matches names such as 'x{value}': a suffix has no label boundary "
            f"(write '.{value}' for the names below it)",
            "suffix-without-dot",
        )
    if kind == "cache_instance" and value not in caches:
        return Finding(
            path,
            f"{start} never matches: it names no cache instance of this file",
            "unknown-cache",
            rule_is_dead=True,
        )
    return None


def _conflict(rule: Rule) -> tuple[int, int] | None:
    """Return the places of two selectors that no query satisfies together, or None."""
    longest: tuple[int, Atom] | None = None
    singles: dict[str, tuple[int, Atom]] = {}
    for position, selector in enumerate(rule.selectors):
        atom = canonical(selector, rule.name)
        if atom is None:
            continue
        kind = atom[0]
        if kind in _SINGLE:
            first = singles.setdefault(kind, (position, atom))
            if first[1] != atom:
                return first[0], position
        if kind in (EXACT, SUFFIX):
            if longest is None or _fits(atom, longest[1]):
                # the longest name so far implies the shorter ones: comparing with it is enough
                longest = (position, atom)
            elif not _fits(longest[1], atom):
                return longest[0], position
    return None


def _fits(longer: Atom, shorter: Atom) -> bool:
    """True when the name `shorter` is an end of the name `longer`."""
    return longer == shorter or (shorter[0] == SUFFIX and str(longer[1]).endswith(str(shorter[1])))


def _shown(selector: Selector) -> str:
    return f"{selector.type} '{selector.value}'"
