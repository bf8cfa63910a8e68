"""Validation of `caches` and `lookup`, with the preflight of LMDB directories.

Texts: chapter 40 sections 2, 3.4 and 19.
"""

from __future__ import annotations

import os
from typing import Final

from conduit.config.diagnostics import KeyPath
from conduit.config.extras import missing_extra
from conduit.config.model import Config
from conduit.config.model_policy import Cache, LmdbStore, LookupProvider, MemoryStore
from conduit.config.paths import resolve_path
from conduit.config.report import Report

_WHEN_FULL: Final = ("refuse", "evict_one", "sample")
_SYNC: Final = ("full", "no_meta", "periodic", "none")
PROBE_NAME: Final = ".conduit-lmdb-preflight"


def validate_caches(config: Config, report: Report, base_dir: str) -> None:
    """Check every cache instance, also those that no profile uses."""
    names: set[str] = set()
    directories: dict[str, int] = {}
    for index, cache in enumerate(config.caches):
        path: KeyPath = ("caches", index)
        if not cache.name:
            report.error((*path, "name"), f"caches[{index}]: name must not be empty")
        elif cache.name in names:
            report.error((*path, "name"), f"duplicate cache name '{cache.name}'")
        names.add(cache.name)
        _check_cache(cache, f"caches[{index}]: ", path, report)
        if cache.type == "lmdb" and cache.lmdb is not None and cache.lmdb.path:
            _check_directory(cache.lmdb.path, index, directories, report, base_dir)


def _check_cache(cache: Cache, prefix: str, path: KeyPath, report: Report) -> None:
    if cache.on_hit is not None and cache.on_hit.response_rules not in ("", "run", "skip"):
        report.error(
            (*path, "on_hit", "response_rules"),
            f"{prefix}on_hit.response_rules '{cache.on_hit.response_rules}' must be run or skip",
        )
    truncated = cache.truncated_udp
    if truncated is not None and truncated.enabled and not truncated.ttl_secs:
        report.error(
            (*path, "truncated_udp", "ttl_secs"),
            f"{prefix}truncated_udp.ttl_secs must be set and > 0 when truncated_udp is enabled",
        )
    if cache.type == "memory":
        if cache.lmdb is not None:
            report.error((*path, "lmdb"), f"{prefix}lmdb block is not allowed for type memory")
        if cache.memory is not None:
            _check_memory(cache.memory, prefix, path, report)
    elif cache.type == "lmdb":
        if cache.memory is not None:
            report.error((*path, "memory"), f"{prefix}memory block is not allowed for type lmdb")
        if cache.lmdb is None:
            report.error(path, f"{prefix}type lmdb requires an lmdb block")
        else:
            _check_lmdb(cache.lmdb, prefix, (*path, "lmdb"), report)
        command = missing_extra("lmdb")
        if command is not None:
            report.error(
                (*path, "type"),
                f"{prefix}type lmdb needs the Python package lmdb: {command}",
                "missing-extra",
            )
    else:
        report.error(
            (*path, "type"),
            f"{prefix}type '{cache.type}' must be memory or lmdb (ebpf_map is reserved)",
        )


def _check_memory(store: MemoryStore, prefix: str, path: KeyPath, report: Report) -> None:
    if store.shard_count < 1:
        report.error(
            (*path, "memory", "shard_count"), f"{prefix}memory.shard_count must be at least 1"
        )
    if store.eviction not in ("", "passive", "active"):
        report.error(
            (*path, "memory", "eviction"),
            f"{prefix}memory.eviction '{store.eviction}' must be passive or active",
        )


