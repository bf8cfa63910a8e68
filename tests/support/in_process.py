"""The data plane inside the test process, for what no command reaches yet: operator controls."""

from __future__ import annotations

from types import TracebackType
from typing import Any

import yaml

from conduit.config import load_text
from conduit.observe.counters import CounterRegistry
from conduit.runtime.dataplane import Dataplane
from conduit.snapshot import SnapshotRef, compile_snapshot
from tests.support.ports import free_port


class InProcess:
    """A serving data plane; `port` is its UDP listener."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.port = free_port()
        config["listeners"] = {
            "listeners": [{"address": f"127.0.0.1:{self.port}", "protocol": "udp"}]
        }
        config.setdefault("metrics", {"enabled": True})
        loaded = load_text(yaml.safe_dump(config), "test.yaml")
        self.counters = CounterRegistry()
        self.snapshots = SnapshotRef(compile_snapshot(loaded.config, 1, loaded.base_dir))
        self.dataplane = Dataplane(self.snapshots, self.counters)

    def __enter__(self) -> InProcess:
        self.dataplane.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.dataplane.stop()
