"""The forwarder in several configurations, measured in turn over the same upstream."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping
from pathlib import Path

from tools.bench.load import Round, measure
from tools.bench.process import Measured
from tools.bench.report import progress
from tools.bench.servers import start_conduit, start_nsd, write_queries


def in_turn(
    folder: Path, options: argparse.Namespace, extra: Mapping[str, str], what: str
) -> dict[str, list[Round]]:
    """Run every round of each alternative side by side; `extra` is more YAML by name."""
    nsd = start_nsd(folder)
    servers: list[Measured] = [nsd]
    rounds: dict[str, list[Round]] = {name: [] for name in extra}
    try:
        command = shlex.split(options.conduit_command)
        for name, yaml in extra.items():
            servers.append(start_conduit(folder, nsd.port, command, yaml, name))
        queries = write_queries(folder)
        for number in range(options.rounds):
            for server in servers[1:]:
                progress(f"{what}: round {number + 1} of {options.rounds}, {server.name}")
                rounds[server.name].append(
                    measure(server, queries, options.seconds, options.window)
                )
        progress("")
    finally:
        for server in reversed(servers):
            server.stop()
    return rounds
