"""Functions of blobs (chapter 36 section 15.7)."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from conduit.rhai.assigning import append_bytes
from conduit.rhai.natives import IN_PLACE
from conduit.rhai.operators import encoded, lossy
from conduit.rhai.packages.offsets import range_span, span
from conduit.rhai.packages.standard import STANDARD
from conduit.rhai.values import Array, Blob, Char, InclusiveRange, Range

if TYPE_CHECKING:
    from conduit.rhai.limits import RunState

fn = STANDARD.fn
_RANGES = (Range, InclusiveRange)


@fn("blob")
def empty() -> Blob:
    return Blob()


@fn("blob", int, context=True)
def zeros(st: RunState, size: int) -> Blob:
    return filled(st, size, 0)


@fn("blob", int, int, context=True)
def filled(st: RunState, size: int, byte: int) -> Blob:
    if size <= 0:
        return Blob()
    st.array_room(size)
    return Blob(bytes([byte & 0xFF]) * size)


@fn("push", Blob, int, pure=False, mode=IN_PLACE, context=True)
@fn("append", Blob, (int, str, Char, Blob), pure=False, mode=IN_PLACE, context=True)
def append(st: RunState, b: Blob, value: Any) -> None:
    append_bytes(st, b, value)


@fn("insert", Blob, int, int, pure=False, mode=IN_PLACE, context=True)
def insert(st: RunState, b: Blob, index: int, byte: int) -> None:
    if index < 0:
        index = max(0, index + len(b))
    b.insert(min(index, len(b)), byte & 0xFF)
    st.sized(b)


@fn("pad", Blob, int, int, pure=False, mode=IN_PLACE, context=True)
def pad(st: RunState, b: Blob, size: int, byte: int) -> None:
    if size > len(b):
        st.array_room(size, "Size of BLOB")
        b.extend(bytes([byte & 0xFF]) * (size - len(b)))


def _near(b: Blob, index: int) -> int | None:
    if index < 0:
        index = max(0, index + len(b))
    return index if index < len(b) else None


@fn("set", Blob, int, int, pure=False, mode=IN_PLACE)
def put(b: Blob, index: int, byte: int) -> None:
    at = _near(b, index)
    if at is not None:
        b[at] = byte & 0xFF


@fn("get", Blob, int)
def get(b: Blob, index: int) -> int:
    at = _near(b, index)
    return 0 if at is None else b[at]


@fn("pop", Blob, pure=False, mode=IN_PLACE)
def pop(b: Blob) -> int:
    return b.pop() if b else 0


@fn("shift", Blob, pure=False, mode=IN_PLACE)
def shift(b: Blob) -> int:
    return b.pop(0) if b else 0


@fn("remove", Blob, int, pure=False, mode=IN_PLACE)
def remove(b: Blob, index: int) -> int:
    return b.pop(index) if -len(b) <= index < len(b) else 0


@fn("contains", Blob, int)
def contains(b: Blob, byte: int) -> bool:
    return (byte & 0xFF) in b


# Parts


@fn("extract", Blob, int, pure=False)
def extract_from(b: Blob, start: int) -> Blob:
    first, end = span(len(b), start)
    return Blob(b[first:end])


@fn("extract", Blob, int, int, pure=False)
def extract(b: Blob, start: int, count: int) -> Blob:
    first, end = span(len(b), start, count)
    return Blob(b[first:end])


@fn("extract", Blob, _RANGES, pure=False)
def extract_range(b: Blob, selected: Range) -> Blob:
    first, end = range_span(len(b), selected)
    return Blob(b[first:end])


def _splice(st: RunState, b: Blob, first: int, end: int, new: Blob) -> None:
    st.array_room(len(b) + len(new))
    if first >= end:
        b.extend(bytes(new))
    else:
        b[first:end] = bytes(new)


@fn("splice", Blob, int, int, Blob, pure=False, mode=IN_PLACE, context=True)
def splice(st: RunState, b: Blob, start: int, count: int, new: Blob) -> None:
    _splice(st, b, *span(len(b), start, count), new)


@fn("splice", Blob, _RANGES, Blob, pure=False, mode=IN_PLACE, context=True)
def splice_range(st: RunState, b: Blob, selected: Range, new: Blob) -> None:
    _splice(st, b, *range_span(len(b), selected), new)


@fn("split", Blob, int, pure=False, mode=IN_PLACE)
def split(b: Blob, index: int) -> Blob:
    first, _ = span(len(b), index)
    tail = Blob(b[first:])
    del b[first:]
    return tail


def _drain(b: Blob, first: int, end: int) -> Blob:
    taken = Blob(b[first:end])
    del b[first:end]
    return taken


@fn("drain", Blob, int, int, pure=False, mode=IN_PLACE)
def drain(b: Blob, start: int, count: int) -> Blob:
    return _drain(b, *span(len(b), start, count))


@fn("drain", Blob, _RANGES, pure=False, mode=IN_PLACE)
def drain_range(b: Blob, selected: Range) -> Blob:
    return _drain(b, *range_span(len(b), selected))


def _retain(b: Blob, first: int, end: int, beyond: bool) -> Blob:
    if first >= end and not beyond:
        return Blob()
    removed = Blob(b[:first] + b[end:])
    b[:] = b[first:end]
    return removed


@fn("retain", Blob, int, int, pure=False, mode=IN_PLACE)
def retain(b: Blob, start: int, count: int) -> Blob:
    first, end = span(len(b), start, count)
    return _retain(b, first, end, start >= len(b) and count > 0)


@fn("retain", Blob, _RANGES, pure=False, mode=IN_PLACE)
def retain_range(b: Blob, selected: Range) -> Blob:
    first, end = range_span(len(b), selected)
    return _retain(b, first, end, selected.start >= len(b))


# Text and numbers


@fn("to_array", Blob, context=True)
def to_array(st: RunState, b: Blob) -> Array:
    st.array_room(len(b))
    return Array(b)


@fn("as_string", Blob, context=True)
def as_string(st: RunState, b: Blob) -> str:
    return st.sized_string(lossy(b))


def _eight(b: Blob, first: int, end: int) -> bytes:
    return bytes(b[first : min(end, first + 8)]).ljust(8, b"\0")


def _register_numbers() -> None:
    for order, sign in (("le", "<"), ("be", ">")):
        for name, code in (("int", "q"), ("float", "d")):
            _register_parse(f"parse_{order}_{name}", sign + code)
        for kind, code in ((int, "q"), (float, "d")):
            _register_write(f"write_{order}", kind, sign + code)


def _register_parse(name: str, layout: str) -> None:
    def parse(b: Blob, start: int, count: int) -> Any:
        return struct.unpack(layout, _eight(b, *span(len(b), start, count)))[0]

    def parse_range(b: Blob, selected: Range) -> Any:
        return struct.unpack(layout, _eight(b, *range_span(len(b), selected)))[0]

    STANDARD.add(name, (Blob, int, int), parse)
    STANDARD.add(name, (Blob, _RANGES), parse_range)


def _overwrite(b: Blob, first: int, end: int, data: bytes) -> None:
    end = min(end, first + len(data))
    b[first:end] = data[: end - first]


def _register_write(name: str, kind: type, layout: str) -> None:
    def write(b: Blob, start: int, count: int, value: Any) -> None:
        _overwrite(b, *span(len(b), start, count), struct.pack(layout, value))

    def write_range(b: Blob, selected: Range, value: Any) -> None:
        _overwrite(b, *range_span(len(b), selected), struct.pack(layout, value))

    STANDARD.add(name, (Blob, int, int, kind), write, pure=False, mode=IN_PLACE)
    STANDARD.add(name, (Blob, _RANGES, kind), write_range, pure=False, mode=IN_PLACE)


_register_numbers()


@fn("write_utf8", Blob, int, int, str, pure=False, mode=IN_PLACE)
def write_utf8(b: Blob, start: int, count: int, text: str) -> None:
    _overwrite(b, *span(len(b), start, count), encoded(text))


@fn("write_utf8", Blob, _RANGES, str, pure=False, mode=IN_PLACE)
def write_utf8_range(b: Blob, selected: Range, text: str) -> None:
    _overwrite(b, *range_span(len(b), selected), encoded(text))


def _ascii(text: str) -> bytes:
    return text.encode("ascii", "ignore")


@fn("write_ascii", Blob, int, int, str, pure=False, mode=IN_PLACE)
def write_ascii(b: Blob, start: int, count: int, text: str) -> None:
    _overwrite(b, *span(len(b), start, count), _ascii(text))


@fn("write_ascii", Blob, _RANGES, str, pure=False, mode=IN_PLACE)
def write_ascii_range(b: Blob, selected: Range, text: str) -> None:
    _overwrite(b, *range_span(len(b), selected), _ascii(text))
