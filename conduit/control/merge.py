"""Merges a patch into an overlay, and an overlay onto the file layer (chapter 10 section 9).

Layers are plain trees with the keys of the file. Nothing here changes a tree that it was given.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final

Tree = dict[str, Any]

#: Sections that a patch replaces as a whole.
SECTIONS: Final = (
    "listeners",
    "forward",
    "orchestrator",
    "events",
    "rhai",
    "control",
    "logging",
    "dataplane",
    "shutdown",
    "data_source_limits",
    "lookup",
    "acls",
)
#: Lists that a patch replaces as a whole, unless it has them empty.
LISTS: Final = ("data_sources", "caches")
#: The only version of the file format there is.
SCHEMA_VERSION: Final = 1
#: What changes by file only.
FORBIDDEN: Final = ("rules", "tracing")


class MergeError(ValueError):
    """A patch that cannot be merged; the text says what and why."""


def check_patch(patch: Mapping[str, Any]) -> None:
    """Raise MergeError when the patch holds what only the file may change, or nothing of ours."""
    for key in FORBIDDEN:
        if patch.get(key) is not None:
            raise MergeError(
                f"{key}: cannot be changed by a patch; edit the file and reload (SIGHUP or "
                "conduitctl reload)"
            )
    version = patch.get("schema_version")
    # the version of a patch with content is validated with the rest
    if version not in (None, SCHEMA_VERSION) and is_empty(patch):
        raise MergeError(f"unsupported schema_version {version}")


def is_empty(patch: Mapping[str, Any]) -> bool:
    """True when the patch carries nothing but `schema_version`; empty lists count as absent."""
    lists = (*LISTS, "pools")
    return all(
        key == "schema_version" or value is None or (key in lists and not value)
        for key, value in patch.items()
    )


def accumulate(overlay: Mapping[str, Any], patch: Mapping[str, Any]) -> Tree:
    """Return the overlay after a merge patch: delete markers stay in it. Raises MergeError."""
    return _merge(overlay, patch, keep_markers=True)


def onto_file(file: Mapping[str, Any], overlay: Mapping[str, Any]) -> Tree:
    """Return the effective configuration: delete markers do their work. Raises MergeError."""
    return _merge(file, overlay, keep_markers=False)


def _merge(base: Mapping[str, Any], patch: Mapping[str, Any], keep_markers: bool) -> Tree:
    merged: Tree = dict(base)
    if patch.get("schema_version") is not None:
        merged["schema_version"] = patch["schema_version"]
    for key in SECTIONS:
        if patch.get(key) is not None:
            merged[key] = copy.deepcopy(patch[key])
    for key in LISTS:
        if patch.get(key):
            merged[key] = copy.deepcopy(patch[key])
    if patch.get("pools"):
        merged["pools"] = _pools(base.get("pools") or [], patch["pools"], keep_markers)
    if patch.get("metrics") is not None:
        merged["metrics"] = merge_metrics(base.get("metrics") or {}, patch["metrics"])
    return merged


# pools (section 9.3)


def _pools(base: list[Tree], patch: list[Tree], keep_markers: bool) -> list[Tree]:
    pools = [dict(pool) for pool in base]
    for entry in patch:
        name = entry.get("name") or ""
        if not name:
            raise MergeError("pools: a patch entry needs a name")
        # after a marker the same pool may stand there anew: that one is meant
        known = next((pool for pool in reversed(pools) if pool.get("name") == name), None)
        if entry.get("remove"):
            if known is None and not keep_markers:
                raise MergeError(f"unknown pool '{name}'")
            pools = [pool for pool in pools if pool.get("name") != name]
            if keep_markers:
                pools.append({"name": name, "remove": True})
        elif known is None or (keep_markers and known.get("remove")):
            fresh = {key: value for key, value in entry.items() if key != "remove"}
            backends = copy.deepcopy(entry.get("backends") or [])
            if not keep_markers:
                backends = [b for b in backends if not b.get("remove")]
            fresh["backends"] = backends
            if known is None:
                pools.append(fresh)
            else:
                pools[pools.index(known)] = fresh
        else:
            # of a known pool only the backends can change
            known["backends"] = _backends(
                name, known.get("backends") or [], entry.get("backends") or [], keep_markers
            )
    return pools


def _backends(pool: str, base: list[Tree], patch: list[Tree], keep_markers: bool) -> list[Tree]:
    backends = [dict(backend) for backend in base]
    for entry in patch:
        name, address = entry.get("name") or "", entry.get("address") or ""
        if not name and not address:
            raise MergeError(f"pool '{pool}': a backend patch requires name or address")
        key, value = ("name", name) if name else ("address", address)
        known = [backend for backend in backends if (backend.get(key) or "") == value]
        if entry.get("remove"):
            if not known and not keep_markers:
                raise MergeError(f"pool '{pool}': unknown backend {key} '{value}'")
            backends = [backend for backend in backends if backend not in known]
            if keep_markers:
                backends.append({key: value, "remove": True})
        elif known:
            # an address may stand there more than once
            for backend in known:
                _update(backend, entry)
        elif address or keep_markers:
            # a name that is not known yet may be the file's: the merge onto it decides
            backends.append({k: v for k, v in entry.items() if k != "remove" and v is not None})
        else:
            raise MergeError(f"pool '{pool}' references unknown backend name '{name}'")
    return backends


def _update(backend: Tree, entry: Mapping[str, Any]) -> None:
    backend.pop("remove", None)
    for key in ("address", "name"):
        if entry.get(key):
            backend[key] = entry[key]
    if entry.get("weight") is not None:
        backend["weight"] = entry["weight"]


# metrics (section 9.4)


def merge_metrics(base: Mapping[str, Any], patch: Mapping[str, Any]) -> Tree:
    """Return the metrics block after a sparse patch."""
    merged: Tree = dict(base)
    if patch.get("enabled") is not None:
        merged["enabled"] = patch["enabled"]
    for key in ("profile", "base"):
        if patch.get(key):
            merged[key] = patch[key]
    for key, merge in (
        ("categories", _given_keys),
        ("collection", _collection),
        ("granularity", _granularity),
        ("event_export", _given_keys),
        ("prometheus", _non_empty_keys),
        ("otel", _otel),
    ):
        if patch.get(key) is not None:
            merged[key] = merge(base.get(key) or {}, patch[key])
    if patch.get("user_metrics"):
        merged["user_metrics"] = _user_metrics(
            base.get("user_metrics") or [], patch["user_metrics"]
        )
    return merged


def _given_keys(base: Mapping[str, Any], patch: Mapping[str, Any]) -> Tree:
    return {**base, **{key: value for key, value in patch.items() if value is not None}}


def _non_empty_keys(base: Mapping[str, Any], patch: Mapping[str, Any]) -> Tree:
    return {**base, **{key: value for key, value in patch.items() if value}}


def _collection(base: Mapping[str, Any], patch: Mapping[str, Any]) -> Tree:
    merged = dict(base)
    for name, switches in patch.items():
        merged[name] = _given_keys(merged.get(name) or {}, switches or {})
    return merged


def _granularity(base: Mapping[str, Any], patch: Mapping[str, Any]) -> Tree:
    # families may stand below `overrides`: one spelling from here on
    merged = {**(base.get("overrides") or {}), **base}
    merged.pop("overrides", None)
    for name, value in {**(patch.get("overrides") or {}), **patch}.items():
        if name == "overrides" or value is None or (name == "default" and not value):
            continue
        merged[name] = copy.deepcopy(value)
    return merged


def _otel(base: Mapping[str, Any], patch: Mapping[str, Any]) -> Tree:
    merged = dict(base)
    for key in ("endpoint", "push_interval_ms"):
        if patch.get(key):
            merged[key] = patch[key]
    if patch.get("allow_invalid_certs") is not None:
        merged["allow_invalid_certs"] = patch["allow_invalid_certs"]
    for key in ("resource_attributes", "headers"):
        if patch.get(key):
            merged[key] = {**(base.get(key) or {}), **patch[key]}
    return merged


def _user_metrics(base: list[Tree], patch: list[Tree]) -> list[Tree]:
    merged = [dict(entry) for entry in base]
    for entry in patch:
        known = next((m for m in merged if m.get("name") == entry.get("name")), None)
        if known is None:
            merged.append(dict(entry))
            continue
        for key in ("export", "help"):
            if entry.get(key):
                known[key] = entry[key]
        for key in ("collect", "emit"):
            if entry.get(key) is not None:
                known[key] = entry[key]
    return merged
