"""Reading and writing `a[i]` (chapter 36 section 7.1).

An error carries in `choice` where it is reported: of a read, 0 is the index and 1 the bracket; of a
write, 0 is the operator, 1 the bracket, 2 the index and 3 the variable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conduit.rhai.errors import EvalError, mismatch
from conduit.rhai.text import display, type_name
from conduit.rhai.values import (
    CONTAINERS,
    I64_MAX,
    Array,
    Blob,
    Char,
    InclusiveRange,
    Map,
    Range,
    thaw,
)

if TYPE_CHECKING:
    from conduit.rhai.limits import RunState


def _index_type(st: RunState, index: Any) -> str:
    kind = type(index)
    if kind is Range:
        return "core::ops::range::Range<i64>"
    if kind is InclusiveRange:
        return "core::ops::range::RangeInclusive<i64>"
    return type_name(st, index)


def _bounds(kind: str, message: str, length: int, index: int, at: int) -> EvalError:
    fields = {"length": length, "index": index}
    return EvalError(kind, message, fields=fields, choice=at)


def array_bounds(length: int, index: int, at: int = 0) -> EvalError:
    """The error of an array or blob index out of range."""
    amount = {0: "array is empty", 1: "only 1 element in array"}.get(
        length, f"only {length} elements in array"
    )
    return _bounds(
        "ErrorArrayBounds", f"Array index {index} out of bounds: {amount}", length, index, at
    )


def string_bounds(length: int, index: int, at: int = 0) -> EvalError:
    """The error of a string index out of range."""
    amount = {0: "string is empty", 1: "only 1 character in string"}.get(
        length, f"only {length} characters in string"
    )
    return _bounds(
        "ErrorStringBounds", f"String index {index} out of bounds: {amount}", length, index, at
    )


def bit_bounds(index: int, at: int = 0) -> EvalError:
    """The error of a bit index out of range."""
    message = f"Bit-field index {index} out of bounds: only 64 bits in bit-field"
    return _bounds("ErrorBitFieldBounds", message, 64, index, at)


def _unavailable(st: RunState, value: Any, index: Any) -> EvalError:
    name = type_name(st, value)
    return EvalError(
        "ErrorIndexingType",
        f"Indexer unavailable: {name} [{type_name(st, index)}]",
        fields={"type": f"{name} [{type_name(st, index)}]"},
        choice=1,
    )


# Reading


def get_index(st: RunState, value: Any, index: Any, at: int = 0) -> Any:
    """`value[index]`, not yet shared. Raises EvalError."""
    kind = type(value)
    if kind is Array:
        if type(index) is not int:
            raise mismatch(_index_type(st, index), "i64", at)
        size = len(value)
        if -size <= index < size:
            return value[index]
        raise array_bounds(size, index, at)
    if kind is Map:
        if type(index) is str:
            return value.get(index)
        raise mismatch(_index_type(st, index), "string", at)
    if kind is str:
        if type(index) is int:
            size = len(value)
            if -size <= index < size:
                return Char(value[index])
            raise string_bounds(size, index, at)
        if isinstance(index, Range):
            start, end = slice_bounds(value, index, at)
            return value[start:end]
        raise mismatch(_index_type(st, index), "i64", at)
    if kind is int:
        return _get_bits(st, value, index, at)
    if kind is Blob:
        if type(index) is not int:
            raise mismatch(_index_type(st, index), "i64", at)
        size = len(value)
        if -size <= index < size:
            return value[index]
        raise array_bounds(size, index, at)
    getter = st.engine.index_getter(kind, type(index))
    if getter is not None:
        return getter(value, index)
    raise _unavailable(st, value, index)


def slice_bounds(text: str, index: Range, at: int) -> tuple[int, int]:
    """Start and end of a slice in characters."""
    size = len(text)
    if not size:
        return 0, 0
    start, end = index.start, index.end
    if start < 0:
        if start < -size:
            raise string_bounds(size, start, at)
        start += size
    start = min(start, size)
    end = max(end + size, 0) if end < 0 else min(end, size)
    if index.inclusive:
        if end == start and not (start == 0 and size == 1):
            return start, start  # the reference yields nothing for `s[2..=2]`
        end = min(end + 1, size)
    return start, max(start, end)


def _get_bits(st: RunState, value: int, index: Any, at: int) -> Any:
    if type(index) is int:
        if not -64 <= index < 64:
            raise bit_bounds(index, at)
        return (value >> (index & 63)) & 1 == 1
    if isinstance(index, Range):
        start, width = bit_range(index, at)
        return signed((value >> start) & ((1 << width) - 1))
    raise mismatch(_index_type(st, index), "i64", at)


def bit_range(index: Range, at: int) -> tuple[int, int]:
    """First bit and number of bits of a range. Raises EvalError ``ErrorBitFieldBounds``."""
    start, end = index.start, index.end
    if not 0 <= start < 64:
        raise bit_bounds(start, at)
    if end == I64_MAX:
        return start, 64 - start
    if index.inclusive:
        if not 0 <= end < 64:
            raise bit_bounds(end, at)
        end += 1
    elif not 0 <= end <= 64:
        raise bit_bounds(end, at)
    return start, max(0, end - start)


def signed(bits: int) -> int:
    """64 bits as i64."""
    return bits - (1 << 64) if bits > I64_MAX else bits


def replace_bits(value: int, start: int, width: int, bits: int) -> int:
    """`value` with `width` bits from `start` on replaced by the low bits of `bits`."""
    mask = ((1 << width) - 1) << start
    return signed(((value & ~mask) | ((bits << start) & mask)) & 0xFFFFFFFFFFFFFFFF)


# Writing


def set_index(st: RunState, value: Any, index: Any, new: Any, const: bool, name: str) -> Any:
    """Writes `value[index] = new`; returns the container, which for scalars is a new one.

    A container must be private to its holder. `const` and `name` are those of the variable it
    hangs on. Raises EvalError.
    """
    kind = type(value)
    if kind is Array or kind is Map:
        if const:
            raise constant_error(name, 3)
        if kind is Array:
            if type(index) is not int:
                raise mismatch(_index_type(st, index), "i64", 2)
            size = len(value)
            if not -size <= index < size:
                raise array_bounds(size, index, 2)
            value[index] = new
        else:
            if type(index) is not str:
                raise mismatch(_index_type(st, index), "string", 2)
            value[index] = new
        st.stored(value, new)
        return value
    if kind is str:
        return _set_characters(st, value, index, new)
    if kind is int:
        return _set_bits(st, value, index, new)
    if kind is Blob:
        if type(index) is not int:
            raise mismatch(_index_type(st, index), "i64", 2)
        size = len(value)
        if not -size <= index < size:
            raise array_bounds(size, index, 2)
        if type(new) is not int:
            raise mismatch(type_name(st, new), "INT")
        value[index] = new & 0xFF
        return value
    setter = st.engine.index_setter(kind, type(index), type(new))
    if setter is not None:
        if const:
            raise EvalError(
                "ErrorNonPureMethodCallOnConstant", "Cannot assign to indexer of constant"
            )
        setter(value, index, new)
        return value
    types = f"{type_name(st, value)} [{type_name(st, index)}] = {type_name(st, new)}"
    raise EvalError(
        "ErrorIndexingType", f"Indexer unavailable: {types}", fields={"type": types}, choice=1
    )


def constant_error(name: str, at: int = 0) -> EvalError:
    """`Cannot modify constant X`."""
    return EvalError(
        "ErrorAssignmentToConstant",
        f"Cannot modify constant {name}",
        fields={"variable": name},
        choice=at,
    )


def _set_characters(st: RunState, value: str, index: Any, new: Any) -> str:
    if type(index) is int:
        size = len(value)
        if not -size <= index < size:
            raise string_bounds(size, index, 2)
        if type(new) is not Char:
            raise mismatch(type_name(st, new), "char")
        # the reference counts a negative index from the start when writing
        place = -index if index < 0 else index
        if place >= size:
            return value
        return value[:place] + new + value[place + 1 :]
    if not isinstance(index, Range):
        raise mismatch(_index_type(st, index), "i64", 2)
    start, end = slice_bounds(value, index, 2)
    if index.inclusive and end == start and start < len(value):
        end += 1
    return st.sized_string(value[:start] + display(st, new) + value[end:])


def _set_bits(st: RunState, value: int, index: Any, new: Any) -> int:
    if type(index) is int:
        if not -64 <= index < 64:
            raise bit_bounds(index, 2)
        if type(new) is not bool:
            raise mismatch(type_name(st, new), "bool")
        return replace_bits(value, index & 63, 1, int(new))
    if not isinstance(index, Range):
        raise mismatch(_index_type(st, index), "i64", 2)
    start, width = bit_range(index, 2)
    if type(new) is not int:
        raise mismatch(type_name(st, new), "integer")
    return replace_bits(value, start, width, new)


# Steps inside a chain


def fetch_index(st: RunState, value: Any, index: Any) -> Any:
    """`value[index]` as something that may be changed: a container comes out private."""
    item = get_index(st, value, index)
    if type(item) not in CONTAINERS:
        return item
    if type(value) is not Array and type(value) is not Map:
        # a host's own container changes by its setter or not at all
        return thaw(item)
    if item.frozen:
        if len(item) > 64:
            st.charge(len(item) >> 4)
        item = value[index] = thaw(item)
    return item


def put_back_index(st: RunState, value: Any, index: Any, item: Any) -> Any:
    """After a change of `item`, fetched from `value[index]`: the container with it inside."""
    kind = type(value)
    if kind is Array or kind is Map:
        if kind is Map and index not in value and item is None:
            return value
        value[index] = item
        return value
    if kind is str:
        if type(item) is Char and type(index) is int:
            place = index + len(value) if index < 0 else index
            return value[:place] + item + value[place + 1 :]
        return value
    if kind is int:
        if type(index) is int and type(item) is not bool:
            return value
        if type(index) is not int and type(item) is not int:
            return value
        return _set_bits(st, value, index, item)
    if kind is Blob:
        if type(item) is int:
            value[index] = item & 0xFF
        return value
    setter = st.engine.index_setter(kind, type(index), type(item))
    if setter is not None:
        setter(value, index, item)
    return value
