"""The benchmark command: chooses scenarios, prints the machine and the end."""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tools.bench import caching, forwarding, observing, phases, policy
from tools.bench.report import Bars, say

SCENARIOS = {
    "forward": forwarding.forward,
    "split": forwarding.split,
    "slow": forwarding.slow,
    "slow-split": forwarding.slow_split,
    "rules": policy.rules,
    "script": policy.script,
    "cache": caching.hits,
    "cache-store": caching.stores,
    "churn": caching.churn,
    "observe": observing.observe,
    "phases": phases.phases,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the chosen scenarios; returns 1 when a bar was missed."""
    parser = argparse.ArgumentParser(prog="tools/bench/run", description=__doc__)
    parser.add_argument("--scenario", choices=[*SCENARIOS, "all"], default="all")
    parser.add_argument("--rounds", type=int, default=3, help="rounds a server (default 3)")
    parser.add_argument("--seconds", type=float, default=4.0, help="seconds a round (default 4)")
    parser.add_argument("--window", type=int, default=100, help="queries outstanding (default 100)")
    parser.add_argument("--json", metavar="FILE", help="write all figures to FILE")
    parser.add_argument(
        "--conduit-command",
        default="",
        metavar="COMMAND",
        help="measure this command instead of this checkout; -c FILE is appended",
    )
    options = parser.parse_args(arguments)
    # SIGTERM unwinds like Ctrl-C, so that no server is left behind
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    os.chdir(Path(__file__).resolve().parents[2])
    machine = {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "system": platform.platform(),
    }
    say(f"{machine['cores']} cores, Python {machine['python']}, {machine['system']}")
    bars = Bars()
    figures: dict[str, Any] = {"machine": machine}
    names = list(SCENARIOS) if options.scenario == "all" else [options.scenario]
    for name in names:
        with tempfile.TemporaryDirectory(prefix="conduit-bench-") as folder:
            try:
                figures[name] = SCENARIOS[name](Path(folder), options, bars)
            except (RuntimeError, OSError) as error:
                say(f"{name}: {error}")
                for log in sorted(Path(folder).glob("*.log")):
                    say(f"--- {log.name}\n{log.read_text()[-2000:]}")
                return 2
    figures["bars"] = bars.results
    if options.json:
        Path(options.json).write_text(json.dumps(figures, indent=2) + "\n")
    return 0 if all(result["ok"] for result in bars.results) else 1
