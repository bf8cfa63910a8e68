"""The values that scripts handle and Python has no exact type for, and the names of all types.

`()`, bool, i64, f64 and string are Python's None, bool, int, float and str. Arrays, maps and blobs
are copied on assignment in the language; here they are copied on the first write after having been
shared: whoever stores a container a second time calls `share`, whoever changes one calls `thaw`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, Final

I64_MIN: Final = -(2**63)
I64_MAX: Final = 2**63 - 1


class Char(str):
    """One Unicode scalar value."""

    __slots__ = ()


class Array(list[Any]):
    """An array. `frozen` means that more than one holder may see it: copy before a change.

    `nested` is at least what the containers inside hold, for the limits on sizes.
    """

    frozen = False
    nested = 0


class Map(dict[str, Any]):
    """An object map; listings go by key in code point order (chapter 36 section 5)."""

    frozen = False
    nested = 0

    def ordered(self) -> list[tuple[str, Any]]:
        """The entries by key."""
        return sorted(self.items(), key=_first)


class Blob(bytearray):
    """A byte array."""

    frozen = False
    nested = 0


def _first(entry: tuple[str, Any]) -> str:
    return entry[0]


CONTAINERS: Final[frozenset[type]] = frozenset({Array, Map, Blob})


class Range:
    """`start..end` over i64."""

    __slots__ = ("end", "start")
    inclusive = False

    def __init__(self, start: int, end: int) -> None:
        self.start = start
        self.end = end

    def python_range(self) -> range:
        """The numbers it covers."""
        return range(self.start, self.end)

    def __str__(self) -> str:
        return f"{self.start}.." if self.end == I64_MAX else f"{self.start}..{self.end}"


class InclusiveRange(Range):
    """`start..=end` over i64."""

    __slots__ = ()
    inclusive = True

    def python_range(self) -> range:
        return range(self.start, self.end + 1)

    def __str__(self) -> str:
        return f"{self.start}..=" if self.end == I64_MAX else f"{self.start}..={self.end}"


class Sequence:
    """A one-pass-per-loop sequence: a stepped range, `chars()` or `bits()`."""

    __slots__ = ("make",)

    def __init__(self, make: Callable[[], Iterator[Any]]) -> None:
        self.make = make

    def __iter__(self) -> Iterator[Any]:
        return self.make()


class Byte:
    """The `u8` that iterating a blob yields."""

    __slots__ = ("value",)

    def __init__(self, value: int) -> None:
        self.value = value


class Timestamp:
    """A moment of the monotonic clock, in seconds."""

    __slots__ = ("seconds",)

    def __init__(self, seconds: float | None = None) -> None:
        self.seconds = time.monotonic() if seconds is None else seconds


class Cell:
    """The box of a variable that closures share, that a host scope owns, or that is `this`.

    `locked` is set while a call chain rooted at the variable runs (chapter 36 section 10.4) and
    for ever in the box that stands for a name that does not exist.
    """

    __slots__ = ("const", "locked", "shared", "value")

    def __init__(self, value: Any = None, const: bool = False) -> None:
        self.value = value
        self.const = const
        self.locked = False
        self.shared = False


#: The box of a name that does not exist.
MISSING: Final = Cell()
MISSING.locked = True


class FnPtr:
    """A function pointer: a name with leading arguments, and for closures the code itself.

    `code` is None for a pointer by name. `cells` are the captured variables of a closure.
    """

    __slots__ = ("cells", "code", "curried", "name")

    def __init__(
        self,
        name: str,
        code: Any = None,
        cells: tuple[Any, ...] = (),
        curried: tuple[Any, ...] = (),
    ) -> None:
        self.name = name
        self.code = code
        self.cells = cells
        self.curried = curried

    @property
    def is_anonymous(self) -> bool:
        """Whether it came from a closure expression."""
        return self.name.startswith("anon$")


TYPE_NAMES: Final[dict[type, str]] = {
    type(None): "()",
    bool: "bool",
    int: "i64",
    float: "f64",
    str: "string",
    Char: "char",
    Array: "array",
    Map: "map",
    Blob: "blob",
    Range: "range",
    InclusiveRange: "range=",
    Sequence: "range",
    FnPtr: "Fn",
    Timestamp: "timestamp",
    Byte: "u8",
}

#: Types for which the built-in operators are the only ones (chapter 36 section 6.1).
STANDARD_TYPES: Final[frozenset[type]] = frozenset(TYPE_NAMES)


def share(value: Any) -> Any:
    """Marks a container as seen by several holders; returns `value`."""
    if type(value) in CONTAINERS:
        value.frozen = True
    return value


def thaw(value: Any) -> Any:
    """A copy of the frozen container `value` that its holder may change.

    The containers inside become shared between the two.
    """
    if type(value) is Blob:
        return Blob(value)
    copy = type(value)(value)
    for item in value if type(value) is Array else value.values():
        if type(item) in CONTAINERS:
            item.frozen = True
    if value.nested:
        copy.nested = value.nested
    return copy