def _check_lmdb(store: LmdbStore, prefix: str, path: KeyPath, report: Report) -> None:
    if not store.path:
        report.error((*path, "path"), f"{prefix}lmdb.path must not be empty")
    if store.map_size == 0:
        report.error((*path, "map_size"), f"{prefix}lmdb.map_size must be set and > 0")
    if store.policy_when_full not in _WHEN_FULL:
        report.error(
            (*path, "when_full"),
            f"{prefix}lmdb.when_full '{store.when_full}' must be refuse, evict_one, or sample",
        )
    if store.policy_when_full == "sample" and store.sample_size < 1:
        report.error(
            (*path, "sample_size"),
            f"{prefix}lmdb.sample_size must be at least 1 when when_full is sample",
        )
    if store.shard_count == 0:
        report.error((*path, "shard_count"), f"{prefix}lmdb.shard_count must be at least 1")
    if store.sync not in _SYNC:
        report.error(
            (*path, "sync"),
            f"{prefix}lmdb.sync '{store.sync}' must be full, no_meta, periodic, or none",
        )
    if store.sync_interval is None:
        return
    if store.sync != "periodic":
        report.error(
            (*path, "sync_interval"),
            f"{prefix}lmdb.sync_interval is only valid with sync: periodic",
        )
    elif store.sync_interval_ms == 0:
        report.error((*path, "sync_interval"), f"{prefix}lmdb.sync_interval must be > 0")


def _check_directory(
    written: str, index: int, directories: dict[str, int], report: Report, base_dir: str
) -> None:
    path: KeyPath = ("caches", index, "lmdb", "path")
    prefix = f"caches[{index}]: lmdb.path '{written}'"
    resolved = resolve_path(base_dir, written)
    if "\0" in resolved:
        report.error(path, f"caches[{index}]: lmdb.path holds a NUL character")
        return
    if not os.path.isabs(written):
        report.warn(
            path,
            f"{prefix} is relative and is taken from the directory of the configuration file",
            "relative-path",
        )
    earlier = directories.setdefault(os.path.realpath(resolved), index)
    if earlier != index:
        report.error(path, f"{prefix} is already used by caches[{earlier}]")
        return
    problem = _directory_problem(resolved)
    if problem is not None:
        report.error(path, f"{prefix} {problem}")


def _directory_problem(directory: str) -> str | None:
    """Return why no store can be kept in `directory`, or None. Leaves nothing behind."""
    where = ""
    current = os.path.abspath(directory)
    while not os.path.lexists(current):
        parent = os.path.dirname(current)
        if parent == current:
            return None
        current = parent
        where = f": its nearest existing parent {current}"
    subject = f"{where} " if where else ""
    try:
        if not os.path.isdir(current):
            return f"{subject}must be a directory"
        if not os.stat(current).st_mode & 0o222:
            return f"{subject}is read-only"
        probe = os.path.join(current, PROBE_NAME)
        os.close(os.open(probe, os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        os.unlink(probe)
    except FileNotFoundError:
        # another check of the same directory removed the probe first
        return None
    except OSError as error:
        return f"{subject}is not writable: {error.strerror}"
    return None


def validate_lookup(config: Config, report: Report) -> None:
    """Check the profiles and their references to cache instances."""
    lookup = config.lookup
    if lookup is None:
        return
    if not lookup.profiles:
        report.error(("lookup", "profiles"), "lookup.profiles must have at least one profile")
        return
    caches = frozenset(cache.name for cache in config.caches)
    for name, profile in lookup.profiles.items():
        path: KeyPath = ("lookup", "profiles", name)
        if not name:
            report.error(path, "lookup.profiles: profile name must not be empty")
        if not profile.providers:
            report.error(
                (*path, "providers"),
                f"lookup.profiles.{name}.providers must have at least one provider",
            )
        for index, provider in enumerate(profile.providers):
            prefix = f"lookup.profiles.{name}.providers[{index}]"
            _check_provider(provider, caches, prefix, (*path, "providers", index), report)
    if "default" not in lookup.profiles:
        report.warn(
            ("lookup", "profiles"),
            "lookup.profiles has no profile 'default': queries that choose none get SERVFAIL",
            "no-default-profile",
        )


def _check_provider(
    provider: LookupProvider, caches: frozenset[str], prefix: str, path: KeyPath, report: Report
) -> None:
    kind = provider.type.strip()
    if kind == "forward":
        return
    if kind != "cache":
        report.error((*path, "type"), f"{prefix}: provider type '{kind}' must be cache or forward")
    elif not provider.cache:
        report.error(
            (*path, "cache"), f"{prefix}: provider type cache requires cache instance name"
        )
    elif not caches:
        report.error(
            (*path, "cache"),
            f"{prefix}: caches list is empty, unknown cache instance '{provider.cache}'",
        )
    elif provider.cache not in caches:
        report.error((*path, "cache"), f"{prefix}: unknown cache instance '{provider.cache}'")
