"""The error of a cache that cannot be opened or changed as its configuration asks."""

from __future__ import annotations


class CacheError(Exception):
    """A store cannot be opened or changed; the text is for the operator.

    Raised by opening stores and by live changes, never on the query path.
    """
