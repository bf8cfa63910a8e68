"""The configurator: one queue and one consumer for every configuration change (chapter 10, 1).

A change builds and compiles a candidate; only when everything that can fail has succeeded are file
layer, generation and snapshot replaced together. A failure keeps the last good ones, and DNS goes
on.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from conduit.config import Config, ConfigError, load_file
from conduit.observe.logging import get_log
from conduit.policy.compile import CompileError
from conduit.snapshot import RuntimeSnapshot, SnapshotRef, compile_snapshot

_log = get_log("conduit_core")

QUEUE_CAPACITY: Final = 64


@dataclass(frozen=True)
class ChangeResult:
    """The end of one change: `generation` is the new one, 0 when the change was rejected."""

    ok: bool
    generation: int
    errors: tuple[str, ...] = ()


@dataclass
class Change:
    """A requested reload from the start-up file; `source` is what the log names."""

    source: str
    done: threading.Event = field(default_factory=threading.Event)
    result: ChangeResult | None = None


#: Prepares what must be ready before a snapshot is installed; returns what to do after the swap.
Prepare = Callable[[Config, Config], Callable[[], None]]


class PrepareError(Exception):
    """Something outside the snapshot cannot follow the new configuration."""


class Configurator:
    """Owns the file layer and the generation; installs snapshots into `snapshots`."""

    def __init__(
        self,
        path: str,
        snapshots: SnapshotRef,
        *,
        prepare: Sequence[Prepare] = (),
        on_reload: Callable[[bool], None] = lambda begins: None,
    ) -> None:
        """`path` is the start-up file, read again at each reload.

        `on_reload` is told when a reload begins (True) and ends (False), for the service manager.
        """
        self._path = path
        self._snapshots = snapshots
        self._generation = snapshots.current.generation
        self._prepare = tuple(prepare)
        self._on_reload = on_reload
        self._queue: queue.Queue[Change | None] = queue.Queue(QUEUE_CAPACITY)
        self._pending_sighup = threading.Event()
        self._thread = threading.Thread(target=self._consume, name="conduit-config", daemon=True)

    @property
    def generation(self) -> int:
        """Generation of the active snapshot."""
        return self._generation

    def start(self) -> None:
        """Start the consumer."""
        self._thread.start()

    def reload_soon(self) -> None:
        """Ask for a reload with source `sighup` without waiting; pending ones collapse into one."""
        if self._pending_sighup.is_set():
            return
        self._pending_sighup.set()
        try:
            self._queue.put_nowait(Change("sighup"))
        except queue.Full:
            self._pending_sighup.clear()
            _log.error("SIGHUP config reload failed", errors="the change queue is full; try again")

    def reload(self, source: str, timeout: float | None = None) -> ChangeResult:
        """Reload from the file and wait for the outcome, at most `timeout` seconds."""
        change = Change(source)
        try:
            self._queue.put(change, timeout=timeout)
        except queue.Full:
            return ChangeResult(False, 0, ("the change queue is full",))
        if not change.done.wait(timeout) or change.result is None:
            return ChangeResult(False, 0, ("configurator dropped reply",))
        return change.result

    def stop(self) -> None:
        """Stop the consumer after the change in progress."""
        try:
            self._queue.put(None, timeout=1.0)
        except queue.Full:
            return
        self._thread.join(5.0)

    def _consume(self) -> None:
        while True:
            change = self._queue.get()
            if change is None:
                return
            if change.source == "sighup":
                # a SIGHUP from here on asks for another reload: the file may have changed again
                self._pending_sighup.clear()
            self._on_reload(True)
            try:
                change.result = self._reload_from_file(change.source)
            except Exception:
                _log.exception("configuration change failed", source=change.source)
                change.result = ChangeResult(False, 0, ("internal error, see the log",))
            finally:
                self._on_reload(False)
                change.done.set()

    def _reload_from_file(self, source: str) -> ChangeResult:
        previous = self._snapshots.current
        try:
            loaded = load_file(self._path)
            candidate = compile_snapshot(loaded.config, self._generation + 1, loaded.base_dir)
            finishers = [step(previous.config, loaded.config) for step in self._prepare]
        except ConfigError as error:
            return self._rejected(source, [str(d) for d in error.diagnostics])
        except (CompileError, PrepareError) as error:
            return self._rejected(source, [str(error)])
        for warning in loaded.warnings:
            _log.warn(str(warning))
        self._generation += 1
        self._snapshots.current = candidate
        for finish in finishers:
            finish()
        log_applied(previous, candidate, source)
        return ChangeResult(True, self._generation)

    def _rejected(self, source: str, errors: list[str]) -> ChangeResult:
        if source == "sighup":
            _log.error("SIGHUP config reload failed", errors="; ".join(errors))
        else:
            _log.error("config reload failed", source=source, errors="; ".join(errors))
        return ChangeResult(False, 0, tuple(errors))


def log_applied(previous: RuntimeSnapshot, new: RuntimeSnapshot, source: str) -> None:
    """Log what changed and what needs a restart, in the order of chapter 10 section 12."""
    _log.info("config applied", generation=new.generation, source=source)
    before, after = previous.config, new.config
    if len(before.pools) != len(after.pools):
        _log.info("pools: count changed", prev_pools=len(before.pools), new_pools=len(after.pools))
    old_pools = {pool.name: pool for pool in before.pools}
    for pool in after.pools:
        old = old_pools.get(pool.name)
        if old is None:
            _log.info("pool: added", pool=pool.name)
        elif old.backends != pool.backends:
            _log.info("pool: backends changed", pool=pool.name)
    if len(before.events.sinks) != len(after.events.sinks):
        _log.info(
            "observation: sink count changed",
            prev_sinks=len(before.events.sinks),
            new_sinks=len(after.events.sinks),
        )
    if len(before.rules.rules) != len(after.rules.rules):
        _log.info(
            "rules: count changed",
            prev_rules=len(before.rules.rules),
            new_rules=len(after.rules.rules),
        )
    if before.listeners != after.listeners:
        _log.info("listeners: pending (restart required) — snapshot updated, sockets not rebound")
    if before.forward != after.forward:
        _log.info(
            "forward egress: pending (restart required) — snapshot updated, sockets not rebound"
        )
    old_caches = {cache.name: cache for cache in before.caches}
    for cache in after.caches:
        known = old_caches.get(cache.name)
        if known is not None and known.memory != cache.memory:
            _log.info(
                "cache memory.shard_count: pending (restart required) — "
                "snapshot updated, shard layout unchanged",
                cache=cache.name,
            )
