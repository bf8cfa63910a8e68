"""Models of the configuration as plain trees with the keys of the file."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from conduit.config import FamilyGranularity, Granularity


def config_tree(model: Any) -> dict[str, Any]:
    """Return a configuration object (or a part of it) as a plain tree; unset keys are left out.

    The tree loads again to an equal object.
    """
    if isinstance(model, Granularity):
        tree = {name: config_tree(family) for name, family in model.families.items()}
        return tree if model.default is None else {"default": model.default, **tree}
    if isinstance(model, FamilyGranularity):
        found: dict[str, Any] = {}
        if model.dimensions is not None:
            found["dimensions"] = list(model.dimensions)
        if model.rcode is not None:
            found["rcode"] = model.rcode
        return found
    return {
        field.name: _plain(value)
        for field in dataclasses.fields(model)
        if (value := getattr(model, field.name)) is not None
    }


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return config_tree(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return value
