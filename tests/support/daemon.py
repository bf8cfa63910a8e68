"""The daemon under test: a child process on a configuration file, with its log and its metrics."""

from __future__ import annotations

import os
import re
import signal
import sys
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dns.message
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.support.child import Child
from tests.support.client import ask

Labels = Mapping[str, str]


class Conduit(Child):
    """`conduit -c FILE`: waits until the listeners serve, then answers `query`."""

    def __init__(
        self,
        folder: Path,
        config: Mapping[str, Any],
        *,
        env: Mapping[str, str] | None = None,
        wait: bool = True,
        cwd: Path | None = None,
        arguments: tuple[str, ...] = (),
        prefix: tuple[str, ...] = (),
        files: Mapping[str, str] | None = None,
        runtime: str = "sync",
    ) -> None:
        self._runtime = runtime
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in (files or {}).items():
            (folder / name).write_text(text)
        self.path = folder / "conduit.yaml"
        self.write(config)
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), **(env or {})}
        super().__init__(
            [*prefix, sys.executable, "-m", "conduit.cli.daemon", "-c", str(self.path), *arguments],
            cwd=cwd,
            env=environment,
        )
        if wait:
            self.wait_for_line("dataplane listeners started")

    def write(self, config: Mapping[str, Any] | str) -> None:
        """Replace the configuration file."""
        if isinstance(config, str):
            text = config
        else:
            document = dict(config)
            if "pools" in document:
                dataplane = document.get("dataplane", {})
                document["dataplane"] = {"runtime": self._runtime, **dataplane}
            text = yaml.safe_dump(document, sort_keys=False)
        self.path.write_text(text)

    def listener(self, protocol: str = "udp", number: int = 0) -> tuple[str, int]:
        """Host and port that the log says were bound."""
        pattern = re.compile(rf"Starting listening on (\S+):(\d+) {protocol}$")
        found = [m for line in self.lines if (m := pattern.search(line))]
        return found[number].group(1).strip("[]"), int(found[number].group(2))

    def query(
        self, qname: str, qtype: str = "A", *, tcp: bool = False, number: int = 0, **options: Any
    ) -> dns.message.Message:
        """Ask the daemon."""
        host, port = self.listener("tcp" if tcp else "udp", number)
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
        return ask(host, port, qname, qtype, tcp=tcp, **options)

    def reload(self) -> None:
        """Send SIGHUP and wait until the new configuration is in force."""
        count = sum("config applied" in line for line in self.lines)
        self.send_signal(signal.SIGHUP)
        self.wait_for_line("config applied", count=count + 1)

    def page(self) -> str:
        """The metrics page; the address comes from the log."""
        line = self.wait_for_line("prometheus metrics listening")
        address = re.search(r"address=(\S+)", line)
        assert address is not None
        with urllib.request.urlopen(f"http://{address.group(1)}/metrics", timeout=5) as response:
            return response.read().decode()

    def metric(self, name: str, **labels: str) -> float:
        """Sum of the series of `name` whose labels contain `labels`; 0 without one."""
        total = 0.0
        for family in text_string_to_metric_families(self.page()):
            for sample in family.samples:
                if sample.name == name and labels.items() <= sample.labels.items():
                    total += sample.value
        return total


def configuration(*backends: str, **blocks: Any) -> dict[str, Any]:
    """A configuration with UDP and TCP listeners on free ports and one pool; `blocks` override."""
    config: dict[str, Any] = {
        "schema_version": 1,
        "listeners": {
            "listeners": [
                {"address": "127.0.0.1:0", "protocol": "udp"},
                {"address": "127.0.0.1:0", "protocol": "tcp"},
            ]
        },
        "pools": [{"name": "default", "backends": [{"address": a} for a in backends]}],
    }
    config.update(blocks)
    return config


def with_metrics(port: int) -> dict[str, Any]:
    """A `metrics` block that scrapes on `port`."""
    return {"enabled": True, "prometheus": {"listen_address": f"127.0.0.1:{port}"}}
