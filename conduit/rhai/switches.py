"""Finds the case of a `switch` that a value selects (chapter 36 section 8.2)."""

from __future__ import annotations

from typing import Any

from conduit.rhai.nodes import (
    ArrayLiteral,
    Binary,
    Call,
    Case,
    Expression,
    Literal,
    MapLiteral,
    is_range_literal,
)
from conduit.rhai.values import Array, Blob, Char, FnPtr, InclusiveRange, Map, Range


class SwitchTable:
    """Exact cases by value and, after them, the ranges."""

    __slots__ = ("_default", "_exact", "_ranges")

    def __init__(self, cases: list[Case]) -> None:
        self._exact: dict[Any, tuple[int, ...]] = {}
        self._ranges: list[tuple[Range, int]] = []
        self._default = -1
        for i, case in enumerate(cases):
            if not case.values:
                self._default = i
            for value in case.values:
                if is_range_literal(value):
                    assert isinstance(value, Binary)
                    kind = Range if value.operator == ".." else InclusiveRange
                    start, end = value.left, value.right
                    assert isinstance(start, Literal)
                    assert isinstance(end, Literal)
                    self._ranges.append((kind(start.value, end.value), i))
                else:
                    key = literal_key(value)
                    self._exact[key] = (*self._exact.get(key, ()), i)

    def candidates(self, value: Any) -> tuple[int, ...]:
        """The cases that fit, `_` aside."""
        found = self._exact.get(value_key(value), ())
        if self._ranges:
            found = (*found, *[i for covered, i in self._ranges if _covers(covered, value)])
        return found

    def first(self, value: Any) -> int:
        """The case to run: the first that fits, else `_`, else -1."""
        found = self._exact.get(value_key(value))
        if found is not None:
            return found[0]
        for covered, i in self._ranges:
            if _covers(covered, value):
                return i
        return self._default


def _covers(covered: Range, value: Any) -> bool:
    kind = type(value)
    if kind is int or kind is float:
        if covered.inclusive:
            return bool(covered.start <= value <= covered.end)
        return bool(covered.start <= value < covered.end)
    return kind is type(covered) and value.start == covered.start and value.end == covered.end


def value_key(value: Any) -> Any:
    """A key that is equal for values that a case cannot tell apart; None for the others."""
    kind = type(value)
    if kind is int or kind is str or kind is bool or kind is Char:
        return (kind, value)
    if kind is float:
        return (kind, repr(value)) if value == value else None
    if value is None:
        return (kind, None)
    if kind is Array:
        return _whole(kind, [value_key(item) for item in value])
    if kind is Map:
        keys = [value_key(item) for _, item in value.ordered()]
        whole = _whole(kind, keys)
        return None if whole is None else (*whole, tuple(sorted(value)))
    if kind is Blob:
        return (kind, bytes(value))
    if kind is FnPtr and value.code is None:
        return _whole(kind, [(str, value.name), *map(value_key, value.curried)])
    return None


def _whole(kind: type, keys: list[Any]) -> tuple[Any, ...] | None:
    return None if None in keys else (kind, tuple(keys))


def literal_key(node: Expression) -> Any:
    """The key of the value that a case writes out."""
    if isinstance(node, Literal):
        return value_key(node.value)
    if isinstance(node, ArrayLiteral):
        return _whole(Array, [literal_key(item) for item in node.items])
    if isinstance(node, MapLiteral):
        items = sorted(node.items, key=lambda item: item[0])
        whole = _whole(Map, [literal_key(item) for _, item in items])
        return None if whole is None else (*whole, tuple(key for key, _ in items))
    assert isinstance(node, Call)
    pointed = node.arguments[0]
    assert isinstance(pointed, Literal)
    return _whole(FnPtr, [(str, pointed.value)])
