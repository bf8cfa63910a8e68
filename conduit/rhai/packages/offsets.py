"""How start, length and range arguments of the library select a part (chapter 36 section 15)."""

from __future__ import annotations

from conduit.rhai.values import Range


def span(size: int, start: int, count: int | None = None) -> tuple[int, int]:
    """Start and end within `size` items; nothing when there is nothing to take."""
    if start < 0:
        start = max(0, start + size)
    if start >= size or (count is not None and count <= 0):
        return min(start, size), min(start, size)
    end = size if count is None else min(size, start + count)
    return start, end


def range_span(size: int, selected: Range) -> tuple[int, int]:
    """The same for a range: a negative start becomes 0, an end below the start is raised to it."""
    start = max(0, selected.start)
    end = max(start, selected.end)
    return span(size, start, end - start + (1 if selected.inclusive else 0))


def place(size: int, index: int) -> int | None:
    """An index that may count from the end; None outside."""
    if index < 0:
        index += size
    return index if 0 <= index < size else None
