"""Functions of arrays and maps that call function pointers (chapter 36 section 10.3)."""

from __future__ import annotations

from functools import cmp_to_key
from typing import TYPE_CHECKING, Any

from conduit.rhai.calls import call_pointer, in_call
from conduit.rhai.errors import EvalError, not_found
from conduit.rhai.natives import ANY, IN_PLACE
from conduit.rhai.packages.arrays import find_equal
from conduit.rhai.packages.standard import STANDARD
from conduit.rhai.text import signature
from conduit.rhai.tokens import is_identifier
from conduit.rhai.values import Array, Cell, FnPtr, Map, share

if TYPE_CHECKING:
    from conduit.rhai.limits import RunState

callback = STANDARD.callback


def call_offered(
    st: RunState,
    native: str,
    pointer: FnPtr,
    this: Cell,
    offers: dict[int, tuple[bool, tuple[Any, ...]]],
) -> Any:
    """Calls `pointer` with what fits the number of its parameters. Raises EvalError."""
    code = pointer.code
    if code is not None:
        count = code.parameters - len(pointer.cells) - len(pointer.curried)
        offer = offers.get(count)
        if offer is None:
            least = next(iter(offers.values()))[1]
            raise in_call(not_found(signature(st, pointer.name, least)), native)
        bound, arguments = offer
        return call_pointer(st, pointer, arguments, this if bound else None)
    curried = len(pointer.curried)
    for bound, arguments in offers.values():
        given = len(arguments) + curried
        if (pointer.name, given) in st.program.functions:
            return call_pointer(st, pointer, arguments, this if bound else None)
        types = tuple(map(type, (*pointer.curried, *arguments)))
        if bound:
            types = (type(this.value), *types)
        if st.engine.find(pointer.name, types) is not None:
            return call_pointer(st, pointer, arguments, this if bound else None)
    shown = (*pointer.curried, *list(offers.values())[-1][1])
    raise in_call(not_found(signature(st, pointer.name, shown)), native)


def pointer_of(f: Any) -> FnPtr:
    """A function pointer, also from the name of a function."""
    if type(f) is FnPtr:
        return f
    if not is_identifier(f):
        raise not_found(f)
    return FnPtr(f)


class _Items:
    """Calls a pointer for each item of an array, by reference where it has no parameters."""

    __slots__ = ("array", "native", "pointer", "st")

    def __init__(self, st: RunState, native: str, array: Array, f: Any) -> None:
        self.st = st
        self.native = native
        self.array = array
        self.pointer = pointer_of(f)

    def __call__(self, index: int) -> Any:
        st = self.st
        st.n -= 1
        if st.n < 0:
            st.check()
        item = share(self.array[index])
        this = Cell(item)
        offers = {0: (True, ()), 1: (False, (item,)), 2: (False, (item, index))}
        result = call_offered(st, self.native, self.pointer, this, offers)
        if this.value is not item:
            self.array[index] = this.value
        return result


def _start(a: Array, start: int) -> int:
    return max(0, start + len(a)) if start < 0 else start


@callback("map", Array, (FnPtr, str), mode=IN_PLACE)
def map_array(st: RunState, a: Array, f: Any) -> Array:
    each = _Items(st, "map", a, f)
    return st.built(Array([share(each(i)) for i in range(len(a))]))  # type: ignore[no-any-return]


@callback("filter", Array, (FnPtr, str), mode=IN_PLACE)
def filter_array(st: RunState, a: Array, f: Any) -> Array:
    each = _Items(st, "filter", a, f)
    kept = [share(a[i]) for i in range(len(a)) if each(i) is True]
    return st.built(Array(kept))  # type: ignore[no-any-return]


@callback("find", Array, FnPtr, mode=IN_PLACE)
def find(st: RunState, a: Array, f: Any) -> Any:
    return find_from(st, a, f, 0)


def find_from(st: RunState, a: Array, f: Any, start: int) -> Any:
    """The first item from `start` on for which the pointer yields true."""
    each = _Items(st, "find", a, f)
    for i in range(_start(a, start), len(a)):
        if each(i) is True:
            return share(a[i])
    return None


callback("find", Array, FnPtr, int, mode=IN_PLACE)(find_from)


