"""What `op=` does with the old value and the right side (chapter 36 section 6.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from conduit.rhai.errors import EvalError
from conduit.rhai.values import (
    CONTAINERS,
    STANDARD_TYPES,
    Array,
    Blob,
    Char,
    Map,
)

if TYPE_CHECKING:
    from conduit.rhai.limits import RunState

from conduit.rhai.operators import BINARY, Operator, add, encoded, fallback

_TEXTS: Final = frozenset({str, Char})


def append(st: RunState, a: Any, b: Any) -> Any:
    """`a += b`: in place for a container, which must be private to its holder."""
    left, right = type(a), type(b)
    if left is Array:
        if right is Array:
            for item in b:
                if type(item) in CONTAINERS:
                    item.frozen = True
            a.extend(b)
            a.nested += b.nested
            return st.sized(a)
        a.append(b)
        st.stored(a, b)
        return a
    if left is Map and right is Map:
        for item in b.values():
            if type(item) in CONTAINERS:
                item.frozen = True
        a.update(b)
        a.nested += b.nested
        return st.sized(a)
    if left is Blob:
        return append_bytes(st, a, b)
    if left is Char and right is str and not b:
        return a
    return add(st, a, b)


def append_bytes(st: RunState, a: Blob, b: Any) -> Any:
    """`a += b` of a blob."""
    right = type(b)
    if right is int:
        a.append(b & 0xFF)
    elif right in _TEXTS:
        a.extend(encoded(b))
    elif right is Blob:
        a.extend(bytes(b))
    else:
        return fallback(st, "+", a, b)
    return st.sized(a)


def _in_assignment(operator: Operator, symbol: str) -> Operator:
    """The operator as `op=` runs it: errors are reported at the operator."""

    def assign(st: RunState, a: Any, b: Any) -> Any:
        if type(a) not in STANDARD_TYPES:
            native = st.engine.find(f"{symbol}=", (type(a), type(b)))
            if native is not None:
                result = native.call(st, a, b)
                return result if type(result) is type(a) else a
        try:
            return operator(st, a, b)
        except EvalError as error:
            error.positionless = False
            raise

    return assign


#: By base operator: what `op=` does with old value and right side.
ASSIGNING: Final[dict[str, Operator]] = {
    symbol: _in_assignment(append if symbol == "+" else operator, symbol)
    for symbol, operator in BINARY.items()
    if not symbol.startswith("..")
}
