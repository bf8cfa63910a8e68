"""Outcomes of a rule pass on one hook (chapter 30 section 6.2)."""

from __future__ import annotations

from typing import Final

CONTINUE: Final = 0
DROP: Final = 1
RETRY: Final = 2
