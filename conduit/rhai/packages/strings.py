"""Functions of strings and chars (chapter 36 section 15.4)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from conduit.rhai.natives import ANY, REPLACE
from conduit.rhai.operators import add, encoded, without
from conduit.rhai.packages.offsets import place, range_span, span
from conduit.rhai.packages.standard import STANDARD
from conduit.rhai.values import Array, Blob, Char, InclusiveRange, Range, Sequence

if TYPE_CHECKING:
    from conduit.rhai.limits import RunState

fn = STANDARD.fn
#: The characters of the Unicode property White_Space; Python's own set is larger.
WHITE_SPACE: Final = (
    "\t\n\x0b\x0c\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009"
    "\u200a\u2028\u2029\u202f\u205f\u3000"
)
_BLANK_RUN: Final = re.compile(f"[{WHITE_SPACE}]+")
_TEXT = (str, Char)
_RANGES = (Range, InclusiveRange)


def trimmed(text: str) -> str:
    """Without white space at both ends."""
    return text.strip(WHITE_SPACE)


def _chars(st: RunState, text: str) -> list[Any]:
    st.array_room(len(text))
    return [Char(c) for c in text]


@fn("len", str, getter=True)
def length(s: str) -> int:
    return len(s)


@fn("bytes", str, getter=True)
def byte_length(s: str) -> int:
    return len(s) if s.isascii() else len(encoded(s))


@fn("is_empty", str, getter=True)
def is_empty(s: str) -> bool:
    return not s


@fn("to_upper", str, context=True)
def to_upper(st: RunState, s: str) -> str:
    return st.sized_string(s.upper())


@fn("to_lower", str, context=True)
def to_lower(st: RunState, s: str) -> str:
    return st.sized_string(s.lower())


@fn("to_upper", Char)
def char_to_upper(c: Char) -> Char:
    upper = str(c).upper()
    return Char(upper) if len(upper) == 1 else c


@fn("to_lower", Char)
def char_to_lower(c: Char) -> Char:
    lower = str(c).lower()
    return Char(lower) if len(lower) == 1 else c


@fn("make_upper", str, pure=False, mode=REPLACE, context=True)
def make_upper(st: RunState, s: str) -> tuple[str, None]:
    return st.sized_string(s.upper()), None


@fn("make_lower", str, pure=False, mode=REPLACE, context=True)
def make_lower(st: RunState, s: str) -> tuple[str, None]:
    return st.sized_string(s.lower()), None


@fn("make_upper", Char, pure=False, mode=REPLACE)
def char_make_upper(c: Char) -> tuple[Char, None]:
    return char_to_upper(c), None


@fn("make_lower", Char, pure=False, mode=REPLACE)
def char_make_lower(c: Char) -> tuple[Char, None]:
    return char_to_lower(c), None


@fn("trim", str, pure=False, mode=REPLACE)
def trim(s: str) -> tuple[str, None]:
    return trimmed(s), None


@fn("clear", str, pure=False, mode=REPLACE)
def clear(s: str) -> tuple[str, None]:
    del s
    return "", None


@fn("contains", str, _TEXT)
def contains(s: str, part: str) -> bool:
    return part in s


@fn("starts_with", str, _TEXT)
def starts_with(s: str, part: str) -> bool:
    return s.startswith(part)


@fn("ends_with", str, _TEXT)
def ends_with(s: str, part: str) -> bool:
    return s.endswith(part)


@fn("index_of", str, _TEXT)
def index_of(s: str, part: str) -> int:
    return s.find(part)


@fn("index_of", str, _TEXT, int)
def index_of_from(s: str, part: str, start: int) -> int:
    if start < 0:
        start = max(0, start + len(s))
    return -1 if start >= len(s) else s.find(part, start)


@fn("get", str, int)
def get(s: str, index: int) -> Char | None:
    at = place(len(s), index)
    return None if at is None else Char(s[at])


@fn("set", str, int, Char, pure=False, mode=REPLACE)
def put(s: str, index: int, c: Char) -> tuple[str, None]:
    at = place(len(s), index)
    return (s if at is None else s[:at] + c + s[at + 1 :]), None


@fn("sub_string", str, int)
def sub_string_from(s: str, start: int) -> str:
    first, end = span(len(s), start)
    return s[first:end]


@fn("sub_string", str, int, int)
def sub_string(s: str, start: int, count: int) -> str:
    first, end = span(len(s), start, count)
    return s[first:end]


@fn("sub_string", str, _RANGES)
def sub_string_range(s: str, selected: Range) -> str:
    first, end = range_span(len(s), selected)
    return s[first:end]


@fn("crop", str, int, pure=False, mode=REPLACE)
def crop_from(s: str, start: int) -> tuple[str, None]:
    return sub_string_from(s, start), None


@fn("crop", str, int, int, pure=False, mode=REPLACE)
def crop(s: str, start: int, count: int) -> tuple[str, None]:
    return sub_string(s, start, count), None


@fn("crop", str, _RANGES, pure=False, mode=REPLACE)
def crop_range(s: str, selected: Range) -> tuple[str, None]:
    return sub_string_range(s, selected), None


@fn("truncate", str, int, pure=False, mode=REPLACE)
def truncate(s: str, count: int) -> tuple[str, None]:
    return s[: max(0, count)], None


@fn("pop", str, pure=False, mode=REPLACE)
def pop(s: str) -> tuple[str, Char | None]:
    return s[:-1], Char(s[-1]) if s else None


@fn("pop", str, int, pure=False, mode=REPLACE)
def pop_many(s: str, count: int) -> tuple[str, str]:
    at = len(s) - min(len(s), max(0, count))
    return s[:at], s[at:]


@fn("remove", str, _TEXT, pure=False, mode=REPLACE)
def remove(s: str, part: str) -> tuple[str, None]:
    return (without(s, part) if s else s), None


@fn("replace", str, _TEXT, _TEXT, pure=False, mode=REPLACE, context=True)
def replace(st: RunState, s: str, old: str, new: str) -> tuple[str, None]:
    growth = s.count(old) * (len(new) - len(old))
    st.string_room(len(s) + max(0, growth))
    return st.sized_string(s.replace(old, new)), None


@fn("pad", str, int, _TEXT, pure=False, mode=REPLACE, context=True)
def pad(st: RunState, s: str, count: int, filler: str) -> tuple[str, None]:
    missing = count - len(s)
    if missing <= 0 or not filler:
        return s, None
    st.string_room(count)
    copies = -(-missing // len(filler))
    return st.sized_string(s + (str(filler) * copies)[:missing]), None


@fn("append", str, ANY, pure=False, mode=REPLACE, context=True)
def append(st: RunState, s: str, value: Any) -> tuple[str, None]:
    result = add(st, s, value)
    return result, None


# Parts


@fn("split", str, context=True)
def split_blanks(st: RunState, s: str) -> Array:
    if not s:
        return Array([""])
    st.charge(len(s) >> 6)
    # cut in no more parts than it takes to see that there are too many
    most = st.limits.max_array_size
    parts = [part for part in _BLANK_RUN.split(s, most + 2 if most else 0) if part]
    st.array_room(len(parts))
    return Array(parts)


@fn("split", str, int)
def split_at(s: str, index: int) -> Array:
    size = len(s)
    if index <= 0:
        at = size + index
        return Array([s[:at], s[at:]]) if at >= 0 else Array(["", s])
    return Array([s[:index], s[index:]])


def _pieces(st: RunState, s: str, separator: str, limit: int) -> list[str]:
    """At most `limit` parts from the start."""
    if limit <= 1:
        return [s]
    if separator:
        st.charge(len(s) >> 6)
        st.array_room(min(limit, s.count(separator) + 1))
        return s.split(separator, limit - 1)
    st.array_room(min(limit, len(s) + 2))
    parts = ["", *s, ""]
    if len(parts) <= limit:
        return parts
    return [*parts[: limit - 1], "".join(parts[limit - 1 :])]


def _pieces_from_end(st: RunState, s: str, separator: str, limit: int) -> list[str]:
    """At most `limit` parts from the end, the last one first."""
    if limit <= 1:
        return [s]
    if separator:
        st.charge(len(s) >> 6)
        st.array_room(min(limit, s.count(separator) + 1))
        return s.rsplit(separator, limit - 1)[::-1]
    st.array_room(min(limit, len(s) + 2))
    parts = ["", *s[::-1], ""]
    if len(parts) <= limit:
        return parts
    return [*parts[: limit - 1], "".join(parts[limit - 1 :])[::-1]]


@fn("split", str, _TEXT, context=True)
def split(st: RunState, s: str, separator: str) -> Array:
    return Array(_pieces(st, s, str(separator), len(s) + 3))


@fn("split", str, _TEXT, int, context=True)
def split_some(st: RunState, s: str, separator: str, limit: int) -> Array:
    return Array(_pieces(st, s, str(separator), min(limit, len(s) + 3)))


@fn("split_rev", str, _TEXT, context=True)
def split_rev(st: RunState, s: str, separator: str) -> Array:
    return Array(_pieces_from_end(st, s, str(separator), len(s) + 3))


@fn("split_rev", str, _TEXT, int, context=True)
def split_rev_some(st: RunState, s: str, separator: str, limit: int) -> Array:
    return Array(_pieces_from_end(st, s, str(separator), min(limit, len(s) + 3)))


@fn("to_chars", str, context=True)
def to_chars(st: RunState, s: str) -> Array:
    return Array(_chars(st, s))


@fn("to_blob", str, context=True)
def to_blob(st: RunState, s: str) -> Blob:
    data = encoded(s)
    st.array_room(len(data))
    return Blob(data)


def _char_sequence(text: str) -> Sequence:
    def walk() -> Iterator[Char]:
        return map(Char, text)

    return Sequence(walk)


@fn("chars", str, getter=True)
def chars(s: str) -> Sequence:
    return _char_sequence(s)


@fn("chars", str, int)
def chars_from(s: str, start: int) -> Sequence:
    first, end = span(len(s), start)
    return _char_sequence(s[first:end])


@fn("chars", str, int, int)
def chars_part(s: str, start: int, count: int) -> Sequence:
    first, end = span(len(s), start, count)
    return _char_sequence(s[first:end])


@fn("chars", str, _RANGES)
def chars_range(s: str, selected: Range) -> Sequence:
    start = max(0, selected.start)
    end = selected.end + (1 if selected.inclusive else 0)
    return _char_sequence(s[start : max(start, end)])