@callback("find_map", Array, FnPtr, mode=IN_PLACE)
def find_map(st: RunState, a: Array, f: Any) -> Any:
    return find_map_from(st, a, f, 0)


def find_map_from(st: RunState, a: Array, f: Any, start: int) -> Any:
    """The first result other than `()`."""
    each = _Items(st, "find_map", a, f)
    for i in range(_start(a, start), len(a)):
        result = each(i)
        if result is not None:
            return share(result)
    return None


callback("find_map", Array, FnPtr, int, mode=IN_PLACE)(find_map_from)


def index_of_from(st: RunState, a: Array, f: Any, start: int) -> int:
    """The index of the first item that fits or is equal."""
    start = _start(a, start)
    named = type(f) is str and any((f, n) in st.program.functions for n in range(3))
    if not named and type(f) is not FnPtr:
        return find_equal(st, a, f, start)
    each = _Items(st, "index_of", a, f)
    for i in range(start, len(a)):
        if each(i) is True:
            return i
    return -1


@callback("index_of", Array, ANY, mode=IN_PLACE)
def index_of(st: RunState, a: Array, f: Any) -> int:
    return index_of_from(st, a, f, 0)


callback("index_of", Array, ANY, int, mode=IN_PLACE)(index_of_from)


@callback("some", Array, (FnPtr, str), mode=IN_PLACE)
def some(st: RunState, a: Array, f: Any) -> bool:
    each = _Items(st, "some", a, f)
    return any(each(i) is True for i in range(len(a)))


@callback("all", Array, (FnPtr, str), mode=IN_PLACE)
def every(st: RunState, a: Array, f: Any) -> bool:
    each = _Items(st, "all", a, f)
    return all(each(i) is True for i in range(len(a)))


def _take(st: RunState, native: str, a: Array, f: Any, wanted: bool) -> Array:
    """Removes the items for which the pointer's answer is (or is not) true."""
    each = _Items(st, native, a, f)
    chosen = [(each(i) is True) is wanted for i in range(len(a))]
    taken = [item for item, out in zip(a, chosen, strict=True) if out]
    a[:] = [item for item, out in zip(a, chosen, strict=True) if not out]
    return st.built(Array(taken))  # type: ignore[no-any-return]


@callback("drain", Array, (FnPtr, str), pure=False, mode=IN_PLACE)
def drain(st: RunState, a: Array, f: Any) -> Array:
    return _take(st, "drain", a, f, True)


@callback("retain", Array, (FnPtr, str), pure=False, mode=IN_PLACE)
def retain(st: RunState, a: Array, f: Any) -> Array:
    return _take(st, "retain", a, f, False)


@callback("for_each", Array, FnPtr, pure=False, mode=IN_PLACE)
def for_each(st: RunState, a: Array, f: Any) -> None:
    for i in range(len(a)):
        st.charge(1)
        item = share(a[i])
        this = Cell(item)
        offers: dict[int, tuple[bool, tuple[Any, ...]]] = {0: (True, ()), 1: (True, (i,))}
        call_offered(st, "for_each", f, this, offers)
        if this.value is not item and i < len(a):
            a[i] = this.value


def _reduce(st: RunState, native: str, a: Array, f: Any, result: Any, backwards: bool) -> Any:
    pointer = pointer_of(f)
    indices = range(len(a) - 1, -1, -1) if backwards else range(len(a))
    for i in indices:
        st.charge(1)
        item = share(a[i])
        offers = {
            2: (False, (result, item)),
            1: (True, (result,)),
            3: (False, (result, item, i)),
        }
        result = share(call_offered(st, native, pointer, Cell(item), offers))
    return result


@callback("reduce", Array, (FnPtr, str))
def reduce(st: RunState, a: Array, f: Any) -> Any:
    return _reduce(st, "reduce", a, f, None, False)


@callback("reduce", Array, (FnPtr, str), ANY)
def reduce_from(st: RunState, a: Array, f: Any, start: Any) -> Any:
    return _reduce(st, "reduce", a, f, _initial(st, start), False)


@callback("reduce_rev", Array, (FnPtr, str))
def reduce_rev(st: RunState, a: Array, f: Any) -> Any:
    return _reduce(st, "reduce_rev", a, f, None, True)


