"""Plain scalars of YAML 1.2: what text reads as a boolean, an integer, a number or null.

Only plain (unquoted) text is ever handed in: quoted text is always a string (chapter 10 section 3).
"""

from __future__ import annotations

import re
from typing import Final

_BOOLEANS: Final = {
    "true": True, "True": True, "TRUE": True,
    "false": False, "False": False, "FALSE": False,
}  # fmt: skip
NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})

_INTEGER: Final = re.compile(r"([-+]?)(?:0x([0-9a-fA-F]+)|0o([0-7]+)|0b([01]+)|([0-9]+))")
_NUMBER: Final = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_SPECIAL: Final = re.compile(r"([-+]?)\.(inf|Inf|INF)|\.(nan|NaN|NAN)")

#: Longer digit strings are above every limit; int() would refuse some thousands of digits.
_MAX_DIGITS: Final = 80


def read_boolean(text: str) -> bool | None:
    """Return the boolean, or None when the text is none (`yes`, `on` and the like are none)."""
    return _BOOLEANS.get(text)


def read_integer(text: str) -> int | None:
    """Return the integer (decimal, 0x, 0o, 0b; no `_`), or None when the text is none."""
    match = _INTEGER.fullmatch(text)
    if match is None:
        return None
    sign, hexadecimal, octal, binary, decimal = match.groups()
    for digits, base in ((hexadecimal, 16), (octal, 8), (binary, 2), (decimal, 10)):
        if digits is not None:
            significant = digits.lstrip("0") or "0"
            value = 2**512 if len(significant) > _MAX_DIGITS else int(significant, base)
            return -value if sign == "-" else value
    return None


def read_number(text: str) -> float | None:
    """Return the floating-point number, or None when the text is none."""
    if _NUMBER.fullmatch(text) is not None:
        return float(text)
    match = _SPECIAL.fullmatch(text)
    if match is None:
        return None
    if match.group(3):
        return float("nan")
    return float("-inf") if match.group(1) == "-" else float("inf")
