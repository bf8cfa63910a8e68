"""Optional packages that a configuration may need, and the command that installs them."""

from __future__ import annotations

import importlib.util
from typing import Final

#: Module of each optional feature, and the extra that brings it.
_EXTRAS: Final = {
    "lmdb": "lmdb",
    "opentelemetry.exporter.otlp.proto.http": "otlp",
}


def missing_extra(module: str) -> str | None:
    """Return the install command for `module`, or None when it is installed.

    `module` is one of those that this file names; nothing is imported but its parent packages.
    """
    try:
        found = importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        found = False
    return None if found else f"pip install 'dns-conduit[{_EXTRAS[module]}]'"
