"""Byte sizes and duration strings of the configuration (chapter 10 sections 4.1 and 4.2)."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

_U64_MAX: Final = 2**64 - 1
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)?(.*)", re.DOTALL)
_DURATION = re.compile(r"([0-9]+)(ms|s)", re.IGNORECASE)
_FACTORS: Final = {"kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12, "pb": 10**15}
_IEC: Final = frozenset({"kib", "mib", "gib", "tib", "pib"})


def parse_byte_size(value: str | int) -> int:
    """Return a size in bytes: an integer, digits, or a coefficient with KB, MB, GB, TB or PB.

    The factors are powers of 1000; a fraction of a byte is cut off. Raises ValueError.
    """
    if isinstance(value, int):
        if not 0 <= value <= _U64_MAX:
            raise ValueError(f"size {value} must be from 0 to {_U64_MAX} bytes")
        return value
    text = value.strip()
    if not text:
        raise ValueError("size must not be empty")
    if len(text) > 64:
        raise ValueError("size is too long")
    match = _SIZE.fullmatch(text)
    number, suffix = (match.group(1), match.group(2)) if match else (None, text)
    if number is None:
        raise ValueError(f"size '{text}' must begin with a non-negative number")
    folded = suffix.lower()
    if folded in _IEC:
        raise ValueError(
            f"size '{text}': IEC binary suffixes are not accepted; use KB, MB, GB, TB or PB"
        )
    if not suffix:
        if not number.isdigit():
            raise ValueError(f"size '{text}': a fraction needs a suffix (KB, MB, GB, TB or PB)")
        size = int(number)
    elif folded in _FACTORS:
        size = int(Fraction(number.rstrip(".")) * _FACTORS[folded])
    else:
        raise ValueError(f"size '{text}': unknown suffix '{suffix}'; use KB, MB, GB, TB or PB")
    if size > _U64_MAX:
        raise ValueError(f"size '{text}' is above {_U64_MAX} bytes")
    return size


def parse_duration_ms(value: str) -> int:
    """Return a duration string (`250ms`, `1S`) in milliseconds; raises ValueError."""
    text = value.strip()
    match = _DURATION.fullmatch(text)
    if match is None or len(text) > 32:
        raise ValueError(
            f"duration '{text[:40]}' must include an ms or s unit right after whole digits, "
            "such as 250ms or 1s"
        )
    number = int(match.group(1))
    return number if match.group(2).lower() == "ms" else number * 1000
