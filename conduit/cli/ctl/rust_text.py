"""Values in the spelling of the reference's debug output (chapter 60 section 9.5)."""

from __future__ import annotations

from collections.abc import Sequence

_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\", '"': '\\"', "\0": "\\0"}


def quoted(text: str) -> str:
    """Return a text in double quotes, control characters escaped."""
    return f'"{"".join(_escaped(c) for c in text)}"'


def listed(texts: Sequence[str]) -> str:
    """Return a list of texts: `["a", "b"]`."""
    return f"[{', '.join(map(quoted, texts))}]"


def option(value: str | int | float | None) -> str:
    """Return `None` or `Some(...)`; floats keep their fraction: `Some(10.0)`."""
    if value is None:
        return "None"
    if isinstance(value, str):
        return f"Some({quoted(value)})"
    if isinstance(value, float):
        return f"Some({_number(value)})"
    return f"Some({value})"


def switch(value: bool) -> str:
    """Return `true` or `false`."""
    return "true" if value else "false"


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    return character if character.isprintable() else f"\\u{{{ord(character):x}}}"


def _number(value: float) -> str:
    text = repr(value)
    mantissa, mark, exponent = text.partition("e")
    # 1e-07 is 1e-7 there
    return f"{mantissa}{mark}{int(exponent)}" if mark else text
