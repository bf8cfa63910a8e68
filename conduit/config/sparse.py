"""Parts of a configuration: patches, single blocks, trees whose empty keys the wire left out.

A patch has the keys of the file, but needs `schema_version` only (chapter 10 section 9.1). What is
wrong is reported as for a whole file: ConfigError with places and key paths.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from conduit.config import document as nodes
from conduit.config.construction import build_config
from conduit.config.conversion import Warn, convert_document
from conduit.config.diagnostics import ConfigError, Diagnostic, KeyPath, format_key_path, printable
from conduit.config.document import Document, DocumentError, Scalar, parse_document
from conduit.config.loader import read_text
from conduit.config.model import Config
from conduit.config.schema import Schema, load_schema, patch_validator, resolve, types_of, validator
from conduit.config.schema_errors import Finding, check_schema

#: What a required key that the wire cannot carry when it is empty stands for, by JSON type.
_EMPTY: Final[Mapping[str, Any]] = {"array": (), "string": ""}


def load_patch(path: str, warnings: list[Diagnostic] | None = None) -> dict[str, Any]:
    """Return the patch in the file at `path` as plain data; ignored keys go to `warnings`.

    Raises ConfigError with stage "read" or "parse".
    """
    document = _parsed(read_text(path), path)
    tree = convert_document(document.root, load_schema(), _warn(path, warnings))
    _raise(check_schema(tree, document, patch_validator()), path)
    return tree


def load_metrics_patch(path: str, warnings: list[Diagnostic] | None = None) -> dict[str, Any]:
    """Return a sparse metrics block: the document itself, or what it has under `metrics`.

    Raises ConfigError like load_patch.
    """
    document = _parsed(read_text(path), path)
    root = document.root
    block = root.entries.get("metrics", (None, root))[1]
    if not isinstance(block, nodes.Mapping):
        place = (block.line, block.column)
        _raise([(("metrics",), *place, "expected a mapping", "type")], path)
        raise AssertionError("raised above")
    schema = load_schema()["properties"]["metrics"]
    tree = convert_document(block, resolve(schema), _warn(path, warnings))
    _raise(check_schema({"schema_version": 1, "metrics": tree}, document, patch_validator()), path)
    return tree


def read_config(text: str, path: str) -> Config:
    """Return the model of a whole file without asking whether its values can work.

    For comparing configurations, also those of other hosts. Raises ConfigError with stage "parse".
    """
    document = _parsed(text, path)
    tree = convert_document(document.root, load_schema(), _warn(path, None))
    _raise(check_schema(tree, document, validator()), path)
    return build_config(tree)


def check_patch_tree(tree: Mapping[str, Any], path: str) -> None:
    """Raise ConfigError (stage "parse") when a patch made of plain data is no patch."""
    _raise(check_schema(tree, Document(nodes.Mapping(0, 0)), patch_validator()), path)


def completed(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Return plain data with absent required lists and texts filled in as empty ones.

    A message of the control plane has no way to say that an empty list or text is there; what
    must not be empty still fails validation.
    """
    done: dict[str, Any] = _completed(tree, load_schema(), top=True)
    return done


def _completed(value: Any, schema: Schema, top: bool = False) -> Any:
    schema = resolve(schema)
    if isinstance(value, (list, tuple)):
        items = schema.get("items")
        return [_completed(item, items) for item in value] if items is not None else list(value)
    if not isinstance(value, Mapping):
        return value
    properties = schema.get("properties", {})
    others = schema.get("additionalProperties")
    filled: dict[str, Any] = {}
    for key, item in value.items():
        below = properties.get(key, others)
        filled[key] = _completed(item, below) if isinstance(below, Mapping) else item
    for key in () if top else schema.get("required", ()):
        kinds = [kind for kind in types_of(resolve(properties[key])) if kind in _EMPTY]
        if kinds and filled.get(key) is None:
            filled[key] = [] if kinds[0] == "array" else ""
    return filled


def _parsed(text: str, path: str) -> Document:
    try:
        return parse_document(text)
    except DocumentError as error:
        _raise([((), error.line, error.column, error.message, "syntax")], path)
        raise AssertionError("raised above") from error


def _raise(findings: list[Finding], path: str) -> None:
    if findings:
        raise ConfigError(
            [
                Diagnostic(
                    path,
                    line,
                    column,
                    format_key_path(key),
                    printable(message, 1000),
                    "error",
                    "parse",
                    code,
                )
                for key, line, column, message, code in findings
            ],
            "parse",
        )


def _warn(path: str, warnings: list[Diagnostic] | None) -> Warn:
    def warn(key: KeyPath, node: Scalar, message: str) -> None:
        if warnings is not None:
            place = (node.line, node.column, format_key_path(key))
            text = printable(message, 200)
            warnings.append(Diagnostic(path, *place, text, "warning", "parse", "unknown-key"))

    return warn
