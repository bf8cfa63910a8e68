"""One finding of the linter, before it has a place in a file."""

from __future__ import annotations

from dataclasses import dataclass

from conduit.config import KeyPath


@dataclass(frozen=True, slots=True)
class Finding:
    """`code` is stable and documented; `path` leads to the value that the finding is about.

    `rule_is_dead` tells that the rule of the finding can match no query at all.
    """

    path: KeyPath
    message: str
    code: str
    rule_is_dead: bool = False


def rule_path(index: int, *rest: str | int) -> KeyPath:
    """Return the key path of the rule at `index`, or of something inside it."""
    return ("rules", "rules", index, *rest)
