"""A configurator on a file, without a data plane."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import yaml

from conduit.config import Config, load_file
from conduit.control.configurator import ChangeResult, Configurator, Prepare
from conduit.control.overlay import ApplyMode
from conduit.snapshot import SnapshotRef, compile_snapshot

MIN: dict[str, Any] = {
    "schema_version": 1,
    "listeners": {"listeners": [{"address": "127.0.0.1:15353", "protocol": "udp"}]},
    "pools": [{"name": "default", "backends": [{"address": "127.0.0.1:5300"}]}],
}
A, B = "10.0.0.1:53", "10.0.0.2:53"


def two_backends(**rest: Any) -> dict[str, Any]:
    """MIN with backends `a` and `b` of weight 100, and more blocks."""
    backends = [
        {"address": A, "name": "a", "weight": 100},
        {"address": B, "name": "b", "weight": 100},
    ]
    return {**MIN, "pools": [{"name": "P", "backends": backends}], **rest}


class Changer:
    """A running configurator; `write` replaces the file."""

    def __init__(self, folder: Path, config: dict[str, Any], *prepare: Prepare) -> None:
        self.path = folder / "conduit.yaml"
        self.write(config)
        loaded = load_file(str(self.path))
        self.snapshots = SnapshotRef(compile_snapshot(loaded.config, 1, loaded.base_dir))
        self.configurator = Configurator(
            str(self.path), self.snapshots, loaded=loaded, prepare=prepare
        )
        self.configurator.start()

    def write(self, config: dict[str, Any]) -> None:
        self.path.write_text(yaml.safe_dump(config, sort_keys=False))

    def apply(self, mode: ApplyMode = ApplyMode.MERGE, **patch: Any) -> ChangeResult:
        return self.configurator.apply({"schema_version": 1, **patch}, mode)

    def weights(self, pool: int = 0) -> list[int]:
        return [b.effective_weight for b in self.config.pools[pool].backends]

    @property
    def config(self) -> Config:
        return self.configurator.effective()

    @property
    def overlay(self) -> Any:
        return self.configurator._layers.overlay

    def __enter__(self) -> Changer:
        return self

    def __exit__(self, *error: object) -> None:
        self.configurator.stop()
        assert not any(t.name == "conduit-config" for t in threading.enumerate() if t.is_alive())


def backend_patch(**backend: Any) -> dict[str, Any]:
    """A patch of one backend of pool `P`."""
    return {"pools": [{"name": "P", "backends": [backend]}]}
