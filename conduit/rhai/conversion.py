"""Turns plain Python values into values of the language and back, for hosts."""

from __future__ import annotations

from typing import Any, Final

from conduit.rhai.values import I64_MAX, I64_MIN, STANDARD_TYPES, Array, Blob, Byte, Char, Map

_SEQUENCES: Final = (list, tuple)
_BYTES: Final = (bytes, bytearray)


def to_script(value: Any) -> Any:
    """`value` as a script takes it: lists and tuples as arrays, dicts as maps, bytes as blobs.

    Values of the language and host objects stay what they are. Raises OverflowError for an int
    outside i64 and TypeError for a dict whose keys are not all str.
    """
    kind = type(value)
    if kind is int and not I64_MIN <= value <= I64_MAX:
        raise OverflowError(f"{value} is no i64")
    if kind in STANDARD_TYPES:
        return value
    if kind in _SEQUENCES:
        items = Array([to_script(item) for item in value])
        items.nested = _held(items)
        return items
    if kind is dict:
        if not all(type(key) is str for key in value):
            raise TypeError("the keys of a map are strings")
        entries = Map({key: to_script(item) for key, item in value.items()})
        entries.nested = _held(entries.values())
        return entries
    return Blob(value) if kind in _BYTES else value


def _held(parts: Any) -> int:
    """What the containers among `parts` hold, for the limits on sizes."""
    return sum(len(part) + part.nested for part in parts if type(part) in (Array, Map, Blob))


def to_python(value: Any) -> Any:
    """The reverse: list, dict, bytes, str and int for array, map, blob, char and `u8`."""
    kind = type(value)
    if kind is Array:
        return [to_python(item) for item in value]
    if kind is Map:
        return {key: to_python(item) for key, item in value.ordered()}
    if kind is Blob:
        return bytes(value)
    if kind is Char:
        return str(value)
    return value.value if kind is Byte else value
