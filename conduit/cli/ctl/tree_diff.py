"""The differences of two configurations as a list of changes with key paths.

Entries of lists that have names are compared by name, not by place. Values are those of the models,
so that a default that is spelt out is no difference. Whether a change needs a restart is what the
published schema says of its key.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from conduit.config import Config, DataSourceLimits, Pool, Sink
from conduit.config.schema import Schema, load_schema, resolve
from conduit.control.config_tree import config_tree

Kind = Literal["added", "removed", "changed", "moved"]

#: Keys whose values are never shown.
_SECRETS: Final = frozenset({"api_keys", "headers"})
#: What an entry of a list is called, by the list's key; the first key that is set counts.
_IDENTITIES: Final[Mapping[str, tuple[str, ...]]] = {
    "pools": ("name",),
    "backends": ("name", "address"),
    "data_sources": ("name",),
    "caches": ("name",),
    "sinks": ("name", "export_id"),
    "user_metrics": ("name",),
}
#: Lists whose order decides what happens.
_ORDERED: Final = frozenset({"rules"})


@dataclass(frozen=True)
class Change:
    """One difference; `before` is None for what is added, `after` for what is removed."""

    kind: Kind
    path: str
    before: Any
    after: Any
    restart: bool


def differences(before: Config, after: Config) -> list[Change]:
    """Return what changes from one configuration to the other, in the order of the keys."""
    found: list[Change] = []
    old, new = config_tree(_spelt_out(before)), config_tree(_spelt_out(after))
    schema = load_schema()
    for key in sorted({*old, *new}, key=list(schema["properties"]).index):
        below = schema["properties"][key]
        found += _compare(old.get(key), new.get(key), key, key, below, _needs_restart(below))
    return found


def _spelt_out(config: Config) -> Config:
    """Return the configuration with the defaults that unset values stand for."""
    metrics = config.metrics
    if metrics is not None and not metrics.profile:
        metrics = dataclasses.replace(metrics, profile=None)
    return dataclasses.replace(
        config,
        dataplane=config.dataplane_or_default(),
        shutdown=config.shutdown_or_default(),
        data_source_limits=config.data_source_limits or DataSourceLimits(),
        metrics=metrics,
        events=dataclasses.replace(
            config.events, sinks=tuple(map(_spelt_out_sink, config.events.sinks))
        ),
        pools=tuple(map(_spelt_out_pool, config.pools)),
    )


def _spelt_out_pool(pool: Pool) -> Pool:
    # a marker in a file means nothing
    return dataclasses.replace(
        pool,
        remove=None,
        backends=tuple(
            dataclasses.replace(backend, weight=backend.effective_weight, remove=None)
            for backend in pool.backends
        ),
    )


def _spelt_out_sink(sink: Sink) -> Sink:
    name = sink.canonical_name
    return dataclasses.replace(
        sink,
        name=name,
        export_id=None if sink.identity == name else sink.identity,
        connect_retry=sink.connect_retry.resolved(),
    )


def _compare(
    old: Any, new: Any, key: str, path: str, schema: Schema, restart: bool
) -> Iterator[Change]:
    if old == new:
        return
    schema = resolve(schema)
    if isinstance(old, dict) and isinstance(new, dict):
        if key not in _SECRETS:
            yield from _mappings(old, new, path, schema, restart)
            return
    elif isinstance(old, list) and isinstance(new, list) and _are_named(key, old, new):
        yield from _named_lists(old, new, key, path, schema, restart)
        return
    kind: Kind = "added" if old is None else "removed" if new is None else "changed"
    yield Change(kind, path, _shown(key, old), _shown(key, new), restart)


def _mappings(
    old: dict[str, Any], new: dict[str, Any], path: str, schema: Schema, restart: bool
) -> Iterator[Change]:
    properties = schema.get("properties", {})
    others = schema.get("additionalProperties")
    for name in [*old, *(name for name in new if name not in old)]:
        below = properties.get(name, others)
        below = below if isinstance(below, Mapping) else {}
        needs = _needs_restart(below, restart)
        yield from _compare(old.get(name), new.get(name), name, f"{path}.{name}", below, needs)


def _named_lists(
    old: list[Any], new: list[Any], key: str, path: str, schema: Schema, restart: bool
) -> Iterator[Change]:
    before = {_identity(key, entry): entry for entry in old}
    after = {_identity(key, entry): entry for entry in new}
    items = schema.get("items", {})
    for name in [*before, *(name for name in after if name not in before)]:
        yield from _compare(
            before.get(name), after.get(name), "", f"{path}[{name}]", items, restart
        )
    kept = [name for name in after if name in before]
    if key in _ORDERED and kept != [name for name in before if name in after]:
        yield Change("moved", path, list(before), list(after), restart)


def _are_named(key: str, old: list[Any], new: list[Any]) -> bool:
    """True when every entry of both lists has a name of its own."""
    for entries in (old, new):
        names = [_identity(key, entry) for entry in entries]
        if None in names or len(set(names)) != len(names):
            return False
    return True


def _identity(key: str, entry: Any) -> str | None:
    if not isinstance(entry, dict):
        return None
    if key == "rules":
        # entries of `rules.rules` have names, those of `acls.rules` have none
        return entry.get("name")
    if key == "listeners":
        protocol = str(entry.get("protocol")).lower()
        return entry.get("name") or f"{protocol}:{entry.get('address')}"
    for name in _IDENTITIES.get(key, ()):
        if entry.get(name):
            return str(entry[name])
    return None


def _needs_restart(schema: Schema, inherited: bool = False) -> bool:
    text = schema.get("description", "")
    if "restart" in text:
        return True
    return False if "reload" in text else inherited


def _shown(key: str, value: Any) -> Any:
    if value is None:
        return None
    if key in _SECRETS:
        return "(not shown)"
    if isinstance(value, dict):
        return {name: _shown(name, item) for name, item in value.items()}
    if isinstance(value, list):
        return [_shown("", item) for item in value]
    return value
