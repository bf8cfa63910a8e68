"""Functions of arrays that call nothing back (chapter 36 section 15.5)."""

from __future__ import annotations

from functools import cmp_to_key
from typing import TYPE_CHECKING, Any

from conduit.rhai.assigning import append as append_in_place
from conduit.rhai.comparison import equal
from conduit.rhai.errors import not_found
from conduit.rhai.natives import ANY, IN_PLACE
from conduit.rhai.packages.offsets import range_span, span
from conduit.rhai.packages.standard import STANDARD
from conduit.rhai.text import type_name
from conduit.rhai.values import CONTAINERS, Array, Blob, Char, InclusiveRange, Range, share

if TYPE_CHECKING:
    from conduit.rhai.limits import RunState

fn = STANDARD.fn
_RANGES = (Range, InclusiveRange)


@fn("len", (Array, Blob), getter=True)
def length(a: Any) -> int:
    return len(a)


@fn("is_empty", (Array, Blob), getter=True)
def is_empty(a: Any) -> bool:
    return not a


@fn("push", Array, ANY, pure=False, mode=IN_PLACE, context=True)
def push(st: RunState, a: Array, item: Any) -> None:
    a.append(item)
    if type(item) in CONTAINERS or len(a) + a.nested > st.container_room:
        st.stored(a, item)


@fn("append", Array, Array, pure=False, mode=IN_PLACE, context=True)
def append(st: RunState, a: Array, b: Array) -> None:
    append_in_place(st, a, b)


@fn("insert", Array, int, ANY, pure=False, mode=IN_PLACE, context=True)
def insert(st: RunState, a: Array, index: int, item: Any) -> None:
    if index < 0:
        index = max(0, index + len(a))
    a.insert(index, item)
    st.stored(a, item)


@fn("pop", Array, pure=False, mode=IN_PLACE)
def pop(a: Array) -> Any:
    return a.pop() if a else None


@fn("shift", Array, pure=False, mode=IN_PLACE, context=True)
def shift(st: RunState, a: Array) -> Any:
    if len(a) > 1024:
        st.charge(len(a) >> 8)
    return a.pop(0) if a else None


@fn("remove", Array, int, pure=False, mode=IN_PLACE)
def remove(a: Array, index: int) -> Any:
    return a.pop(index) if -len(a) <= index < len(a) else None


def _near(a: Any, index: int) -> int | None:
    """An index as `get` and `set` take it: too far below is the first item."""
    if index < 0:
        index = max(0, index + len(a))
    return index if index < len(a) else None


@fn("get", Array, int, pure=False)
def get(a: Array, index: int) -> Any:
    at = _near(a, index)
    return None if at is None else share(a[at])


@fn("set", Array, int, ANY, pure=False, mode=IN_PLACE, context=True)
def put(st: RunState, a: Array, index: int, item: Any) -> None:
    at = _near(a, index)
    if at is not None:
        a[at] = item
        st.stored(a, item)


@fn("clear", (Array, Blob), pure=False, mode=IN_PLACE)
def clear(a: Any) -> None:
    a.clear()
    a.nested = 0


@fn("reverse", (Array, Blob), pure=False, mode=IN_PLACE, context=True)
def reverse(st: RunState, a: Any) -> None:
    st.array_room(len(a))
    a.reverse()


@fn("truncate", (Array, Blob), int, pure=False, mode=IN_PLACE)
def truncate(a: Any, count: int) -> None:
    del a[max(0, count) :]


@fn("chop", (Array, Blob), int, pure=False, mode=IN_PLACE)
def chop(a: Any, count: int) -> None:
    del a[: max(0, len(a) - max(0, count))]


@fn("pad", Array, int, ANY, pure=False, mode=IN_PLACE, context=True)
def pad(st: RunState, a: Array, count: int, item: Any) -> None:
    missing = count - len(a)
    if missing <= 0:
        return
    st.array_room(count)
    share(item)
    a.extend([item] * missing)
    if type(item) in CONTAINERS:
        a.nested += missing * (len(item) + item.nested)
    st.sized(a)


def _shared(st: RunState, items: list[Any]) -> Array:
    """A new array of items that stay where they are, too."""
    st.array_room(len(items))
    for item in items:
        if type(item) in CONTAINERS:
            item.frozen = True
    return Array(items)


def _cut(st: RunState, items: list[Any]) -> Array:
    """A new array of items that have left another one."""
    st.array_room(len(items))
    result = Array(items)
    if any(type(item) in CONTAINERS for item in items):
        st.recount(result)
    return result


@fn("extract", Array, int, pure=False, context=True)
def extract_from(st: RunState, a: Array, start: int) -> Array:
    first, end = span(len(a), start)
    return st.built(_shared(st, a[first:end]))  # type: ignore[no-any-return]


@fn("extract", Array, int, int, pure=False, context=True)
def extract(st: RunState, a: Array, start: int, count: int) -> Array:
    first, end = span(len(a), start, count)
    return st.built(_shared(st, a[first:end]))  # type: ignore[no-any-return]


