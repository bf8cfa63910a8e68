"""Functions of integers and floats (chapter 36 section 15.2)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from conduit.rhai.errors import arithmetic
from conduit.rhai.operators import float_divide
from conduit.rhai.packages.standard import STANDARD
from conduit.rhai.packages.strings import trimmed
from conduit.rhai.values import (
    I64_MAX,
    I64_MIN,
    Byte,
    Char,
)

if TYPE_CHECKING:
    from conduit.rhai.limits import RunState

fn = STANDARD.fn
_FLOAT_TEXT: Final = re.compile(
    r"[+-]?(?:infinity|inf|nan|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]+)?)", re.IGNORECASE
)


@fn("abs", int)
def absolute(n: int) -> int:
    if n == I64_MIN:
        raise arithmetic(f"Negation overflow: -{n}")
    return abs(n)


@fn("abs", float)
def absolute_float(x: float) -> float:
    return abs(x)


@fn("sign", int)
def sign(n: int) -> int:
    return (n > 0) - (n < 0)


@fn("sign", float)
def sign_float(x: float) -> int:
    if x != x:
        raise arithmetic("Sign of NaN is undefined")
    return (x > 0) - (x < 0)


@fn("is_zero", (int, float), getter=True)
def is_zero(n: float) -> bool:
    return n == 0


@fn("is_odd", int, getter=True)
def is_odd(n: int) -> bool:
    return n & 1 == 1


@fn("is_even", int, getter=True)
def is_even(n: int) -> bool:
    return n & 1 == 0


def _number(n: Any, other: Any) -> Any:
    return float(n) if type(other) is float else n


@fn("max", (int, float), (int, float))
def larger(a: Any, b: Any) -> Any:
    a, b = _number(a, b), _number(b, a)
    if a != a:
        return b
    return b if b > a else a


@fn("min", (int, float), (int, float))
def smaller(a: Any, b: Any) -> Any:
    a, b = _number(a, b), _number(b, a)
    if a != a:
        return b
    return b if b < a else a


@fn("max", str, str)
@fn("max", Char, Char)
def later(a: str, b: str) -> str:
    return b if b > a else a


@fn("min", str, str)
@fn("min", Char, Char)
def earlier(a: str, b: str) -> str:
    return b if b < a else a


# Conversions


@fn("to_int", int)
def int_of_int(n: int) -> int:
    return n


@fn("to_int", Char)
def int_of_char(c: str) -> int:
    return ord(c)


@fn("to_int", Byte)
def int_of_byte(b: Byte) -> int:
    return b.value


@fn("to_int", float)
def int_of_float(x: float) -> int:
    if x != x:
        return 0
    if not -(2.0**63) <= x < 2.0**63:
        text = format(Decimal(repr(x)), "f") if math.isfinite(x) else repr(x)
        if text.endswith(".0"):
            text = text[:-2]
        raise arithmetic(f"Integer overflow: to_int({text})")
    return int(x)


@fn("to_float", (int, float))
def float_of(n: float) -> float:
    return float(n)


@fn("to_float", Byte)
def float_of_byte(b: Byte) -> float:
    return float(b.value)


@fn("parse_int", str, context=True)
def parse_decimal(st: RunState, text: str) -> int:
    return parse_int(st, text, 10)


@fn("parse_int", str, int, context=True)
def parse_int(st: RunState, text: str, radix: int) -> int:
    st.charge(len(text) >> 4)
    if not 2 <= radix <= 36:
        raise arithmetic(f"Invalid radix: '{radix}'")
    digits = trimmed(text)
    reason = ""
    if not digits:
        reason = "cannot parse integer from empty string"
    negative = digits[:1] == "-"
    body = digits[1:] if digits[:1] in ("+", "-") else digits
    allowed = "0123456789abcdefghijklmnopqrstuvwxyz"[:radix]
    if not reason and (not body or body.lower().strip(allowed) or not body.isascii()):
        reason = "invalid digit found in string"
    if not reason:
        significant = body.lstrip("0") or "0"
        value = int(significant, radix) if len(significant) <= 64 else I64_MAX + 2
        value = -value if negative else value
        if I64_MIN <= value <= I64_MAX:
            return value
        side = "small" if negative else "large"
        reason = f"number too {side} to fit in target type"
    raise arithmetic(f"Error parsing integer number '{text}': {reason}")


@fn("parse_float", str, context=True)
def parse_float(st: RunState, text: str) -> float:
    st.charge(len(text) >> 4)
    digits = trimmed(text)
    # compared by length: a pattern that ends with `\Z` would try every shorter number
    match = _FLOAT_TEXT.match(digits)
    if match is not None and match.end() == len(digits):
        return float(digits)
    reason = "invalid float literal" if digits else "cannot parse float from empty string"
    raise arithmetic(f"Error parsing floating-point number '{text}': {reason}")


def _bits_of(n: int) -> int:
    return n & 0xFFFFFFFFFFFFFFFF


@fn("to_hex", int)
def to_hex(n: int) -> str:
    return f"{_bits_of(n):x}"


@fn("to_octal", int)
def to_octal(n: int) -> str:
    return f"{_bits_of(n):o}"


@fn("to_binary", int)
def to_binary(n: int) -> str:
    return f"{_bits_of(n):b}"


# Floats


def _register_plain(name: str, function: Callable[[float], float]) -> None:
    """A function of one float that yields NaN or infinity where Python raises."""

    def safe(x: float) -> float:
        try:
            return function(x)
        except OverflowError:
            return -math.inf if x < 0 and name == "sinh" else math.inf
        except ValueError:
            return math.nan

    STANDARD.add(name, (float,), safe)


def _logarithm(x: float) -> float:
    return -math.inf if x == 0 else math.log(x)


def _logarithm10(x: float) -> float:
    return -math.inf if x == 0 else math.log10(x)


def _area_tangent(x: float) -> float:
    return math.copysign(math.inf, x) if abs(x) == 1 else math.atanh(x)


for _name, _function in {
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "sinh": math.sinh,
    "cosh": math.cosh,
    "tanh": math.tanh,
    "asin": math.asin,
    "acos": math.acos,
    "atan": math.atan,
    "asinh": math.asinh,
    "acosh": math.acosh,
    "atanh": _area_tangent,
    "sqrt": math.sqrt,
    "exp": math.exp,
    "ln": _logarithm,
    "log": _logarithm10,
    "to_degrees": math.degrees,
    "to_radians": math.radians,
}.items():
    _register_plain(_name, _function)

STANDARD.add("atan", (float, float), math.atan2)
STANDARD.add("hypot", (float, float), math.hypot)


@fn("log", float, float)
def logarithm(x: float, base: float) -> float:
    if x < 0 or base < 0 or x != x or base != base:
        return math.nan
    return float_divide(_logarithm(x), _logarithm(base))


def _whole(x: float, rounding: Callable[[float], float]) -> float:
    return math.copysign(float(rounding(x)), x) if math.isfinite(x) else x


@fn("floor", float, getter=True)
def floor(x: float) -> float:
    return _whole(x, math.floor)


@fn("ceiling", float, getter=True)
def ceiling(x: float) -> float:
    return _whole(x, math.ceil)


@fn("round", float, getter=True)
def rounded(x: float) -> float:
    size = abs(x)
    if not math.isfinite(x):
        return x
    below = math.floor(size)
    return math.copysign(float(below + (size - below >= 0.5)), x)


@fn("int", float, getter=True)
def truncated(x: float) -> float:
    return _whole(x, math.trunc)


@fn("fraction", float, getter=True)
def fraction(x: float) -> float:
    return x - truncated(x) if math.isfinite(x) else math.nan


@fn("is_nan", float, getter=True)
def is_nan(x: float) -> bool:
    return x != x


@fn("is_finite", float, getter=True)
def is_finite(x: float) -> bool:
    return math.isfinite(x)


@fn("is_infinite", float, getter=True)
def is_infinite(x: float) -> bool:
    return math.isinf(x)


@fn("PI")
def pi() -> float:
    return math.pi


@fn("E")
def e() -> float:
    return math.e
