"""The configurator: one queue and one consumer for every configuration change (chapter 10, 1).

A change builds and compiles a candidate; only when everything that can fail has succeeded are file
layer, generation and snapshot replaced together. A failure keeps the last good ones, and DNS goes
on.
"""

from __future__ import annotations

import copy
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from conduit.config import Config, ConfigError, LoadedConfig, load_file, load_tree
from conduit.config.sparse import check_patch_tree, completed
from conduit.control.change_log import log_applied
from conduit.control.export import export_yaml
from conduit.control.merge import MergeError, check_patch
from conduit.control.overlay import ApplyMode, Layers, same_pools
from conduit.control.primitives import ChangeRejected, Primitive
from conduit.observe.logging import get_log
from conduit.policy.compile import CompileError
from conduit.snapshot import SnapshotRef, compile_snapshot

_log = get_log("conduit_core")

QUEUE_CAPACITY: Final = 64


@dataclass(frozen=True)
class ChangeResult:
    """The end of one change: `generation` is the new one, 0 when the change was rejected."""

    ok: bool
    generation: int
    errors: tuple[str, ...] = ()


#: Makes the layers that a change asks for, and what they load to.
Make = Callable[[], tuple[Layers, LoadedConfig]]


@dataclass
class Change:
    """A requested change; `source` is what the log names."""

    source: str
    make: Make
    done: threading.Event = field(default_factory=threading.Event)
    result: ChangeResult | None = None


@dataclass(frozen=True)
class Prepared:
    """What a step of a change has made ready: to be taken into use, or to be given back.

    `abandon` is called when a later step refuses the change; neither of the two may raise.
    """

    commit: Callable[[], None]
    abandon: Callable[[], None] = lambda: None

    def __call__(self) -> None:
        self.commit()


#: Prepares what must be ready before a snapshot is installed; returns what to do after the swap:
#: a plain callable where there is nothing to give back. Raises PrepareError to refuse the change.
Prepare = Callable[[Config, Config], Callable[[], None]]


class PrepareError(Exception):
    """Something outside the snapshot cannot follow the new configuration."""


