"""Findings of the schema validator as diagnostics: place, key path and what was expected."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from conduit.config.conversion import suggestion
from conduit.config.diagnostics import KeyPath, printable
from conduit.config.document import Document, Mapping, Node, Scalar
from conduit.config.scalars import NULLS
from conduit.config.schema import Schema, types_of, validator

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator, ValidationError

#: Key path, line, column, message and code of one finding.
Finding = tuple[KeyPath, int, int, str, str]

_EXPECTED: Final = {
    "object": "a mapping",
    "array": "a list",
    "string": "a text",
    "boolean": "true or false (unquoted)",
    "number": "a number",
}


def check_schema(
    data: Any, document: Document, using: Draft202012Validator | None = None
) -> list[Finding]:
    """Validate plain data against the published schema; findings in file order, none twice.

    `using` takes another validator than that of a whole file.
    """
    found: dict[tuple[KeyPath, str], Finding] = {}
    for error in (using or validator()).iter_errors(data):
        translate = _TRANSLATORS.get(str(error.validator), _other)
        for finding in translate(error, tuple(error.absolute_path), document):
            found.setdefault((finding[0], finding[3]), finding)
    return sorted(found.values(), key=lambda finding: (finding[1], finding[2]))


def _required(error: ValidationError, path: KeyPath, document: Document) -> Iterator[Finding]:
    properties = error.schema.get("properties", {}) if isinstance(error.schema, dict) else {}
    given = _names(error.instance)
    for name in (n for n in _names(error.validator_value) if n not in given):
        line, column = document.place(path)
        present = document.node(path)
        advice = ""
        if isinstance(present, Mapping):
            strangers = [key for key in present.entries if key not in properties]
            near = [key for key in strangers if suggestion(key, [name])]
            advice = f"; is '{printable(near[0])}' meant to be it?" if near else ""
        yield (*path, name), line, column, f"missing required key '{name}'{advice}", "missing-key"


def _unknown(error: ValidationError, path: KeyPath, document: Document) -> Iterator[Finding]:
    properties = error.schema.get("properties", {}) if isinstance(error.schema, dict) else {}
    node = document.node(path)
    for name in _names(error.instance):
        if name in properties:
            continue
        line, column = 0, 0
        if isinstance(node, Mapping) and name in node.entries:
            key = node.entries[name][0]
            line, column = key.line, key.column
        advice = suggestion(name, properties) or f"; known keys: {', '.join(sorted(properties))}"
        message = f"unknown key '{printable(name)}'{advice}"
        yield (*path, name), line, column, message, "unknown-key"


def _type(error: ValidationError, path: KeyPath, document: Document) -> Iterator[Finding]:
    schema = error.schema if isinstance(error.schema, dict) else {}
    line, column = document.place(path)
    node = document.node(path)
    # a tree that was made, not read, has no nodes
    got = _got(node) if node is not None or not path else f"'{printable(str(error.instance), 40)}'"
    message = f"expected {_expected(schema)}, got {got}"
    yield path, line, column, message, "type"


def _range(error: ValidationError, path: KeyPath, document: Document) -> Iterator[Finding]:
    schema = error.schema if isinstance(error.schema, dict) else {}
    line, column = document.place(path)
    node = document.node(path)
    shown = printable(node.text, 40) if isinstance(node, Scalar) else str(error.instance)
    yield path, line, column, f"expected {_expected(schema)}, got {shown}", "range"


def _format(error: ValidationError, path: KeyPath, document: Document) -> Iterator[Finding]:
    line, column = document.place(path)
    yield path, line, column, printable(str(error.cause or error.message), 200), "format"


def _other(error: ValidationError, path: KeyPath, document: Document) -> Iterator[Finding]:
    line, column = document.place(path)
    yield path, line, column, printable(error.message, 200), str(error.validator)


_TRANSLATORS: Final[
    dict[str, Callable[[ValidationError, KeyPath, Document], Iterator[Finding]]]
] = {
    "required": _required,
    "additionalProperties": _unknown,
    "type": _type,
    "minimum": _range,
    "maximum": _range,
    "format": _format,
}


def _names(value: object) -> list[str]:
    return [str(name) for name in value] if isinstance(value, (list, dict)) else []


def _expected(schema: Schema) -> str:
    parts: list[str] = []
    for name in types_of(schema):
        if name == "integer":
            parts.append(f"an integer from {schema.get('minimum')} to {schema.get('maximum')}")
        elif name != "null":
            parts.append(_EXPECTED[name])
    return " or ".join(parts)


def _got(node: Node | None) -> str:
    if node is None:
        return "nothing"
    if isinstance(node, Mapping):
        return "a mapping"
    if not isinstance(node, Scalar):
        return "a list"
    if not node.plain:
        return f'the quoted text "{printable(node.text, 40)}"'
    if node.text == "":
        return "nothing"
    return "null" if node.text in NULLS else f"'{printable(node.text, 40)}'"
