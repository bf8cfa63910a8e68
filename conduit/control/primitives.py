"""Typed single-purpose changes of the configuration (chapter 60 section 8).

Each function returns a `Primitive`: it changes a copy of the effective tree in place. An unknown
object raises ChangeRejected; a request that is incomplete raises InvalidChange before that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from conduit.control.merge import Tree, merge_metrics

#: Changes an effective tree in place. Raises ChangeRejected.
Primitive = Callable[[Tree], None]


class ChangeRejected(Exception):
    """The change cannot be made to this configuration; `errors` says why."""

    def __init__(self, *errors: str) -> None:
        super().__init__("; ".join(errors))
        self.errors = errors


class InvalidChange(ValueError):
    """The request itself is not complete."""


def _required(value: object, message: str) -> None:
    if not value:
        raise InvalidChange(message)


def _pool(tree: Tree, name: str) -> Tree:
    for pool in tree.get("pools") or []:
        if pool.get("name") == name:
            found: Tree = pool
            return found
    raise ChangeRejected(f"unknown pool '{name}'")


def _backend(pool: Tree, identity: str) -> Tree:
    backends: list[Tree] = pool.get("backends") or []
    for key in ("name", "address"):
        for backend in backends:
            if backend.get(key) == identity:
                return backend
    raise ChangeRejected(
        f"pool '{pool.get('name')}' has no backend named or addressed '{identity}'"
    )


# pools


def set_backend_weight(pool: str, backend: str, weight: int) -> Primitive:
    """Set the weight of a backend, found by name, else by address."""
    _required(pool, "pool is required")
    _required(backend, "backend is required")

    def change(tree: Tree) -> None:
        _backend(_pool(tree, pool), backend)["weight"] = weight

    return change


def add_backend(pool: str, backend: Mapping[str, Any] | None) -> Primitive:
    """Append a backend to a pool."""
    _required(pool, "pool is required")
    if backend is None:
        raise InvalidChange("backend is required")
    new = {key: value for key, value in backend.items() if key != "remove"}

    def change(tree: Tree) -> None:
        found = _pool(tree, pool)
        address, name = new.get("address"), new.get("name")
        if not address:
            raise ChangeRejected("add backend requires a non-empty address")
        backends = found.setdefault("backends", [])
        if any((name and b.get("name") == name) or b.get("address") == address for b in backends):
            raise ChangeRejected(f"pool '{pool}' already has a backend matching the add identity")
        backends.append(dict(new))

    return change


def remove_backend(pool: str, backend: str) -> Primitive:
    """Remove a backend, found by name, else by address."""
    _required(pool, "pool is required")
    _required(backend, "backend is required")

    def change(tree: Tree) -> None:
        found = _pool(tree, pool)
        left = _backend(found, backend)
        found["backends"] = [b for b in found["backends"] if b is not left]

    return change


# orchestrator, scripts, metrics


def set_orchestrator_limits(
    max_attempts: int | None = None, max_txn_duration_ms: int | None = None
) -> Primitive:
    """Set the limits that are given."""
    return _set_fields(
        "orchestrator", max_attempts=max_attempts, max_txn_duration_ms=max_txn_duration_ms
    )


def set_rhai_limits(
    max_operations: int | None = None,
    max_call_depth: int | None = None,
    hook_timeout_ms: int | None = None,
) -> Primitive:
    """Set the script limits that are given."""
    return _set_fields(
        "rhai",
        max_operations=max_operations,
        max_call_depth=max_call_depth,
        hook_timeout_ms=hook_timeout_ms,
    )


def _set_fields(section: str, **fields: int | None) -> Primitive:
    given = {name: value for name, value in fields.items() if value is not None}
    _required(given, f"at least one of {', '.join(fields)} is required")

    def change(tree: Tree) -> None:
        tree[section] = {**(tree.get(section) or {}), **given}

    return change


def patch_metrics(metrics: Mapping[str, Any] | None) -> Primitive:
    """Merge a sparse patch into the metrics block."""
    if metrics is None:
        raise InvalidChange("metrics is required")

    def change(tree: Tree) -> None:
        tree["metrics"] = merge_metrics(tree.get("metrics") or {}, metrics)

    return change


# data sources


def upsert_data_source(source: Mapping[str, Any] | None) -> Primitive:
    """Replace the data source of that name, or append one."""
    if source is None:
        raise InvalidChange("source is required")
    _required(source.get("name"), "data source name is required")
    new = {"type": "", "path": "", **source}

    def change(tree: Tree) -> None:
        sources = list(tree.get("data_sources") or [])
        for place, known in enumerate(sources):
            if known.get("name") == new["name"]:
                sources[place] = dict(new)
                break
        else:
            sources.append(dict(new))
        tree["data_sources"] = sources

    return change


def remove_data_source(name: str) -> Primitive:
    """Remove a data source."""
    _required(name, "data source name is required")

    def change(tree: Tree) -> None:
        sources = tree.get("data_sources") or []
        left = [source for source in sources if source.get("name") != name]
        if len(left) == len(sources):
            raise ChangeRejected(f"unknown data source '{name}'")
        tree["data_sources"] = left

    return change


def set_data_source_limits(limits: Mapping[str, Any] | None) -> Primitive:
    """Replace the whole block; what is not given has its built-in value."""
    if limits is None:
        raise InvalidChange("limits is required")

    def change(tree: Tree) -> None:
        tree["data_source_limits"] = dict(limits)

    return change


# event sinks


def _sink(tree: Tree, name: str) -> Tree:
    events = tree.get("events")
    if not events:
        raise ChangeRejected("no events section in effective config")
    for sink in events.get("sinks") or []:
        if (sink.get("name") or (sink.get("export_id") or "").strip()) == name:
            found: Tree = sink
            return found
    raise ChangeRejected(f"unknown event sink '{name}'")


def set_event_sink_filters(name: str, filters: Mapping[str, Any] | None) -> Primitive:
    """Replace the whole filter block of a sink."""
    _required(name, "event sink name is required")
    if filters is None:
        raise InvalidChange("filters is required")

    def change(tree: Tree) -> None:
        _sink(tree, name)["filters"] = dict(filters)

    return change


def set_event_sink_emit(
    name: str,
    emit: list[str],
    extra_fields: list[str] | None = None,
    extra_tags: list[str] | None = None,
) -> Primitive:
    """Replace what a sink emits; extra fields and tags only when they are given."""
    _required(name, "event sink name is required")

    def change(tree: Tree) -> None:
        sink = _sink(tree, name)
        sink["emit"] = list(emit)
        if extra_fields is not None:
            sink["extra_fields"] = list(extra_fields)
        if extra_tags is not None:
            sink["extra_tags"] = list(extra_tags)

    return change


# caches


def _cache(tree: Tree, name: str) -> Tree:
    for cache in tree.get("caches") or []:
        if cache.get("name") == name:
            found: Tree = cache
            return found
    raise ChangeRejected(f"unknown cache '{name}'")


def set_cache_max_entries(name: str, max_entries: int) -> Primitive:
    """Set the cap of a cache; 0 is none."""
    _required(name, "cache name is required")

    def change(tree: Tree) -> None:
        _cache(tree, name)["max_entries"] = max_entries

    return change


def set_cache_lmdb_hot(
    name: str,
    when_full: str | None = None,
    sample_size: int | None = None,
    sync: str | None = None,
    sync_interval: str | None = None,
    map_size: int | None = None,
) -> Primitive:
    """Set the LMDB settings that are given; `map_size` is in octets."""
    _required(name, "cache name is required")
    fields = {
        "when_full": when_full,
        "sample_size": sample_size,
        "sync": sync,
        "sync_interval": sync_interval,
        "map_size": map_size,
    }
    given = {key: value for key, value in fields.items() if value is not None}
    _required(given, "at least one LMDB hot field is required")

    def change(tree: Tree) -> None:
        cache = _cache(tree, name)
        kind = str(cache.get("type") or "").strip()
        if kind != "lmdb":
            raise ChangeRejected(f"cache '{name}' type is '{kind}' (SetCacheLmdbHot requires lmdb)")
        lmdb = {**(cache.get("lmdb") or {}), **given}
        if lmdb.get("sync", "full") != "periodic" and sync_interval is None:
            # the interval of a mode that is left would fail validation
            lmdb.pop("sync_interval", None)
        cache["lmdb"] = lmdb

    return change


def set_cache_policy_hot(
    name: str,
    negative_cache: Mapping[str, Any] | None = None,
    on_hit: Mapping[str, Any] | None = None,
    truncated_udp: Mapping[str, Any] | None = None,
    rotate_rrset_on_serve: bool | None = None,
) -> Primitive:
    """Replace each block that is given as a whole."""
    _required(name, "cache name is required")
    blocks = {
        "negative_cache": negative_cache,
        "on_hit": on_hit,
        "truncated_udp": truncated_udp,
        "rotate_rrset_on_serve": rotate_rrset_on_serve,
    }
    given = {key: value for key, value in blocks.items() if value is not None}
    _required(given, "at least one policy field is required")

    def change(tree: Tree) -> None:
        cache = _cache(tree, name)
        for key, value in given.items():
            cache[key] = dict(value) if isinstance(value, Mapping) else value
        if isinstance(cache.get("on_hit"), dict):
            # an empty message is the default
            cache["on_hit"].setdefault("response_rules", "")

    return change
