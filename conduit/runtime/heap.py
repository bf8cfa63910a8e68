"""The C library's heap: one for all threads, because they take turns anyway."""

from __future__ import annotations

import ctypes
from typing import Final

#: malloc.h: the largest number of heaps.
_M_ARENA_MAX: Final = -8


def use_one_heap() -> bool:
    """Keep glibc from giving threads heaps of their own; False where that is not possible.

    With a heap for every few of hundreds of threads, memory that was freed in one is not there for
    the others, and the process grows for hours.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        # another C library
        return False
    return bool(mallopt(_M_ARENA_MAX, 1))
