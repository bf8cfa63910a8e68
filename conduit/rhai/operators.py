"""The arithmetic and bit operators (chapter 36 sections 6.2 to 6.5), one function per operator.

Compiled scripts do the common cases of two integers in line and call these for everything else.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from conduit.rhai.errors import EvalError, not_found
from conduit.rhai.text import display, signature
from conduit.rhai.values import (
    CONTAINERS,
    I64_MAX,
    I64_MIN,
    STANDARD_TYPES,
    Array,
    Blob,
    Byte,
    Char,
    InclusiveRange,
    Map,
    Range,
    Timestamp,
)

if TYPE_CHECKING:
    from conduit.rhai.limits import RunState

Operator = Callable[["RunState", Any, Any], Any]
_NUMBERS: Final = frozenset({int, float})
_TEXTS: Final = frozenset({str, Char})


def operator_error(message: str) -> EvalError:
    """An arithmetic error of a built-in operator, which keeps no position."""
    return EvalError("ErrorArithmetic", message, positionless=True)


def fallback(st: RunState, operator: str, a: Any, b: Any) -> Any:
    """What a host registered for its types. Raises EvalError ``ErrorFunctionNotFound``."""
    if type(a) not in STANDARD_TYPES or type(b) not in STANDARD_TYPES:
        native = st.engine.find(operator, (type(a), type(b)))
        if native is not None:
            return native.call(st, a, b)
    raise not_found(signature(st, operator, (a, b)))


def _bounded(st: RunState, make: Callable[[], Any]) -> Any:
    """A result whose size is checked; a size error of an operator has no position."""
    try:
        return st.sized(make())
    except EvalError as error:
        error.positionless = True
        raise


def joined_text(st: RunState, a: str, b: str) -> str:
    """The concatenation, within the limit on strings."""
    result = a + b
    if len(result) > 255 or st.limits.max_string_size < 1024:
        try:
            return st.sized_string(result)
        except EvalError as error:
            error.positionless = True
            raise
    return result


def joined_arrays(st: RunState, a: Array, b: Array) -> Array:
    """A new array of the items of both."""
    for side in (a, b):
        for item in side:
            if type(item) in CONTAINERS:
                item.frozen = True
    joined = Array([*a, *b])
    joined.nested = a.nested + b.nested
    return joined


def merged_maps(a: Map, b: Map) -> Map:
    """A new map of the entries of both; those of `b` win."""
    for side in (a, b):
        for item in side.values():
            if type(item) in CONTAINERS:
                item.frozen = True
    merged = Map(a)
    merged.update(b)
    merged.nested = a.nested + b.nested
    return merged


def lossy(data: bytes | bytearray) -> str:
    """The bytes as UTF-8, invalid ones replaced."""
    return data.decode("utf-8", "replace")


def encoded(text: str) -> bytes:
    """The text as UTF-8."""
    return text.encode("utf-8", "replace")


def add(st: RunState, a: Any, b: Any) -> Any:
    """`a + b`."""
    left, right = type(a), type(b)
    if left is int and right is int:
        result = a + b
        if I64_MIN <= result <= I64_MAX:
            return result
        raise operator_error(f"Addition overflow: {a} + {b}")
    if left is str:
        if right in _TEXTS:
            return joined_text(st, a, b)
        if right is Blob:
            return joined_text(st, a, lossy(b))
        return joined_text(st, a, display(st, b))
    if right is str:
        if left is Blob:
            return joined_text(st, lossy(a), b)
        return joined_text(st, display(st, a), b)
    if left in _NUMBERS and right in _NUMBERS:
        return float(a) + float(b)
    if left is Char and right is Char:
        return str.__add__(a, b)
    if left is Array and right is Array:
        return _bounded(st, lambda: joined_arrays(st, a, b))
    if left is Map and right is Map:
        return _bounded(st, lambda: merged_maps(a, b))
    if left is Blob and right is Blob:
        return _bounded(st, lambda: Blob(a + b))
    if left is Blob and right is Char:
        return _bounded(st, lambda: Blob(a + encoded(b)))
    if left is Timestamp and right in _NUMBERS:
        return Timestamp(a.seconds + b)
    if left is Byte and right is Byte:
        return _byte(a.value + b.value, "Addition overflow", a, "+", b)
    return fallback(st, "+", a, b)


def _byte(value: int, what: str, a: Byte, operator: str, b: Byte) -> Byte:
    if 0 <= value <= 255:
        return Byte(value)
    raise operator_error(f"{what}: {a.value} {operator} {b.value}")


def subtract(st: RunState, a: Any, b: Any) -> Any:
    """`a - b`."""
    left, right = type(a), type(b)
    if left is int and right is int:
        result = a - b
        if I64_MIN <= result <= I64_MAX:
            return result
        raise operator_error(f"Subtraction overflow: {a} - {b}")
    if left in _NUMBERS and right in _NUMBERS:
        return float(a) - float(b)
    if left is str and right in _TEXTS:
        return without(a, b)
    if left is Timestamp:
        if right is Timestamp:
            return a.seconds - b.seconds
        if right in _NUMBERS:
            return Timestamp(a.seconds - b)
    if left is Byte and right is Byte:
        return _byte(a.value - b.value, "Subtraction overflow", a, "-", b)
    return fallback(st, "-", a, b)


def without(a: str, b: str) -> str:
    """`a` without all occurrences of `b`; an empty `a` gives `b`, as the reference does."""
    if not a:
        return str(b)
    return a.replace(b, "") if b else a


def multiply(st: RunState, a: Any, b: Any) -> Any:
    """`a * b`."""
    left, right = type(a), type(b)
    if left is int and right is int:
        result = a * b
        if I64_MIN <= result <= I64_MAX:
            return result
        raise operator_error(f"Multiplication overflow: {a} * {b}")
    if left in _NUMBERS and right in _NUMBERS:
        return float(a) * float(b)
    if left is Byte and right is Byte:
        return _byte(a.value * b.value, "Multiplication overflow", a, "*", b)
    return fallback(st, "*", a, b)


def divide(st: RunState, a: Any, b: Any) -> Any:
    """`a / b`; integers truncate toward zero."""
    left, right = type(a), type(b)
    if left is int and right is int:
        if b == 0:
            raise operator_error(f"Division by zero: {a} / {b}")
        if b == -1 and a == I64_MIN:
            raise operator_error(f"Division overflow: {a} / {b}")
        quotient = abs(a) // abs(b)
        return quotient if (a < 0) == (b < 0) else -quotient
    if left in _NUMBERS and right in _NUMBERS:
        return float_divide(float(a), float(b))
    if left is Byte and right is Byte and b.value:
        return Byte(a.value // b.value)
    if left is Byte and right is Byte:
        raise operator_error(f"Division by zero: {a.value} / {b.value}")
    return fallback(st, "/", a, b)


def float_divide(a: float, b: float) -> float:
    """Division as IEEE 754 has it."""
    if b:
        return a / b
    if a == 0 or a != a:
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def remainder(st: RunState, a: Any, b: Any) -> Any:
    """`a % b`, with the sign of `a`."""
    left, right = type(a), type(b)
    if left is int and right is int:
        if b == 0 or (b == -1 and a == I64_MIN):
            raise operator_error(f"Modulo division by zero or overflow: {a} % {b}")
        rest: int = abs(a) % abs(b)
        return -rest if a < 0 else rest
    if left in _NUMBERS and right in _NUMBERS:
        a, b = float(a), float(b)
        if b == 0 or math.isinf(a):
            return math.nan
        return math.fmod(a, b)
    if left is Byte and right is Byte and b.value:
        return Byte(a.value % b.value)
    if left is Byte and right is Byte:
        raise operator_error(f"Modulo division by zero or overflow: {a.value} % {b.value}")
    return fallback(st, "%", a, b)


def power(st: RunState, a: Any, b: Any) -> Any:
    """`a ** b`."""
    left, right = type(a), type(b)
    if left is int and right is int:
        if b < 0:
            raise operator_error(f"Integer raised to a negative power: {a} ** {b}")
        if b <= 0xFFFFFFFF:
            if -2 < a < 2:
                return 1 if b == 0 else a if b & 1 else a * a
            # a bound before the power: nothing larger than 63 can fit
            if b <= 63:
                result = a**b
                if I64_MIN <= result <= I64_MAX:
                    return result
        raise operator_error(f"Exponential overflow: {a} ** {b}")
    if left in _NUMBERS and right in _NUMBERS:
        return float_power(float(a), float(b))
    return fallback(st, "**", a, b)


def float_power(a: float, b: float) -> float:
    """`pow` as IEEE 754 has it."""
    try:
        return math.pow(a, b)
    except OverflowError:
        negative = a < 0 and b % 2 == 1
        return -math.inf if negative else math.inf
    except ValueError:
        if a == 0:
            negative = math.copysign(1.0, a) < 0 and b % 2 == 1
            return -math.inf if negative else math.inf
        return math.nan


def shift_left(st: RunState, a: Any, b: Any) -> Any:
    """`a << b`; bits shifted out are lost."""
    if type(a) is int and type(b) is int:
        return _shifted(a, b)
    return fallback(st, "<<", a, b)


def shift_right(st: RunState, a: Any, b: Any) -> Any:
    """`a >> b`, arithmetic."""
    if type(a) is int and type(b) is int:
        return _shifted(a, -b)
    return fallback(st, ">>", a, b)


def _shifted(a: int, left: int) -> int:
    if left <= -64:
        return -1 if a < 0 else 0
    if left < 0:
        return a >> -left
    if left >= 64:
        return 0
    value = (a << left) & 0xFFFFFFFFFFFFFFFF
    return value - (1 << 64) if value > I64_MAX else value


def bit_and(st: RunState, a: Any, b: Any) -> Any:
    """`a & b`."""
    if type(a) is type(b) and type(a) in (int, bool):
        return a & b
    return fallback(st, "&", a, b)


def bit_or(st: RunState, a: Any, b: Any) -> Any:
    """`a | b`."""
    if type(a) is type(b) and type(a) in (int, bool):
        return a | b
    return fallback(st, "|", a, b)


def bit_xor(st: RunState, a: Any, b: Any) -> Any:
    """`a ^ b`."""
    if type(a) is type(b) and type(a) in (int, bool):
        return a ^ b
    return fallback(st, "^", a, b)


def exclusive_range(st: RunState, a: Any, b: Any) -> Any:
    """`a..b`."""
    if type(a) is int and type(b) is int:
        return Range(a, b)
    return fallback(st, "..", a, b)


def inclusive_range(st: RunState, a: Any, b: Any) -> Any:
    """`a..=b`."""
    if type(a) is int and type(b) is int:
        return InclusiveRange(a, b)
    return fallback(st, "..=", a, b)


def negate(st: RunState, a: Any) -> Any:
    """`-a`."""
    if type(a) is int:
        if a == I64_MIN:
            raise EvalError("ErrorArithmetic", f"Negation overflow: -{a}")
        return -a
    if type(a) is float:
        return -a
    return _unary(st, "-", a)


def plus(st: RunState, a: Any) -> Any:
    """`+a`."""
    return a if type(a) in _NUMBERS else _unary(st, "+", a)


def invert(st: RunState, a: Any) -> Any:
    """`!a`."""
    return not a if type(a) is bool else _unary(st, "!", a)


def _unary(st: RunState, operator: str, a: Any) -> Any:
    if type(a) not in STANDARD_TYPES:
        native = st.engine.find(operator, (type(a),))
        if native is not None:
            return native.call(st, a)
    raise not_found(signature(st, operator, (a,)))


BINARY: Final[dict[str, Operator]] = {
    "+": add,
    "-": subtract,
    "*": multiply,
    "/": divide,
    "%": remainder,
    "**": power,
    "<<": shift_left,
    ">>": shift_right,
    "&": bit_and,
    "|": bit_or,
    "^": bit_xor,
    "..": exclusive_range,
    "..=": inclusive_range,
}
