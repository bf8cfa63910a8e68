"""What the configuration loader reports: a diagnostic per finding, and the error of a failed load.

Both stages of loading and the offline checker speak in these objects, so that every finding carries
file, line, column and key path (design rule: every error is reported at once).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

#: A key path: mapping keys as text, list positions as integers from 0.
KeyPath = tuple[str | int, ...]

Severity = Literal["error", "warning"]
Stage = Literal["read", "parse", "validation", "compile"]


@dataclass(frozen=True)
class Diagnostic:
    """One finding at one place: `line` and `column` count from 1, 0 means that no place is known.

    `key` is the key path as text (`pools[0].backends[1].weight`, empty for the whole file) and
    `code` a short stable name of the kind of finding, or None.
    """

    __slots__ = ("code", "column", "file", "key", "line", "message", "severity", "stage")

    file: str
    line: int
    column: int
    key: str
    message: str
    severity: Severity
    stage: Stage
    code: str | None

    @property
    def place(self) -> str:
        """`FILE:LINE:COL`, or the file alone when no place is known."""
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file

    @property
    def detail(self) -> str:
        """Key path and message, without the place."""
        return f"{self.key}: {self.message}" if self.key else self.message

    def __str__(self) -> str:
        return f"{self.place}: {self.detail}"


class ConfigError(Exception):
    """A configuration that cannot be used.

    `diagnostics` holds all findings that are errors, in the order of the report; `stage` tells how
    far loading came: "read" (file unreadable), "parse" (not a configuration) or "validation"
    (values that cannot work). `warnings` holds what was found beside them.
    """

    def __init__(
        self,
        diagnostics: Sequence[Diagnostic],
        stage: Stage,
        warnings: Sequence[Diagnostic] = (),
    ) -> None:
        super().__init__("; ".join(str(d) for d in diagnostics))
        self.diagnostics = list(diagnostics)
        self.warnings = list(warnings)
        self.stage = stage


def format_key_path(path: KeyPath) -> str:
    """Return a key path as text: `listeners.listeners[0].address`."""
    parts: list[str] = []
    for step in path:
        if isinstance(step, int):
            parts.append(f"[{step}]")
        else:
            parts.append(f".{printable(step)}" if parts else printable(step))
    return "".join(parts)


def printable(text: str, limit: int = 80) -> str:
    """Return text from a file fit for one line of a message: control characters escaped, cut."""
    shown = text if len(text) <= limit else text[: limit - 3] + "..."
    if shown.isprintable():
        return shown
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in shown)
