"""The text forms of values (chapter 36 section 14): display, debug and raw."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from unicodedata import category

from conduit.rhai.values import (
    TYPE_NAMES,
    Array,
    Blob,
    Byte,
    Char,
    FnPtr,
    Map,
    Range,
    Sequence,
    Timestamp,
)

if TYPE_CHECKING:
    from conduit.rhai.limits import RunState

#: Shown with an exponent beyond these (section 14.3).
_LARGE = 9999999827968.0
_SMALL = 9.9999998245167e-14
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\0": "\\0"}
#: Characters of a string that are escaped without a look at the limits.
_PIECE = 4096
#: Characters that may need an escape: all but printable ASCII without quote and backslash.
_SUSPECTS = re.compile(r"[^ !#-\[\]-~]")
_ESCAPED = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs", "Mn", "Me"})


def type_name(st: RunState, value: Any) -> str:
    """The name that `type_of` gives."""
    kind = type(value)
    name = TYPE_NAMES.get(kind)
    return st.engine.type_name(kind) if name is None else name


def signature_name(st: RunState, value: Any) -> str:
    """How a type is named in `Function not found` texts."""
    if type(value) is str:
        return "&str | ImmutableString | String"
    return type_name(st, value)


def signature(st: RunState, name: str, values: tuple[Any, ...]) -> str:
    """`name (T1, T2)`."""
    return f"{name} ({', '.join([signature_name(st, value) for value in values])})"


def display(st: RunState, value: Any) -> str:
    """The form of `print`, `to_string` and interpolation."""
    kind = type(value)
    if kind is str:
        return value  # type: ignore[no-any-return]
    if kind is int:
        return int.__repr__(value)
    if kind is Char:
        return str.__str__(value)
    if value is None:
        return ""
    if kind is bool:
        return "true" if value else "false"
    if kind is float:
        return display_float(value)
    if kind is Array or kind is Map:
        return st.sized_string(_container(st, value, False))
    return _other(st, value, False)


def debug(st: RunState, value: Any, raw: bool = False) -> str:
    """The form of `debug` and inside containers; `raw` quotes chars."""
    kind = type(value)
    if kind is str:
        return quoted(value) if len(value) <= _PIECE else _quoted_long(st, value)
    if kind is int:
        return int.__repr__(value)
    if kind is Char:
        return f"'{value}'" if raw else str.__str__(value)
    if value is None:
        return "()"
    if kind is bool:
        return "true" if value else "false"
    if kind is float:
        return debug_float(value)
    if kind is Array or kind is Map:
        return _container(st, value, raw)
    return _other(st, value, True)


def raw(st: RunState, value: Any) -> str:
    """The form in error texts (section 14.2)."""
    if type(value) is Array or type(value) is Map:
        return _container(st, value, True)
    return display(st, value)


def _container(st: RunState, value: Any, raw_form: bool) -> str:
    if len(value) > 64:
        st.charge(len(value) >> 2)
    parts: list[str] = []
    size = 2
    limit = st.limits.max_string_size
    is_array = type(value) is Array
    for item in value if is_array else value.ordered():
        if is_array:
            part = debug(st, item, raw_form)
        else:
            part = f"{quoted(item[0])}: {debug(st, item[1], raw_form)}"
        parts.append(part)
        # looked at on the way: many holders of one long string cost nothing until now
        size += len(part) + 2
        if limit and size - 2 > limit:
            st.string_room(size)
    inside = ", ".join(parts)
    return f"[{inside}]" if is_array else f"#{{{inside}}}"


def _other(st: RunState, value: Any, debugging: bool) -> str:
    kind = type(value)
    if kind is Blob:
        st.string_room(len(value) * 2)
        text = value.hex()
        groups = [text[i : i + 16] for i in range(0, len(text), 16)]
        return "[" + " ".join(groups) + "]"
    if kind is FnPtr:
        return f"Fn({value.name})"
    if isinstance(value, Range):
        return str(value)
    if kind is Byte:
        return str(value.value)
    if kind is Timestamp:
        return "<timestamp>"
    if kind is Sequence:
        return "range"
    return st.engine.host_text(value, debugging)


def display_float(value: float) -> str:
    """A float for readers."""
    if value == 0:
        return "0.0"
    size = abs(value)
    if size in (float("inf"),) or value != value:
        return _special(value)
    if size > _LARGE or size < _SMALL:
        return exponent_form(value)
    return positional(value)


def debug_float(value: float) -> str:
    """A float for programmers."""
    size = abs(value)
    if size == float("inf") or value != value:
        return _special(value)
    if size >= 1e16 or 0 < size < 1e-4:
        return exponent_form(value)
    return repr(value)


def _special(value: float) -> str:
    if value != value:
        return "NaN"
    return "inf" if value > 0 else "-inf"


def positional(value: float) -> str:
    """All digits without an exponent; `.0` when integral."""
    text = repr(value)
    if "e" in text:
        text = format(Decimal(text), "f")
        return text if "." in text else f"{text}.0"
    return text


def exponent_form(value: float) -> str:
    """Shortest digits as `d.ddde±N` without `+` and leading zeros."""
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    text = "".join(map(str, digits)).rstrip("0") or "0"
    power = int(exponent) + len(digits) - 1
    mantissa = text[0] + ("." + text[1:] if len(text) > 1 else "")
    return f"{'-' if sign else ''}{mantissa}e{power}"


def quoted(text: str) -> str:
    """A string in quotes with escapes (section 14.4)."""
    return f'"{_SUSPECTS.sub(_escaped, text)}"'


def _quoted_long(st: RunState, text: str) -> str:
    """The same for a long one, in pieces between which the limits are looked at."""
    parts: list[str] = []
    size = 0
    limit = st.limits.max_string_size
    for start in range(0, len(text), _PIECE):
        st.charge(_PIECE >> 4)
        parts.append(_SUSPECTS.sub(_escaped, text[start : start + _PIECE]))
        size += len(parts[-1])
        if limit and size > limit:
            st.string_room(size)
    inside = "".join(parts)
    return f'"{inside}"'


def _escaped(match: re.Match[str]) -> str:
    character = match[0]
    escape = _ESCAPES.get(character)
    if escape is not None:
        return escape
    if category(character) in _ESCAPED:
        return f"\\u{{{ord(character):x}}}"
    return character
