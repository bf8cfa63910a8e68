"""Where the validators write: findings by key path, turned into diagnostics with places."""

from __future__ import annotations

from typing import Final

from conduit.config.diagnostics import (
    Diagnostic,
    KeyPath,
    Severity,
    Stage,
    format_key_path,
    printable,
)
from conduit.config.document import Document

_MAX_MESSAGE: Final = 1000


class Report:
    """Errors and warnings of one run, in the order in which they were found.

    `document` gives the places; without one (a configuration that was merged, not read) a
    diagnostic has line and column 0.
    """

    def __init__(self, file: str, document: Document | None, stage: Stage = "validation") -> None:
        self._file = file
        self._document = document
        self._stage: Stage = stage
        self.errors: list[Diagnostic] = []
        self.warnings: list[Diagnostic] = []

    def error(self, path: KeyPath, message: str, code: str | None = None) -> None:
        """Record that the value at `path` makes the configuration unusable."""
        self.errors.append(self._diagnostic(path, message, code, "error"))

    def warn(self, path: KeyPath, message: str, code: str | None = None) -> None:
        """Record that the value at `path` works, though hardly as intended."""
        self.warnings.append(self._diagnostic(path, message, code, "warning"))

    def _diagnostic(
        self, path: KeyPath, message: str, code: str | None, severity: Severity
    ) -> Diagnostic:
        line, column = (0, 0) if self._document is None else self._document.place(path)
        # messages quote values of the file, which may hold anything
        text = printable(message, _MAX_MESSAGE)
        key = format_key_path(path)
        return Diagnostic(self._file, line, column, key, text, severity, self._stage, code)
