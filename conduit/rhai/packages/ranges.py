"""Functions of ranges (chapter 36 section 15.7)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from conduit.rhai.calls import in_call
from conduit.rhai.errors import EvalError
from conduit.rhai.packages.standard import STANDARD
from conduit.rhai.values import InclusiveRange, Range, Sequence

fn = STANDARD.fn
_RANGES = (Range, InclusiveRange)


@fn("start", _RANGES, getter=True)
def start(r: Range) -> int:
    return r.start


@fn("end", _RANGES, getter=True)
def end(r: Range) -> int:
    return r.end


@fn("is_empty", _RANGES, getter=True)
def is_empty(r: Range) -> bool:
    return r.start > r.end if r.inclusive else r.start >= r.end


@fn("is_inclusive", _RANGES, getter=True)
def is_inclusive(r: Range) -> bool:
    return r.inclusive


@fn("is_exclusive", _RANGES, getter=True)
def is_exclusive(r: Range) -> bool:
    return not r.inclusive


@fn("contains", _RANGES, int, pure=False)
def contains(r: Range, n: int) -> bool:
    return r.start <= n <= r.end if r.inclusive else r.start <= n < r.end


@fn("range", int, int)
def make_range(a: int, b: int) -> Range:
    return Range(a, b)


def _zero_step() -> EvalError:
    inner = EvalError("ErrorArithmetic", "step value cannot be zero", positionless=True)
    return in_call(inner, "range")


@fn("range", int, int, int)
def stepped(a: int, b: int, step: int) -> Sequence:
    if step == 0:
        raise _zero_step()
    return Sequence(lambda: iter(range(a, b, step)))


@fn("range", Range, int)
def stepped_range(r: Range, step: int) -> Sequence:
    return stepped(r.start, r.end, step)


@fn("range", float, float, float)
def stepped_floats(a: float, b: float, step: float) -> Sequence:
    if step == 0:
        raise _zero_step()

    def walk() -> Iterator[Any]:
        value = a
        while (value < b if step > 0 else value > b) and not math.isnan(step):
            yield value
            following = value + step
            if following == value:
                return
            value = following

    return Sequence(walk)