@callback("reduce_rev", Array, (FnPtr, str), ANY)
def reduce_rev_from(st: RunState, a: Array, f: Any, start: Any) -> Any:
    return _reduce(st, "reduce_rev", a, f, _initial(st, start), True)


def _initial(st: RunState, start: Any) -> Any:
    """The start value; a function pointer stands for what it returns."""
    return call_pointer(st, start, (), None) if type(start) is FnPtr else start


@callback("zip", Array, Array, FnPtr)
def zip_arrays(st: RunState, a: Array, b: Array, f: Any) -> Array:
    results: list[Any] = []
    for i in range(min(len(a), len(b))):
        st.charge(1)
        x, y = share(a[i]), share(b[i])
        offers = {2: (False, (x, y)), 3: (False, (x, y, i))}
        results.append(share(call_offered(st, "zip", f, Cell(x), offers)))
    return st.built(Array(results))  # type: ignore[no-any-return]


# Sorting and duplicates: errors of the comparing function are ignored


def _compare(st: RunState, native: str, pointer: FnPtr, x: Any, y: Any) -> Any:
    st.charge(1)
    offers = {2: (False, (share(x), share(y)))}
    try:
        return call_offered(st, native, pointer, Cell(x), offers)
    except EvalError as error:
        if not error.catchable:
            raise
        return None


def _sorted(st: RunState, native: str, a: Array, f: Any) -> list[Any]:
    pointer = pointer_of(f)

    def order(x: Any, y: Any) -> int:
        result = _compare(st, native, pointer, x, y)
        if type(result) is bool:
            return -1 if result else 1
        return result if type(result) is int else 0

    return sorted(a, key=cmp_to_key(order))


@callback("sort sort_by", Array, (FnPtr, str), pure=False, mode=IN_PLACE)
def sort(st: RunState, a: Array, f: Any) -> None:
    a[:] = _sorted(st, "sort", a, f)


@callback("order order_by", Array, (FnPtr, str), pure=False)
def order(st: RunState, a: Array, f: Any) -> Array:
    return st.built(Array([share(item) for item in _sorted(st, "order", a, f)]))  # type: ignore[no-any-return]


@callback("dedup", Array, (FnPtr, str), pure=False, mode=IN_PLACE)
def dedup(st: RunState, a: Array, f: Any) -> None:
    pointer = pointer_of(f)
    kept: list[Any] = []
    for item in list(a):
        if not kept or _compare(st, "dedup", pointer, kept[-1], item) is not True:
            kept.append(item)
    a[:] = kept


# Maps


def _entry(st: RunState, native: str, m: Map, f: FnPtr, key: str, value: Any) -> Any:
    st.charge(1)
    share(value)
    this = Cell(value)
    offers = {1: (True, (key,)), 2: (False, (key, value))}
    result = call_offered(st, native, f, this, offers)
    if this.value is not value:
        m[key] = this.value
    return result


@callback("filter", Map, FnPtr)
def filter_map(st: RunState, m: Map, f: FnPtr) -> Map:
    copy = Map(m)
    kept = {
        key: share(value)
        for key, value in m.ordered()
        if _entry(st, "filter", copy, f, key, value) is True
    }
    return st.built(Map(kept))  # type: ignore[no-any-return]


@callback("map", Map, FnPtr)
def map_map(st: RunState, m: Map, f: FnPtr) -> Map:
    copy = Map(m)
    items = {key: share(_entry(st, "map", copy, f, key, v)) for key, v in m.ordered()}
    return st.built(Map(items))  # type: ignore[no-any-return]


def _take_entries(st: RunState, native: str, m: Map, f: FnPtr, wanted: bool) -> Map:
    taken = Map()
    for key, value in m.ordered():
        if (_entry(st, native, m, f, key, value) is True) is wanted:
            taken[key] = m.pop(key)
    return st.built(taken)  # type: ignore[no-any-return]


@callback("drain", Map, FnPtr, pure=False, mode=IN_PLACE)
def drain_map(st: RunState, m: Map, f: FnPtr) -> Map:
    return _take_entries(st, "drain", m, f, True)


@callback("retain", Map, FnPtr, pure=False, mode=IN_PLACE)
def retain_map(st: RunState, m: Map, f: FnPtr) -> Map:
    return _take_entries(st, "retain", m, f, False)
