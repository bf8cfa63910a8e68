"""Lint of rule order: rules that an earlier rule of their hook keeps from ever being reached.

The first matching rule ends the walk (chapter 30 section 3.1), so a rule is dead when one before it
matches every query that it matches: that is, when each selector of the earlier rule follows from
the later rule's own selectors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from conduit.config import Rule
from conduit.policy.lint_finding import Finding, rule_path
from conduit.policy.lint_selectors import EXACT, SUFFIX, Atom, canonical, implied

#: Comparisons of two rules a hook; beyond it the rest of the hook is not compared.
MAX_COMPARISONS: Final = 2_000_000


def unreachable_rules(rules: Sequence[Rule], dead: Collection[int]) -> Iterator[Finding]:
    """Yield one finding for each covered rule; `dead` holds the places of rules to leave out."""
    hooks: dict[str, list[tuple[int, Rule, frozenset[Atom]]]] = {}
    for index, rule in enumerate(rules):
        if index not in dead:
            canonicals = (canonical(selector, rule.name) for selector in rule.selectors)
            selectors = frozenset(atom for atom in canonicals if atom is not None)
            hooks.setdefault(rule.hook, []).append((index, rule, selectors))
    for members in hooks.values():
        coverage = _Coverage(Counter(atom for _, _, atoms in members for atom in atoms))
        for index, rule, atoms in members:
            earlier = coverage.cover_of(atoms)
            if earlier is None:
                coverage.add(index, atoms)
            else:
                yield _finding(index, rule, rules[earlier])


def _finding(index: int, rule: Rule, earlier: Rule) -> Finding:
    queries = "every query" if not earlier.selectors else "every query that it would match"
    return Finding(
        rule_path(index),
        f"rule '{rule.name}' is never reached: rule '{earlier.name}' before it matches "
        f"{queries} of hook '{rule.hook}', and the first match ends the walk",
        "rule-unreachable",
        rule_is_dead=True,
    )


class _Coverage:
    """The rules of one hook so far, each found by the rarest of its selectors."""

    __slots__ = ("_by_atom", "_comparisons", "_counts", "_matches_all", "_suffix_lengths")

    def __init__(self, counts: Counter[Atom]) -> None:
        self._counts = counts
        self._by_atom: dict[Atom, list[tuple[int, tuple[Atom, ...]]]] = {}
        self._suffix_lengths: set[int] = set()
        self._matches_all: int | None = None
        self._comparisons = 0

    def add(self, index: int, atoms: frozenset[Atom]) -> None:
        """Add a rule that no earlier one covers."""
        if not atoms:
            self._matches_all = index
            return
        key = min(atoms, key=lambda atom: self._counts[atom])
        if key[0] == SUFFIX:
            self._suffix_lengths.add(len(str(key[1])))
        rest = tuple(atom for atom in atoms if atom != key)
        self._by_atom.setdefault(key, []).append((index, rest))

    def cover_of(self, atoms: frozenset[Atom]) -> int | None:
        """Return the place of the first rule that covers a rule with these selectors, or None."""
        best = self._matches_all
        for key in self._keys(atoms):
            for index, rest in self._by_atom.get(key, ()):
                if best is not None and index > best:
                    break
                self._comparisons += 1
                if self._comparisons > MAX_COMPARISONS:
                    return best
                if all(_follows(wanted, atoms) for wanted in rest):
                    best = index
                    break
        return best

    def _keys(self, atoms: frozenset[Atom]) -> Iterator[Atom]:
        for atom in atoms:
            yield atom
            if atom[0] in (EXACT, SUFFIX):
                name = str(atom[1])
                size = len(name)
                for length in self._suffix_lengths:
                    if length < size or (length == size and atom[0] == EXACT):
                        yield SUFFIX, name[size - length :]


def _follows(wanted: Atom, atoms: frozenset[Atom]) -> bool:
    return wanted in atoms or (
        wanted[0] == SUFFIX and any(implied(wanted, given) for given in atoms)
    )
