"""The library that every engine has; the other modules here put their functions into it."""

from __future__ import annotations

from typing import Final

from conduit.rhai.natives import Library

STANDARD: Final = Library()
