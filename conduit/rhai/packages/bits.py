"""Functions of the bits of an i64 (chapter 36 section 15.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conduit.rhai.indexing import bit_bounds, bit_range, replace_bits, signed
from conduit.rhai.natives import REPLACE
from conduit.rhai.packages.standard import STANDARD
from conduit.rhai.values import (
    InclusiveRange,
    Range,
    Sequence,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

fn = STANDARD.fn
_RANGES = (Range, InclusiveRange)


def _bit(index: int) -> int:
    if not -64 <= index < 64:
        raise bit_bounds(index)
    return index & 63


def _field(start: int, count: int) -> tuple[int, int]:
    first = _bit(start)
    return first, min(count, 64 - first)


def _range_field(selected: Range) -> tuple[int, int]:
    return bit_range(selected, 0)


@fn("get_bit", int, int)
def get_bit(n: int, index: int) -> bool:
    return n >> _bit(index) & 1 == 1


@fn("set_bit", int, int, bool, pure=False, mode=REPLACE)
def set_bit(n: int, index: int, new: bool) -> tuple[int, None]:
    return replace_bits(n, _bit(index), 1, int(new)), None


@fn("get_bits", int, int, int)
def get_bits(n: int, start: int, count: int) -> int:
    first, width = _field(start, count)
    return signed((n >> first) & ((1 << width) - 1)) if width > 0 else 0


@fn("get_bits", int, _RANGES)
def get_bits_range(n: int, selected: Range) -> int:
    first, width = _range_field(selected)
    return signed((n >> first) & ((1 << width) - 1))


@fn("set_bits", int, int, int, int, pure=False, mode=REPLACE)
def set_bits(n: int, start: int, count: int, new: int) -> tuple[int, None]:
    first, width = _field(start, count)
    return (replace_bits(n, first, width, new) if width > 0 else n), None


@fn("set_bits", int, _RANGES, int, pure=False, mode=REPLACE)
def set_bits_range(n: int, selected: Range, new: int) -> tuple[int, None]:
    first, width = _range_field(selected)
    return replace_bits(n, first, width, new), None


def _bit_sequence(n: int, first: int, width: int) -> Sequence:
    def walk() -> Iterator[bool]:
        for i in range(first, first + max(0, width)):
            yield n >> i & 1 == 1

    return Sequence(walk)


@fn("bits", int, getter=True)
def bits(n: int) -> Sequence:
    return _bit_sequence(n, 0, 64)


@fn("bits", int, int)
def bits_from(n: int, start: int) -> Sequence:
    return bits_part(n, start, 64)


@fn("bits", int, int, int)
def bits_part(n: int, start: int, count: int) -> Sequence:
    first, width = _field(start, count)
    return _bit_sequence(n, first, width)


@fn("bits", int, _RANGES)
def bits_range(n: int, selected: Range) -> Sequence:
    first, width = _range_field(selected)
    return _bit_sequence(n, first, width)
