"""The published JSON Schema (draft 2020-12) as the loader uses it: read once, compiled once.

The same file serves editors. Two formats are our own: `byte-size` and `duration-ms-s`.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from conduit.config.quantities import parse_byte_size, parse_duration_ms

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator

#: A JSON Schema or one of its subschemas.
Schema = Mapping[str, Any]

SCHEMA_PATH: Final = os.path.join(os.path.dirname(__file__), "conduit.schema.json")


@functools.cache
def load_schema() -> Schema:
    """Return the schema of the whole file; raises OSError when the installation lacks it."""
    with open(SCHEMA_PATH, encoding="utf-8") as file:
        schema: Schema = json.load(file)
    return schema


@functools.cache
def validator() -> Draft202012Validator:
    """Return the compiled validator of the whole file."""
    return _validator_of(load_schema())


@functools.cache
def patch_validator() -> Draft202012Validator:
    """Return the compiled validator of a patch: of the top level only `schema_version` must be."""
    return _validator_of({**load_schema(), "required": ["schema_version"]})


def _validator_of(schema: Schema) -> Draft202012Validator:
    # imported here: half of the start-up time of a program that loads no configuration
    from jsonschema import Draft202012Validator, FormatChecker

    formats = FormatChecker(formats=())
    formats.checks("byte-size", raises=ValueError)(_is_byte_size)
    formats.checks("duration-ms-s", raises=ValueError)(_is_duration)
    return Draft202012Validator(schema, format_checker=formats)


def resolve(schema: Schema) -> Schema:
    """Return the schema that a local `$ref` (`#/$defs/NAME`) of `schema` names, else itself."""
    reference = schema.get("$ref")
    if reference is None:
        return schema
    found: Schema = load_schema()["$defs"][reference.rpartition("/")[2]]
    return found


def types_of(schema: Schema) -> tuple[str, ...]:
    """Return the JSON types that a resolved schema allows."""
    types = schema.get("type", ())
    return (types,) if isinstance(types, str) else tuple(types)


def _is_byte_size(value: object) -> bool:
    if isinstance(value, str):
        parse_byte_size(value)
    return True


def _is_duration(value: object) -> bool:
    if isinstance(value, str):
        parse_duration_ms(value)
    return True
