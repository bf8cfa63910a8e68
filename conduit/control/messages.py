"""Messages of the control plane to and from plain trees with the keys of the file.

One walk over the descriptors serves every message; what the wire spells in another way than the
file stands in a few tables. Fields without presence count as absent at their zero value
(chapter 60 section 5).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from google.protobuf.message import Message

from conduit.config import Config
from conduit.control.config_tree import config_tree
from conduit.v1 import config_pb2 as pb

#: Fields that the file names differently, by message.
_FILE_NAMES: Final = {("CacheLmdbConfig", "map_size_bytes"): "map_size"}
_WIRE_NAMES: Final = {(message, name): field for (message, field), name in _FILE_NAMES.items()}
#: Lists whose presence has a field of its own.
_PRESENCE_OF: Final = {
    ("MetricsCategories", "include"): "include_set",
    ("MetricsCategories", "exclude"): "exclude_set",
    ("MetricsDimensionList", "dimensions"): "dimensions_set",
}
_PRESENCE_FIELDS: Final = frozenset(
    (message, field) for (message, _), field in _PRESENCE_OF.items()
)


def tree_of(message: Message) -> dict[str, Any]:
    """Return what a message carries as a plain tree; absent fields are left out."""
    kind = message.DESCRIPTOR.name
    if kind == "MetricsGranularity":
        return _granularity_tree(message)
    tree: dict[str, Any] = {}
    for field, value in message.ListFields():
        if (kind, field.name) in _PRESENCE_FIELDS:
            continue
        tree[_FILE_NAMES.get((kind, field.name), field.name)] = _plain(field, value)
    for (owner, name), presence in _PRESENCE_OF.items():
        if owner == kind and getattr(message, presence):
            # an empty list that is there
            tree.setdefault(name, [])
    return tree


def _granularity_tree(message: Any) -> dict[str, Any]:
    tree = {name: tree_of(family) for name, family in message.overrides.items()}
    return {"default": message.default, **tree} if message.default else tree


def _plain(field: Any, value: Any) -> Any:
    if _is_map(field):
        items = dict(value).items()
        return {key: tree_of(v) if isinstance(v, Message) else v for key, v in items}
    if field.is_repeated:
        return [tree_of(item) if isinstance(item, Message) else item for item in value]
    return tree_of(value) if isinstance(value, Message) else value


def _is_map(field: Any) -> bool:
    kind = field.message_type
    return kind is not None and kind.GetOptions().map_entry


def fill(message: Message, tree: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Write a plain tree into a message; yields the key paths that the wire cannot carry.

    Raises ValueError or TypeError for a value of the wrong type.
    """
    kind = message.DESCRIPTOR.name
    if kind == "MetricsGranularity":
        yield from _fill_granularity(message, tree, path)
        return
    fields = message.DESCRIPTOR.fields_by_name
    for name, value in tree.items():
        if value is None:
            continue
        field = fields.get(_WIRE_NAMES.get((kind, name), name))
        here = f"{path}.{name}" if path else name
        if field is None:
            yield here
            continue
        presence = _PRESENCE_OF.get((kind, name))
        if presence is not None:
            setattr(message, presence, True)
        yield from _fill_field(message, field, value, here)


def _fill_field(message: Message, field: Any, value: Any, path: str) -> Iterator[str]:
    target = getattr(message, field.name)
    if _is_map(field):
        for key, item in value.items():
            entry = field.message_type
            assert entry is not None
            if entry.fields_by_name["value"].message_type is None:
                target[key] = item
            else:
                yield from fill(target[key], item or {}, f"{path}.{key}")
    elif field.is_repeated:
        for index, item in enumerate(value):
            if field.message_type is None:
                target.append(item)
            else:
                yield from fill(target.add(), item or {}, f"{path}[{index}]")
    elif field.message_type is not None:
        # present even when it holds nothing
        target.SetInParent()
        yield from fill(target, value, path)
    else:
        setattr(message, field.name, value)


def _fill_granularity(message: Any, tree: Mapping[str, Any], path: str) -> Iterator[str]:
    families = {**(tree.get("overrides") or {}), **tree}
    message.default = families.pop("default", None) or ""
    families.pop("overrides", None)
    for name, family in families.items():
        given = {"dimensions": family} if isinstance(family, list) else (family or {})
        yield from fill(message.overrides[name], given, f"{path}.{name}")


def config_message(config: Config) -> pb.Config:
    """Return a whole configuration as a message, secrets included."""
    message = pb.Config()
    # keys of this implementation have no place on the wire
    list(fill(message, config_tree(config)))
    return message
