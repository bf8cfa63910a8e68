"""Functions of object maps that call nothing back (chapter 36 section 15.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conduit.rhai.assigning import append
from conduit.rhai.natives import ANY, IN_PLACE
from conduit.rhai.packages.standard import STANDARD
from conduit.rhai.values import Array, Map, share

if TYPE_CHECKING:
    from conduit.rhai.limits import RunState

fn = STANDARD.fn


@fn("len", Map)
def length(m: Map) -> int:
    return len(m)


@fn("is_empty", Map)
def is_empty(m: Map) -> bool:
    return not m


@fn("contains", Map, str)
def contains(m: Map, key: str) -> bool:
    return key in m


@fn("get", Map, str)
def get(m: Map, key: str) -> Any:
    return share(m.get(key))


@fn("set", Map, str, ANY, pure=False, mode=IN_PLACE, context=True)
def put(st: RunState, m: Map, key: str, value: Any) -> None:
    m[key] = value
    st.stored(m, value)


@fn("remove", Map, str, pure=False, mode=IN_PLACE)
def remove(m: Map, key: str) -> Any:
    return m.pop(key, None)


@fn("clear", Map, pure=False, mode=IN_PLACE)
def clear(m: Map) -> None:
    m.clear()
    m.nested = 0


@fn("mixin", Map, Map, pure=False, mode=IN_PLACE, context=True)
def mixin(st: RunState, m: Map, other: Map) -> None:
    append(st, m, other)


@fn("fill_with", Map, Map, pure=False, mode=IN_PLACE, context=True)
def fill_with(st: RunState, m: Map, other: Map) -> None:
    st.array_room(len(other))
    for key, value in other.items():
        if key not in m:
            m[key] = share(value)
    m.nested += other.nested
    st.sized(m)


@fn("keys", Map, context=True)
def keys(st: RunState, m: Map) -> Array:
    st.array_room(len(m))
    return Array(sorted(m))


@fn("values", Map, context=True)
def values(st: RunState, m: Map) -> Array:
    st.array_room(len(m))
    return st.built(Array([share(value) for _, value in m.ordered()]))  # type: ignore[no-any-return]
