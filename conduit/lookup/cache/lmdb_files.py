"""The directory of an LMDB cache: its lock, its layout, its sidecar file, and sizes of shards.

Nothing here touches a file of a layout that it does not understand (chapter 40 section 7.2.2).
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
from typing import Any, Final

from conduit.lookup.cache.errors import CacheError
from conduit.observe.logging import get_log

_log = get_log("conduit_core")

SIDECAR: Final = "conduit-lmdb-shards.json"
MAX_SHARDS: Final = 64
PAGE: Final = 4096
_VERSION: Final = 1
_SHARD_PREFIX: Final = "shard-"
_LEGACY: Final = ("data.mdb", "lock.mdb")
_REOPEN_SUFFIX: Final = ".conduit-lmdb-reopen"
_ABANDONED_SUFFIX: Final = ".conduit-lmdb-abandoned"
_WARNING: Final = (
    "Do not edit. This file describes the LMDB shards in this directory; "
    "a changed shard count makes every stored answer unreachable."
)


class DirectoryLock:
    """Keeps a second process, and a second store of this one, off a directory."""

    def __init__(self, path: str) -> None:
        """Lock `path`. Raises CacheError when someone else uses it."""
        self._descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                self.release()
                raise CacheError(
                    f"lmdb.path {path} is in use by another process or another cache"
                ) from None
            # some network file systems cannot lock a directory
            _log.warn("cache directory cannot be locked", path=path, error=error.strerror)

    def release(self) -> None:
        """Unlock; later calls do nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def reopen_path(path: str) -> str:
    """Where a new layout for `path` is built while the old one serves."""
    return path + _REOPEN_SUFFIX


def abandoned_path(path: str) -> str:
    """Where the old layout of `path` waits for its removal."""
    return path + _ABANDONED_SUFFIX


def prepare_directory(path: str) -> None:
    """Create `path` and remove what an interrupted change left beside it. Raises CacheError."""
    if os.path.lexists(path) and not os.path.isdir(path):
        raise CacheError(f"lmdb.path {path} must be a directory")
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise CacheError(f"lmdb.path {path} cannot be created: {error.strerror}") from error
    for leftover in (reopen_path(path), abandoned_path(path)):
        if os.path.lexists(leftover):
            remove_tree(leftover)


def remove_tree(path: str) -> None:
    """Remove a directory of ours; a failure is a warning."""
    try:
        shutil.rmtree(path)
    except OSError as error:
        _log.warn("cache directory cannot be removed", path=path, error=error.strerror)


class Layout:
    """How many shards a directory has; `legacy` is one environment as a directory."""

    __slots__ = ("legacy", "shards")

    def __init__(self, shards: int, legacy: bool) -> None:
        self.shards = shards
        self.legacy = legacy


def detect_layout(path: str) -> Layout | None:
    """Return what stands in `path`, None for nothing. Raises CacheError for anything unclear."""
    try:
        names = frozenset(os.listdir(path))
    except OSError as error:
        raise CacheError(f"lmdb.path {path} cannot be read: {error.strerror}") from error
    if SIDECAR in names:
        shards = _read_sidecar(os.path.join(path, SIDECAR))
        for index in range(shards):
            if shard_name(index) not in names:
                raise CacheError(
                    f"lmdb.path {path}: {SIDECAR} names {shards} shards, but {shard_name(index)} "
                    "is missing. Move or delete the files to start empty"
                )
        return Layout(shards, False)
    if any(name.startswith(_SHARD_PREFIX) for name in names):
        raise CacheError(
            f"lmdb.path {path} has shard files but no {SIDECAR}. "
            "Move or delete the files to start empty"
        )
    return Layout(1, True) if _LEGACY[0] in names else None


def _read_sidecar(path: str) -> int:
    try:
        with open(path, encoding="utf-8") as file:
            found: Any = json.load(file)
    except (OSError, ValueError, RecursionError) as error:
        raise CacheError(f"{path} cannot be read: {error}. Move or delete the files") from error
    version = found.get("version") if isinstance(found, dict) else None
    if type(version) is not int or version != _VERSION:
        raise CacheError(f"{path}: version must be {_VERSION}. Move or delete the files")
    shards = found.get("shard_count")
    if type(shards) is not int or not 1 <= shards <= MAX_SHARDS:
        raise CacheError(
            f"{path}: shard_count must be from 1 to {MAX_SHARDS}. Move or delete the files"
        )
    return shards


def write_sidecar(path: str, shards: int) -> None:
    """Describe the shards in `path`; the file is whole or the old one. Raises CacheError."""
    target = os.path.join(path, SIDECAR)
    fields = {
        "version": _VERSION,
        "shard_count": shards,
        "generated_by": "dnsconduit",
        "do_not_edit": _WARNING,
    }
    try:
        with open(target + ".tmp", "w", encoding="utf-8") as file:
            json.dump(fields, file, indent=2)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(target + ".tmp", target)
        sync_directory(path)
    except OSError as error:
        raise CacheError(f"{target} cannot be written: {error.strerror}") from error


def sync_directory(path: str) -> None:
    """Make the names in `path` durable. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_owned(path: str) -> None:
    """Remove the files of every layout of ours from `path`. Raises CacheError."""
    try:
        for name in os.listdir(path):
            if name in _LEGACY or name.startswith((SIDECAR, _SHARD_PREFIX)):
                os.unlink(os.path.join(path, name))
    except OSError as error:
        raise CacheError(f"lmdb.path {path} cannot be emptied: {error.strerror}") from error


def shard_name(index: int) -> str:
    """The file of a shard."""
    return f"{_SHARD_PREFIX}{index}"


def map_shares(map_size: int, shards: int) -> list[int]:
    """Split a map size (octets) over shards in whole pages; the first takes the remainder."""
    total = aligned(map_size)
    share = max(PAGE, total // shards // PAGE * PAGE)
    return [max(PAGE, total - share * (shards - 1)), *([share] * (shards - 1))]


def aligned(map_size: int) -> int:
    """`map_size` (octets) in whole pages, rounded up."""
    return -(-map_size // PAGE) * PAGE


def entry_shares(max_entries: int, shards: int) -> list[int]:
    """Split a cap over shards; 0 stays unlimited, and a share of a cap is at least 1."""
    if not max_entries:
        return [0] * shards
    quotient, rest = divmod(max_entries, shards)
    return [max(1, quotient + (index < rest)) for index in range(shards)]
