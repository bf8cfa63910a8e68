"""The standard library of the language (chapter 36 section 15)."""

from conduit.rhai.packages import (
    arrays,
    bits,
    blobs,
    callbacks,
    json,
    language,
    maps,
    numbers,
    ranges,
    strings,
    time,
)
from conduit.rhai.packages.standard import STANDARD

__all__ = [
    "STANDARD",
    "arrays",
    "bits",
    "blobs",
    "callbacks",
    "json",
    "language",
    "maps",
    "numbers",
    "ranges",
    "strings",
    "time",
]
