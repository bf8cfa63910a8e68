"""The overlay: how an apply changes it, and the smallest one that gives a wanted result."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from conduit.config import Backend, Config, Pool
from conduit.control.config_tree import config_tree
from conduit.control.merge import (
    LISTS,
    SECTIONS,
    MergeError,
    Tree,
    accumulate,
    check_patch,
    is_empty,
    merge_metrics,
    onto_file,
)


class ApplyMode(Enum):
    """What an apply does with the overlay (chapter 10 section 9.1)."""

    MERGE = "merge"
    REPLACE = "replace"
    CLEAR = "clear"


@dataclass(frozen=True)
class Layers:
    """The file layer and the overlay on top of it; None is no overlay."""

    file: Mapping[str, Any]
    overlay: Mapping[str, Any] | None = None

    def effective(self) -> Tree:
        """Return the merged tree; raises MergeError."""
        if self.overlay is None:
            return dict(self.file)
        return onto_file(self.file, self.overlay)

    def applied(self, patch: Mapping[str, Any], mode: ApplyMode) -> Layers:
        """Return the layers after an apply; raises MergeError."""
        if mode is ApplyMode.CLEAR:
            return Layers(self.file)
        check_patch(patch)
        overlay: Mapping[str, Any] | None
        if mode is ApplyMode.REPLACE:
            overlay = None if is_empty(patch) else copy.deepcopy(dict(patch))
        elif is_empty(patch):
            overlay = self.overlay
        elif self.overlay is None:
            overlay = copy.deepcopy(dict(patch))
        else:
            overlay = accumulate(self.overlay, patch)
        return Layers(self.file, overlay)

    def changed_to(self, wanted: Mapping[str, Any], before: Config, after: Config) -> Layers:
        """Return the layers whose overlay turns the file into `wanted`.

        `before` and `after` are the models of the file layer and of `wanted`. Raises MergeError
        for what an overlay cannot say.
        """
        overlay = difference(self.file, wanted, before, after)
        return Layers(self.file, overlay or None)


def difference(
    file: Mapping[str, Any], wanted: Mapping[str, Any], before: Config, after: Config
) -> Tree:
    """Return the smallest overlay that turns `file` into `wanted`; empty when they mean the same.

    Values are compared as models, so that a default that is spelled out is no difference. Raises
    MergeError.
    """
    overlay: Tree = {}
    for key in SECTIONS:
        if getattr(before, key) != getattr(after, key):
            if wanted.get(key) is None:
                raise MergeError(f"{key}: a section of the file cannot be unset by a change")
            overlay[key] = copy.deepcopy(wanted[key])
    for key in LISTS:
        if getattr(before, key) != getattr(after, key):
            if not wanted.get(key):
                raise MergeError(f"{key}: the last entry of the file cannot be removed by a change")
            overlay[key] = copy.deepcopy(wanted[key])
    pools = _pool_changes(before.pools, after.pools)
    if pools:
        overlay["pools"] = pools
    if before.metrics != after.metrics:
        overlay["metrics"] = _metrics_changes(file.get("metrics") or {}, wanted["metrics"])
    if overlay:
        overlay["schema_version"] = after.schema_version
    return overlay


def same_pools(one: tuple[Pool, ...], other: tuple[Pool, ...]) -> bool:
    """True when two lists of pools hold the same, in whatever order."""
    return _unordered(one) == _unordered(other)


def _unordered(pools: tuple[Pool, ...]) -> dict[str, tuple[Pool, list[tuple[object, ...]]]]:
    return {
        pool.name: (
            _without_backends(pool),
            sorted(
                (b.name or "", b.address, b.effective_weight, *map(str, _probe_settings(b)))
                for b in pool.backends
            ),
        )
        for pool in pools
    }


def _pool_changes(before: tuple[Pool, ...], after: tuple[Pool, ...]) -> list[Tree]:
    old = {pool.name: pool for pool in before}
    changes: list[Tree] = []
    for pool in after:
        known = old.pop(pool.name, None)
        if known is None:
            changes.append(_pool_tree(pool))
        elif _without_backends(known) != _without_backends(pool):
            # of a known pool an overlay changes nothing but the backends: another one takes over
            changes += [{"name": pool.name, "remove": True}, _pool_tree(pool)]
        elif backends := _backend_changes(known.backends, pool.backends):
            changes.append({"name": pool.name, "backends": backends})
    return [*({"name": name, "remove": True} for name in old), *changes]


def _backend_changes(before: tuple[Backend, ...], after: tuple[Backend, ...]) -> list[Tree]:
    left = list(before)
    changes: list[Tree] = []
    for backend in after:
        known = next((b for b in left if _identity(b) == _identity(backend)), None)
        if known is None:
            changes.append(_backend_tree(backend))
            continue
        left.remove(known)
        if _probe_settings(known) != _probe_settings(backend):
            changes += [{**dict([_identity(backend)]), "remove": True}, _backend_tree(backend)]
        elif known.address != backend.address or known.effective_weight != backend.effective_weight:
            changes.append(
                {
                    **({"name": backend.name} if backend.name else {}),
                    "address": backend.address,
                    "weight": backend.effective_weight,
                }
            )
    removed = [{**dict([_identity(backend)]), "remove": True} for backend in left]
    return [*removed, *changes]


def _pool_tree(pool: Pool) -> Tree:
    backends = [_backend_tree(backend) for backend in pool.backends]
    return {**_without_marker(config_tree(pool)), "backends": backends}


def _backend_tree(backend: Backend) -> Tree:
    return _without_marker(config_tree(backend))


def _without_marker(tree: Tree) -> Tree:
    return {key: value for key, value in tree.items() if key != "remove"}


def _without_backends(pool: Pool) -> Pool:
    return dataclasses.replace(pool, backends=(), remove=None)


def _probe_settings(backend: Backend) -> tuple[str | None, ...]:
    return backend.probe_qname, backend.probe_qtype, backend.probe_source, backend.transport


def _identity(backend: Backend) -> tuple[str, str]:
    return ("name", backend.name) if backend.name else ("address", backend.address)


def _metrics_changes(file: Mapping[str, Any], wanted: Mapping[str, Any]) -> Tree:
    changes = {key: value for key, value in wanted.items() if file.get(key) != value}
    if merge_metrics(file, changes) != dict(wanted):
        raise MergeError("metrics: a setting of the file cannot be unset by a change")
    return copy.deepcopy(changes)