class Configurator:
    """Owns file layer, overlay and generation; installs snapshots into `snapshots`."""

    def __init__(
        self,
        path: str,
        snapshots: SnapshotRef,
        *,
        loaded: LoadedConfig | None = None,
        prepare: Sequence[Prepare] = (),
        on_reload: Callable[[bool], None] = lambda begins: None,
    ) -> None:
        """`path` is the start-up file, read again at each reload; `loaded` is what it held.

        `on_reload` is told when a reload begins (True) and ends (False), for the service manager.
        """
        self._path = path
        self._snapshots = snapshots
        self._generation = snapshots.current.generation
        self._file = loaded if loaded is not None else load_file(path)
        self._layers = Layers(self._file.tree)
        self._prepare = tuple(prepare)
        self._on_reload = on_reload
        self._queue: queue.Queue[Change | None] = queue.Queue(QUEUE_CAPACITY)
        self._pending_sighup = threading.Event()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._consume, name="conduit-config", daemon=True)

    @property
    def generation(self) -> int:
        """Generation of the active snapshot."""
        return self._generation

    def effective(self) -> Config:
        """Return the configuration of the active snapshot."""
        return self._snapshots.current.config

    def export(self) -> str:
        """Return the effective configuration as YAML (chapter 10 section 13)."""
        return export_yaml(self.effective())

    def start(self) -> None:
        """Start the consumer."""
        self._thread.start()

    # changes: each waits for its outcome

    def reload(self, source: str) -> ChangeResult:
        """Read the start-up file again; drops the overlay."""
        return self._ask(Change(source, self._read_file))

    def apply(self, patch: Mapping[str, Any], mode: ApplyMode) -> ChangeResult:
        """Change the overlay by a sparse patch with the keys of the file."""
        return self._ask(Change("grpc", lambda: self._applied(patch, mode)))

    def change(self, primitive: Primitive) -> ChangeResult:
        """Make one typed change to the effective configuration (chapter 10 section 9.5)."""
        return self._ask(Change("grpc", lambda: self._changed(primitive)))

    def validate(self, tree: Mapping[str, Any]) -> tuple[str, ...]:
        """Return what keeps a whole configuration from being used; changes nothing."""
        try:
            loaded = self._load_tree(tree)
            compile_snapshot(loaded.config, self._generation + 1, loaded.base_dir)
        except (ConfigError, CompileError) as error:
            return _texts(error)
        return ()

    def reload_soon(self) -> None:
        """Ask for a reload with source `sighup` without waiting; pending ones collapse into one."""
        if self._pending_sighup.is_set():
            return
        self._pending_sighup.set()
        try:
            self._queue.put_nowait(Change("sighup", self._read_file))
        except queue.Full:
            self._pending_sighup.clear()
            _log.error("SIGHUP config reload failed", errors="the change queue is full; try again")

    def stop(self) -> None:
        """Stop the consumer after the change in progress; later changes are refused."""
        self._stopped.set()
        try:
            self._queue.put(None, timeout=1.0)
        except queue.Full:
            return
        if self._thread.is_alive():
            self._thread.join(5.0)
        while True:
            try:
                left = self._queue.get_nowait()
            except queue.Empty:
                return
            if left is not None:
                left.result = ChangeResult(False, 0, ("configurator dropped reply",))
                left.done.set()

    def _ask(self, change: Change) -> ChangeResult:
        if self._stopped.is_set() or not self._thread.is_alive():
            return ChangeResult(False, 0, ("configurator stopped",))
        self._queue.put(change)
        # a stop that came in between answers what it finds in the queue, not what comes later
        while not change.done.wait(1.0):
            if not self._thread.is_alive():
                return ChangeResult(False, 0, ("configurator dropped reply",))
        assert change.result is not None
        return change.result

    # the consumer's thread

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
                change.result = self._perform(change)
            except Exception:
                _log.exception("configuration change failed", source=change.source)
                change.result = ChangeResult(False, 0, ("internal error, see the log",))
            finally:
                self._on_reload(False)
                change.done.set()

    def _read_file(self) -> tuple[Layers, LoadedConfig]:
        loaded = load_file(self._path)
        return Layers(loaded.tree), loaded

    def _applied(self, patch: Mapping[str, Any], mode: ApplyMode) -> tuple[Layers, LoadedConfig]:
        if mode is not ApplyMode.CLEAR:
            patch = {"schema_version": 1, **completed(patch)}
            # what only the file may change is told first, and before anything about its values
            check_patch(patch)
            check_patch_tree(patch, self._path)
        layers = self._layers.applied(patch, mode)
        return layers, self._load(layers)

    def _changed(self, primitive: Primitive) -> tuple[Layers, LoadedConfig]:
        tree = copy.deepcopy(self._layers.effective())
        primitive(tree)
        wanted = self._load_tree(tree)
        layers = self._layers.changed_to(tree, self._file.config, wanted.config)
        loaded = self._load(layers)
        if not same_pools(loaded.config.pools, wanted.config.pools):
            raise MergeError("pools: this change cannot be said by an overlay; edit the file")
        return layers, loaded

    def _load(self, layers: Layers) -> LoadedConfig:
        return self._file if layers.overlay is None else self._load_tree(layers.effective())

    def _load_tree(self, tree: Mapping[str, Any]) -> LoadedConfig:
        return load_tree(completed(tree), self._path)

    def _perform(self, change: Change) -> ChangeResult:
        previous = self._snapshots.current
        try:
            layers, loaded = change.make()
            candidate = compile_snapshot(loaded.config, self._generation + 1, loaded.base_dir)
            finishers = self._prepared(previous.config, loaded.config)
        except (ConfigError, MergeError, ChangeRejected, CompileError, PrepareError) as error:
            return self._rejected(change.source, _texts(error))
        for warning in (*map(str, loaded.warnings), *candidate.warnings):
            _log.warn(warning)
        # from here on nothing can fail: layers, generation and snapshot change together
        if layers.file is not self._layers.file:
            self._file = loaded
        self._layers = layers
        self._generation += 1
        self._snapshots.current = candidate
        for finish in finishers:
            _run(finish)
        log_applied(previous, candidate, change.source)
        return ChangeResult(True, self._generation)

    def _prepared(self, before: Config, after: Config) -> list[Callable[[], None]]:
        """Run the steps; when one refuses, what the earlier ones made ready is given back."""
        ready: list[Callable[[], None]] = []
        try:
            for step in self._prepare:
                ready.append(step(before, after))
        except BaseException:
            for done in reversed(ready):
                if isinstance(done, Prepared):
                    _run(done.abandon)
            raise
        return ready

    def _rejected(self, source: str, errors: tuple[str, ...]) -> ChangeResult:
        if source == "sighup":
            _log.error("SIGHUP config reload failed", errors="; ".join(errors))
        else:
            _log.error("config change rejected", source=source, errors="; ".join(errors))
        return ChangeResult(False, 0, errors)


def _run(step: Callable[[], None]) -> None:
    """Do what must not stop a change half-way; an error is logged."""
    try:
        step()
    except Exception:
        _log.exception("a step of a configuration change failed")


def _texts(error: Exception) -> tuple[str, ...]:
    if isinstance(error, ChangeRejected):
        return error.errors
    if isinstance(error, ConfigError) and error.stage == "read":
        # names the path itself: `reading config "..."`
        return tuple(d.message for d in error.diagnostics)
    if isinstance(error, ConfigError):
        # what was merged, not read, has no places
        return tuple(str(d) if d.line or not d.key else d.detail for d in error.diagnostics)
    return (str(error),)
