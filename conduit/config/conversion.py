"""Node tree to plain data, typed by the schema and not by the spelling (chapter 10 section 3).

A scalar becomes what its field wants where that is possible, and else what YAML reads it as, so
that the schema validator has something to object to. Unknown keys of lenient mappings are left out
with a warning; those of strict mappings stay, with no value, for the validator to reject.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from typing import Any, Final

from conduit.config.diagnostics import KeyPath
from conduit.config.document import Mapping, Node, Scalar, Sequence
from conduit.config.scalars import NULLS, read_boolean, read_integer, read_number
from conduit.config.schema import Schema, resolve, types_of

#: Names that keys had once, or have in other products' habits.
_FORMER_NAMES: Final = {
    "observation": "events",
    "id": "name",
    "sample_rate": "sample_percent",
}

#: Takes the key path, the key's node and the message of a warning.
Warn = Callable[[KeyPath, Scalar, str], None]

#: What the validator sees for the value of a key that no schema describes.
UNKNOWN: Final = None


def convert_document(root: Mapping, schema: Schema, warn: Warn) -> dict[str, Any]:
    """Return the plain data of a whole document, calling `warn` for each ignored key."""
    data: dict[str, Any] = _Conversion(warn).mapping(root, schema, ())
    return data


def suggestion(key: str, known: Iterable[str]) -> str:
    """Return the advice for an unknown key as the end of a message, empty when there is none."""
    choices = sorted(known)
    former = _FORMER_NAMES.get(key)
    if former in choices:
        return f"; did you mean '{former}'?"
    folded = key.strip().lower().replace("-", "_")
    if folded in choices:
        return f"; did you mean '{folded}'?"
    if len(key) > 64:
        return ""
    close = difflib.get_close_matches(folded, choices, n=1, cutoff=0.6)
    return f"; did you mean '{close[0]}'?" if close else ""


class _Conversion:
    """One conversion; aliased nodes are converted once for each schema that they meet."""

    def __init__(self, warn: Warn) -> None:
        self._warn = warn
        self._done: dict[tuple[int, int], Any] = {}

    def value(self, node: Node, schema: Schema, path: KeyPath) -> Any:
        schema = resolve(schema)
        if isinstance(node, Scalar):
            return _scalar(node, types_of(schema))
        known = (id(node), id(schema))
        if known not in self._done:
            if isinstance(node, Mapping):
                self._done[known] = self.mapping(node, schema, path)
            else:
                self._done[known] = self._sequence(node, schema, path)
        return self._done[known]

    def mapping(self, node: Mapping, schema: Schema, path: KeyPath) -> dict[str, Any]:
        properties = schema.get("properties", {})
        others = schema.get("additionalProperties", True)
        data: dict[str, Any] = {}
        for name, (key, child) in node.entries.items():
            if name in properties:
                data[name] = self.value(child, properties[name], (*path, name))
            elif others is False:
                data[name] = UNKNOWN
            elif others is not True:
                data[name] = self.value(child, others, (*path, name))
            elif properties:
                self._warn((*path, name), key, _ignored(name, properties))
        return data

    def _sequence(self, node: Sequence, schema: Schema, path: KeyPath) -> list[Any]:
        items = schema.get("items")
        if items is None:
            return [UNKNOWN] * len(node.items)
        return [self.value(item, items, (*path, i)) for i, item in enumerate(node.items)]


def _ignored(key: str, known: Iterable[str]) -> str:
    if key == "<<":
        return "unknown key '<<' is ignored: merge keys are not expanded"
    return f"unknown key '{key}' is ignored{suggestion(key, known)}"


def _scalar(node: Scalar, types: tuple[str, ...]) -> Any:
    text = node.text
    if node.plain and text in NULLS:
        if "null" in types or not types:
            return None
        if text == "" and "object" in types:
            return {}
        if text == "" and "array" in types:
            return []
    if not node.plain:
        return text
    if "boolean" in types and (boolean := read_boolean(text)) is not None:
        return boolean
    if "integer" in types and (integer := read_integer(text)) is not None:
        return integer
    if "number" in types and (number := read_number(text)) is not None:
        return number
    if "null" not in types and "string" not in types and text in NULLS:
        return None
    return text
