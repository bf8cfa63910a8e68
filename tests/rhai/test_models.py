"""Integers and strings against models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from conduit.rhai import EvalError, Limits, Scope
from tests.rhai.running import engine_for

LOW, HIGH = -(2**63), 2**63 - 1
INTEGERS = st.one_of(
    st.integers(LOW, HIGH),
    st.integers(-70, 70),
    st.sampled_from([LOW, LOW + 1, HIGH, HIGH - 1, -1, 0, 1]),
)
ENGINE = engine_for(Limits(max_operations=1_000_000, timeout_ms=5000))


def checked(value: int) -> int | None:
    return value if LOW <= value <= HIGH else None


def quotient(a: int, b: int) -> int | None:
    if b == 0:
        return None
    return checked(abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1))


def remainder(a: int, b: int) -> int | None:
    if b == 0 or (a == LOW and b == -1):
        return None
    return abs(a) % abs(b) * (-1 if a < 0 else 1)


def power(a: int, b: int) -> int | None:
    if b < 0 or b > 2**32 - 1:
        return None
    if a in (0, 1, -1):
        return a**b if b < 2 else a ** (2 + b % 2)
    return checked(a**b) if b < 64 else None


MODEL: dict[str, Callable[[int, int], Any]] = {
    "+": lambda a, b: checked(a + b),
    "-": lambda a, b: checked(a - b),
    "*": lambda a, b: checked(a * b),
    "/": quotient,
    "%": remainder,
    "**": power,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


@settings(max_examples=600, deadline=None)
@given(st.sampled_from(sorted(MODEL)), INTEGERS, INTEGERS)
def test_integers_are_checked_64_bit(operator: str, a: int, b: int) -> None:
    expected = MODEL[operator](a, b)
    for script in (f"a {operator} b", f"let x = a; let y = b; x {operator} y"):
        try:
            found: Any = ENGINE.eval(script, Scope(a=a, b=b))
        except EvalError as error:
            found = None if error.kind == "ErrorArithmetic" else error
        assert found == expected, (script, a, b)
    if operator in ("+", "-", "*", "/", "%", "**", "&", "|", "^"):
        try:
            found = ENGINE.eval(f"let x = a; x {operator}= b; x", Scope(a=a, b=b))
        except EvalError:
            found = None
        assert found == expected


TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)


@settings(max_examples=300, deadline=None)
@given(TEXTS, TEXTS, st.integers(-15, 15), st.integers(-15, 15))
def test_strings_count_characters(s: str, t: str, start: int, count: int) -> None:
    def value(script: str) -> Any:
        return ENGINE.eval(script, Scope(s=s, t=t, a=start, n=count))

    assert value("s + t") == s + t
    assert value("s.len()") == len(s)
    assert value("s.bytes") == len(s.encode())
    assert value("s == t") == (s == t)
    assert value("s < t") == (s.encode() < t.encode())
    assert value("s.contains(t)") == (t in s)
    assert value("s in (t + s + t)") is True
    assert value("s.starts_with(t)") == s.startswith(t)
    assert value("s.ends_with(t)") == s.endswith(t)
    assert value("s.index_of(t)") == s.find(t)
    assert value("`${s}|${t}`") == f"{s}|{t}"
    begin = start if start >= 0 else max(0, len(s) + start)
    expected = s[begin : begin + count] if count > 0 and begin < len(s) else ""
    assert value("s.sub_string(a, n)") == expected
    joined = value('let r = ""; for c in s { r += c } r')
    assert joined == s