@fn("extract", Array, _RANGES, pure=False, context=True)
def extract_range(st: RunState, a: Array, selected: Range) -> Array:
    first, end = range_span(len(a), selected)
    return st.built(_shared(st, a[first:end]))  # type: ignore[no-any-return]


def _splice(st: RunState, a: Array, first: int, end: int, new: Array) -> None:
    for item in new:
        if type(item) in CONTAINERS:
            item.frozen = True
    st.array_room(len(a) + len(new))
    a[first:end] = list(new)
    a.nested += new.nested
    st.sized(a)


@fn("splice", Array, int, int, Array, pure=False, mode=IN_PLACE, context=True)
def splice(st: RunState, a: Array, start: int, count: int, new: Array) -> None:
    _splice(st, a, *span(len(a), start, count), new)


@fn("splice", Array, _RANGES, Array, pure=False, mode=IN_PLACE, context=True)
def splice_range(st: RunState, a: Array, selected: Range, new: Array) -> None:
    _splice(st, a, *range_span(len(a), selected), new)


@fn("split", Array, int, pure=False, mode=IN_PLACE, context=True)
def split(st: RunState, a: Array, index: int) -> Array:
    first, _ = span(len(a), index)
    tail = a[first:]
    del a[first:]
    return _cut(st, tail)


@fn("drain", Array, int, int, pure=False, mode=IN_PLACE, context=True)
def drain(st: RunState, a: Array, start: int, count: int) -> Array:
    first, end = span(len(a), start, count)
    taken = a[first:end]
    del a[first:end]
    return _cut(st, taken)


@fn("drain", Array, _RANGES, pure=False, mode=IN_PLACE, context=True)
def drain_range(st: RunState, a: Array, selected: Range) -> Array:
    first, end = range_span(len(a), selected)
    taken = a[first:end]
    del a[first:end]
    return _cut(st, taken)


def _retain(st: RunState, a: Array, first: int, end: int) -> Array:
    if first >= end:
        return Array()
    removed = a[:first] + a[end:]
    a[:] = a[first:end]
    return _cut(st, removed)


@fn("retain", Array, int, int, pure=False, mode=IN_PLACE, context=True)
def retain(st: RunState, a: Array, start: int, count: int) -> Array:
    return _retain(st, a, *span(len(a), start, count))


@fn("retain", Array, _RANGES, pure=False, mode=IN_PLACE, context=True)
def retain_range(st: RunState, a: Array, selected: Range) -> Array:
    return _retain(st, a, *range_span(len(a), selected))


@fn("contains", Array, ANY, context=True)
def contains(st: RunState, a: Array, item: Any) -> bool:
    return find_equal(st, a, item, 0) >= 0


def find_equal(st: RunState, a: Array, item: Any, start: int) -> int:
    """The index of the first equal item from `start` on, or -1."""
    if len(a) > 64:
        st.charge(len(a) >> 2)
    for i in range(start, len(a)):
        if equal(st, a[i], item) is True:
            return i
    return -1


@fn("dedup", Array, pure=False, mode=IN_PLACE, context=True)
def dedup(st: RunState, a: Array) -> None:
    if len(a) > 64:
        st.charge(len(a) >> 2)
    kept: list[Any] = []
    for item in a:
        if not kept or equal(st, kept[-1], item) is not True:
            kept.append(item)
    a[:] = kept


# Sorting


def _checked_kind(st: RunState, a: Array) -> type:
    kind = type(a[0])
    for item in a:
        if type(item) is not kind:
            raise not_found("elements of different types cannot be sorted")
    if kind not in (int, float, Char, str, bool, type(None)):
        raise not_found(f"elements of {type_name(st, a[0])} cannot be sorted")
    return kind


def _float_order(x: float, y: float) -> int:
    return (x > y) - (x < y)


def _sorted(st: RunState, a: Array, descending: bool) -> list[Any]:
    if not a:
        return []
    kind = _checked_kind(st, a)
    if len(a) > 64:
        st.charge(len(a) >> 1)
    if kind is type(None):
        return list(a)
    if kind is float:
        return sorted(a, key=cmp_to_key(_float_order), reverse=descending)
    return sorted(a, reverse=descending)


@fn("sort", Array, pure=False, mode=IN_PLACE, context=True)
def sort(st: RunState, a: Array) -> None:
    a[:] = _sorted(st, a, False)


@fn("sort_desc", Array, pure=False, mode=IN_PLACE, context=True)
def sort_desc(st: RunState, a: Array) -> None:
    a[:] = _sorted(st, a, True)


@fn("order", Array, pure=False, context=True)
def order(st: RunState, a: Array) -> Array:
    return Array(_sorted(st, a, False))


@fn("order_desc", Array, pure=False, context=True)
def order_desc(st: RunState, a: Array) -> Array:
    return Array(_sorted(st, a, True))
