"""The effective configuration as a YAML document (chapter 10 section 13)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import yaml

from conduit.config import Backend, Config, Dataplane, DataSourceLimits, Shutdown, Sink
from conduit.control.config_tree import config_tree

#: Blocks that are left out while they say nothing but the defaults.
_OMITTED_AS_DEFAULT: Final = ("listeners", "forward", "orchestrator", "events", "rhai")
_WHEN_SET: Final = ("control", "acls")
#: Blocks that are left out while they are unset or say nothing but the defaults.
_WHEN_DIFFERENT: Final = {
    "dataplane": Dataplane(),
    "shutdown": Shutdown(),
    "data_source_limits": DataSourceLimits(),
}
_ORDER: Final = (
    "schema_version",
    "listeners",
    "forward",
    "orchestrator",
    "events",
    "rhai",
    "pools",
    "control",
    "rules",
    "logging",
    "data_sources",
    "metrics",
    "tracing",
    "dataplane",
    "shutdown",
    "data_source_limits",
    "caches",
    "lookup",
    "acls",
)
_DEFAULTS: Final = Config(1, ())


def export_yaml(config: Config) -> str:
    """Return the configuration as YAML that loads again to the same behaviour.

    API keys and OTLP headers stand in it in clear text.
    """
    return yaml.safe_dump(
        export_tree(config), sort_keys=False, allow_unicode=True, default_flow_style=False
    )


def export_tree(config: Config) -> dict[str, Any]:
    """Return what an export writes, as a plain tree."""
    found: dict[str, Any] = {
        "schema_version": config.schema_version,
        "pools": [_pool(pool) for pool in config_tree(config)["pools"]],
        "rules": config_tree(config.rules),
        "logging": config_tree(config.logging),
        "data_sources": [_data_source(config_tree(source)) for source in config.data_sources],
        "metrics": _metrics(config),
        "tracing": None if config.tracing is None else config_tree(config.tracing),
    }
    for key in _OMITTED_AS_DEFAULT:
        if getattr(config, key) != getattr(_DEFAULTS, key):
            found[key] = _events(config) if key == "events" else config_tree(getattr(config, key))
    for key in _WHEN_SET:
        if getattr(config, key) is not None:
            found[key] = config_tree(getattr(config, key))
    for key, default in _WHEN_DIFFERENT.items():
        if getattr(config, key) not in (None, default):
            found[key] = config_tree(getattr(config, key))
    if config.control is not None and config.control.tls is not None:
        found["control"]["tls"] = _without_empty(found["control"]["tls"])
    if config.caches:
        found["caches"] = [config_tree(cache) for cache in config.caches]
    if config.lookup is not None:
        found["lookup"] = config_tree(config.lookup)
    return {key: found[key] for key in _ORDER if key in found}


def _pool(pool: dict[str, Any]) -> dict[str, Any]:
    backends = [_backend(backend) for backend in pool["backends"]]
    kept = {key: value for key, value in pool.items() if key != "remove"}
    for key in ("sources_v4", "sources_v6"):
        if not kept[key]:
            del kept[key]
    return {**kept, "backends": backends}


def _backend(backend: dict[str, Any]) -> dict[str, Any]:
    return {
        key: value
        for key, value in backend.items()
        if key != "remove" and not (key == "weight" and value == Backend().effective_weight)
    }


def _data_source(tree: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in tree.items() if not (k in ("key_column", "value_column") and not v)}


def _metrics(config: Config) -> dict[str, Any] | None:
    if config.metrics is None:
        return None
    tree = config_tree(config.metrics)
    for key in ("base", "profile", "collection", "user_metrics"):
        if not tree.get(key):
            tree.pop(key, None)
    if "otel" in tree and not tree["otel"].get("push_interval_ms"):
        tree["otel"].pop("push_interval_ms", None)
    return tree


def _events(config: Config) -> dict[str, Any]:
    tree = config_tree(config.events)
    tree["sinks"] = [_sink(sink) for sink in config.events.sinks]
    return tree


def _sink(sink: Sink) -> dict[str, Any]:
    tree = {**config_tree(sink), "name": sink.canonical_name}
    if sink.identity == sink.canonical_name:
        tree.pop("export_id", None)
    for key in ("emit", "extra_fields", "extra_tags"):
        if not tree[key]:
            del tree[key]
    return tree


def _without_empty(tree: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in tree.items() if value != ""}
