"""API keys of the control plane: what a caller presents, and whether it counts (chapter 60, 3)."""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Sequence
from typing import Any, Final

#: The message of a call that is turned away.
DENIED: Final = "missing or invalid API key (use Authorization: Bearer <key> or x-api-key)"


def credentials(metadata: Iterable[tuple[str, Any]] | None) -> list[str]:
    """Return the keys in the metadata of a call; values that are not visible ASCII are absent."""
    found: list[str] = []
    for name, value in metadata or ():
        if not isinstance(value, str) or not value.isascii() or not value.isprintable():
            continue
        if name == "authorization" and value.startswith(("Bearer ", "bearer ")):
            found.append(value[7:])
        elif name == "x-api-key":
            found.append(value)
    return found


def is_known(presented: Sequence[str], keys: Sequence[str]) -> bool:
    """True when one of the presented keys is one of `keys`."""
    # every pair is compared, so that the time says nothing about which one is near
    found = [
        hmac.compare_digest(credential.encode("utf-8"), key.encode("utf-8"))
        for credential in presented
        for key in keys
    ]
    return True in found


def requestor(has_certificate: bool, presented: Sequence[str], keys: Sequence[str]) -> str:
    """Return the `requestor` of the access log; never a key (chapter 60 section 4)."""
    if has_certificate:
        return "mtls"
    if not keys:
        return "anonymous"
    if is_known(presented, keys):
        return "api_key"
    return "api_key_rejected" if presented else "unauthenticated"
