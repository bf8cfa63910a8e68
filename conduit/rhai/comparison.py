"""Equality and order (chapter 36 section 6.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from conduit.rhai.errors import not_found
from conduit.rhai.operators import fallback
from conduit.rhai.text import signature
from conduit.rhai.values import (
    STANDARD_TYPES,
    Array,
    Blob,
    Byte,
    Char,
    FnPtr,
    Map,
    Range,
    Sequence,
    Timestamp,
)

if TYPE_CHECKING:
    from conduit.rhai.limits import RunState

_EPSILON: Final = 2.0**-52
_NUMERIC: Final = frozenset({int, float, Byte})
_TEXTS: Final = frozenset({str, Char})
#: Types compared by their Python values.
_PLAIN: Final = frozenset({int, str, bool, Char})


def _scale(x: float, y: float) -> float:
    return 1.0 if x * y == 0.0 else max(abs(x), abs(y))


def _ratio(x: float, y: float) -> float:
    """The difference relative to the larger; NaN when either is infinite or NaN."""
    try:
        return (x - y) / _scale(x, y)
    except ZeroDivisionError:  # both underflow to nothing
        return 0.0


def floats_equal(x: float, y: float) -> bool:
    """`==` of floats, tolerant as the reference."""
    return abs(_ratio(x, y)) <= _EPSILON


def equal(st: RunState, a: Any, b: Any) -> Any:
    """`a == b`. Raises EvalError where the language has no `==`."""
    left, right = type(a), type(b)
    if left is right:
        if left in _PLAIN:
            return a == b
        if a is None:
            return True
        if left is float:
            return floats_equal(a, b)
        return _same_type(st, a, b)
    if left in _NUMERIC and right in _NUMERIC:
        if left is Byte or right is Byte:
            raise not_found(signature(st, "==", (a, b)))
        return floats_equal(float(a), float(b))
    if left in _TEXTS and right in _TEXTS:
        return str.__eq__(a, b)
    if isinstance(a, Range) and isinstance(b, Range):
        raise not_found(signature(st, "==", (a, b)))
    return _different(st, "==", a, b, False)


def _different(st: RunState, operator: str, a: Any, b: Any, otherwise: bool) -> Any:
    if type(a) not in STANDARD_TYPES or type(b) not in STANDARD_TYPES:
        native = st.engine.find(operator, (type(a), type(b)))
        if native is not None:
            return native.call(st, a, b)
    return otherwise


def _same_type(st: RunState, a: Any, b: Any) -> Any:
    kind = type(a)
    if kind is Array:
        if len(a) != len(b):
            return False
        if len(a) > 64:
            st.charge(len(a) >> 2)
        return a is b or all(_element_equal(st, x, y) for x, y in zip(a, b, strict=True))
    if kind is Map:
        if len(a) > 64:
            st.charge(len(a) >> 2)
        return a.keys() == b.keys() and all(_element_equal(st, a[key], b[key]) for key in a)
    if kind is Blob:
        return bytearray.__eq__(a, b)
    if isinstance(a, Range):
        return a.start == b.start and a.end == b.end
    if kind is Timestamp:
        return a.seconds == b.seconds
    if kind is Byte:
        return a.value == b.value
    if kind is FnPtr or kind is Sequence:
        raise not_found(signature(st, "==", (a, b)))
    return fallback(st, "==", a, b)


def _element_equal(st: RunState, a: Any, b: Any) -> bool:
    left, right = type(a), type(b)
    if left is not right and (left is Byte or right is Byte):
        return False
    if left is not right and isinstance(a, Range) and isinstance(b, Range):
        return False
    return equal(st, a, b) is True


def unequal(st: RunState, a: Any, b: Any) -> Any:
    """`a != b`; not always the negation of `==`."""
    left, right = type(a), type(b)
    if left is right:
        if left in _PLAIN:
            return a != b
        if a is None:
            return False
        if left is float:
            return abs(_ratio(a, b)) > _EPSILON
        if left is FnPtr or left is Sequence:
            raise not_found(signature(st, "!=", (a, b)))
        if left in STANDARD_TYPES:
            return not _same_type(st, a, b)
        native = st.engine.find("!=", (left, right))
        if native is not None:
            return native.call(st, a, b)
        return not fallback(st, "==", a, b)
    if left in _NUMERIC and right in _NUMERIC:
        if left is Byte or right is Byte:
            raise not_found(signature(st, "!=", (a, b)))
        return abs(_ratio(float(a), float(b))) > _EPSILON
    if left in _TEXTS and right in _TEXTS:
        return str.__ne__(a, b)
    return _different(st, "!=", a, b, True)


def _order(st: RunState, operator: str, a: Any, b: Any) -> Any:
    """A pair of plain values to compare, or the result itself as a bool or host value."""
    left, right = type(a), type(b)
    if left is right:
        if left in _PLAIN:
            return (a, b)
        if a is None:
            return False
        if left is Timestamp:
            return (a.seconds, b.seconds)
        if left is Byte:
            return (a.value, b.value)
        return fallback(st, operator, a, b)
    if left in _TEXTS and right in _TEXTS:
        return (a, b)
    if (left in _NUMERIC and right in _NUMERIC) or (isinstance(a, Range) and isinstance(b, Range)):
        raise not_found(signature(st, operator, (a, b)))
    return _different(st, operator, a, b, False)


_FLOAT_PAIRS: Final = frozenset({(float, float), (int, float), (float, int)})


def less(st: RunState, a: Any, b: Any) -> Any:
    """`a < b`."""
    if (type(a), type(b)) in _FLOAT_PAIRS:
        return _ratio(float(b), float(a)) > _EPSILON
    pair = _order(st, "<", a, b)
    return pair[0] < pair[1] if type(pair) is tuple else pair


def less_equal(st: RunState, a: Any, b: Any) -> Any:
    """`a <= b`."""
    if (type(a), type(b)) in _FLOAT_PAIRS:
        return _ratio(float(b), float(a)) > -_EPSILON
    pair = _order(st, "<=", a, b)
    return pair[0] <= pair[1] if type(pair) is tuple else pair


def greater(st: RunState, a: Any, b: Any) -> Any:
    """`a > b`."""
    if (type(a), type(b)) in _FLOAT_PAIRS:
        return _ratio(float(a), float(b)) > _EPSILON
    pair = _order(st, ">", a, b)
    return pair[0] > pair[1] if type(pair) is tuple else pair


def greater_equal(st: RunState, a: Any, b: Any) -> Any:
    """`a >= b`."""
    if (type(a), type(b)) in _FLOAT_PAIRS:
        return _ratio(float(a), float(b)) > -_EPSILON
    pair = _order(st, ">=", a, b)
    return pair[0] >= pair[1] if type(pair) is tuple else pair
