"""Plain, schema-valid data to the typed model: one generic builder driven by the field types."""

from __future__ import annotations

import dataclasses
import functools
import types
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from conduit.config.model import Config
from conduit.config.model_observe import FamilyGranularity, Granularity

T = TypeVar("T")

#: Makes a field's value from plain data.
Convert = Callable[[Any], Any]

_Plan = tuple[tuple[str, Convert | None, bool], ...]
_plans: dict[type[Any], _Plan] = {}

_UNIONS: Final = (Union, types.UnionType)


def build_config(data: Mapping[str, Any]) -> Config:
    """Return the model of a whole file; `data` has passed the schema."""
    return build(Config, data)


def build(model: type[T], data: Mapping[str, Any]) -> T:
    """Return a `model` (a dataclass of the configuration) from a plain mapping.

    Keys that the model does not know are ignored; None for a field that cannot be None means its
    default. Raises ValueError when a quantity does not parse.
    """
    if model is Granularity:
        return cast(T, _granularity(data))
    arguments: dict[str, Any] = {}
    for name, convert, nullable in _plan(model):
        if name not in data:
            continue
        value = data[name]
        if value is None:
            if nullable:
                arguments[name] = None
            continue
        arguments[name] = value if convert is None else convert(value)
    return model(**arguments)


def _plan(model: type[Any]) -> _Plan:
    """Return name, conversion (None: as it is) and whether None is a value, for each field."""
    if model not in _plans:
        hints = get_type_hints(model)
        plan = []
        for field in dataclasses.fields(model):
            kind = hints[field.name]
            members = get_args(kind) if get_origin(kind) in _UNIONS else (kind,)
            plain = [member for member in members if member is not type(None)]
            convert = field.metadata.get("convert") or _converter(plain[0])
            plan.append((field.name, convert, type(None) in members))
        _plans[model] = tuple(plan)
    return _plans[model]


def _converter(kind: Any) -> Convert | None:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is tuple:
        item = _converter(arguments[0])
        return tuple if item is None else _tuple_of(item)
    if origin is Mapping:
        return _mapping_of(_converter(arguments[1]))
    if dataclasses.is_dataclass(kind):
        return functools.partial(build, cast(type[Any], kind))
    # a tree that was not read may hold an integer for a number
    return float if kind is float else None


def _tuple_of(item: Convert) -> Convert:
    return lambda values: tuple(item(value) for value in values)


def _mapping_of(item: Convert | None) -> Convert:
    if item is None:
        return lambda values: types.MappingProxyType(dict(values))
    return lambda values: types.MappingProxyType(
        {name: item(value) for name, value in values.items()}
    )


def _granularity(data: Mapping[str, Any]) -> Granularity:
    """Families stand beside `default`, or below `overrides`; a list is short for `dimensions`."""
    families = {
        name: _family(value)
        for source in (data.get("overrides") or {}, data)
        for name, value in source.items()
        if name not in ("default", "overrides")
    }
    return Granularity(data.get("default"), types.MappingProxyType(families))


def _family(value: Any) -> FamilyGranularity:
    if isinstance(value, list):
        return FamilyGranularity(dimensions=tuple(value))
    return build(FamilyGranularity, value)
