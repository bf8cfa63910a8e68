"""Where relative paths of a configuration lead: to the directory of its file (chapter 10, 5)."""

from __future__ import annotations

import os


def config_base_dir(path: str) -> str:
    """Return the directory that relative paths in the file at `path` are taken from."""
    return os.path.dirname(path) or "."


def resolve_path(base_dir: str, path: str) -> str:
    """Return `path` as it is when absolute, else below `base_dir`. No `~` or variable expansion."""
    return path if os.path.isabs(path) else os.path.join(base_dir, path)
