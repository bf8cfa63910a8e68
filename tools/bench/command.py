"""The benchmark command: scenarios, rounds, the table, the bars."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tools.bench.load import Round, measure, percentiles
from tools.bench.process import Measured
from tools.bench.servers import (
    free_port,
    start_conduit,
    start_dnsdist,
    start_dnsmasq,
    start_nsd,
    write_queries,
)

SLOW_DELAY = 0.05


def _say(text: str = "") -> None:
    print(text, flush=True)


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{text}")
    else:
        sys.stderr.write(text + "\n")
    sys.stderr.flush()


def _median(values: Sequence[float]) -> float:
    return statistics.median(values)


class Bars:
    """The limits that an issue or a release sets, with what was measured."""

    def __init__(self) -> None:
        self.results: list[dict[str, Any]] = []

    def check(self, text: str, value: float, ok: bool) -> None:
        """Note one bar."""
        self.results.append({"bar": text, "value": round(value, 4), "ok": ok})
        _say(f"  {'pass' if ok else 'FAIL'}  {text}: {value:.3g}")


def forward(folder: Path, options: argparse.Namespace, bars: Bars) -> dict[str, Any]:
    """Plain forwarding through each forwarder in turn, several rounds."""
    nsd = start_nsd(folder)
    servers: list[Measured] = [nsd]
    try:
        conduit = start_conduit(folder, nsd.port, shlex.split(options.conduit_command))
        servers.append(conduit)
        time.sleep(0.5)
        idle = conduit.resident_bytes()
        for start in (start_dnsdist, start_dnsmasq):
            peer = start(folder, nsd.port)
            if peer is not None:
                servers.append(peer)
        queries = write_queries(folder)
        measured = servers[1:]
        rounds: dict[str, list[Round]] = {server.name: [] for server in measured}
        for number in range(options.rounds):
            for server in measured:
                _progress(f"forward: round {number + 1} of {options.rounds}, {server.name}")
                rounds[server.name].append(
                    measure(server, queries, options.seconds, options.window)
                )
        tails = {server.name: percentiles(server, queries, options.window) for server in measured}
        _progress("")
        memory = {server.name: server.resident_bytes() for server in measured}
    finally:
        for server in reversed(servers):
            server.stop()
    _say(f"\nforward, {options.window} outstanding, {options.rounds} x {options.seconds:g} s")
    _table(rounds, tails, memory)
    own = rounds["conduit"]
    for peer_name, least in (("dnsmasq", 1.5), ("dnsdist", 0.12)):
        if peer_name not in rounds:
            _say(f"  {peer_name} is not installed: no ratio")
            continue
        ratios = [a.rate / b.rate for a, b in zip(own, rounds[peer_name], strict=True)]
        text = (
            f"rate against {peer_name}, {min(ratios):.2f} to {max(ratios):.2f} (at least {least})"
        )
        bars.check(text, _median(ratios), _median(ratios) >= least)
    answered = 1 - sum(r.lost + r.failed for r in own) / max(1, sum(r.sent for r in own))
    bars.check("share answered with NOERROR (at least 0.999)", answered, answered >= 0.999)
    bars.check(
        "seconds from start to first answer (under 0.6)",
        conduit.start_seconds,
        conduit.start_seconds < 0.6,
    )
    bars.check("resident MB at idle (under 60)", idle / 1e6, idle < 60e6)
    return {
        "rounds": {name: [asdict(r) for r in values] for name, values in rounds.items()},
        "percentiles_ms": tails,
        "resident_bytes": memory,
        "idle_resident_bytes": idle,
        "start_seconds": conduit.start_seconds,
    }


def _table(
    rounds: dict[str, list[Round]],
    tails: dict[str, tuple[float, float, float]],
    memory: dict[str, int],
) -> None:
    _say(
        f"  {'':<10}{'q/s':>9}{'avg ms':>9}{'p50':>8}{'p95':>8}{'p99':>8}"
        f"{'lost':>7}{'failed':>8}{'CPU s/1000':>12}{'MB':>7}"
    )
    for name, values in rounds.items():
        p50, p95, p99 = tails[name]
        _say(
            f"  {name:<10}{_median([r.rate for r in values]):>9.0f}"
            f"{_median([r.average_ms for r in values]):>9.2f}{p50:>8.2f}{p95:>8.2f}{p99:>8.2f}"
            f"{sum(r.lost for r in values):>7}{sum(r.failed for r in values):>8}"
            f"{_median([r.cpu_per_1000 for r in values]):>12.4f}{memory[name] / 1e6:>7.0f}"
        )


def slow(folder: Path, options: argparse.Namespace, bars: Bars) -> dict[str, Any]:
    """A 50 ms upstream with a window of 200: the elastic worker pool at work."""
    window = 200
    port = free_port()
    command = [sys.executable, "-m", "tools.bench.slow_upstream", str(port), str(SLOW_DELAY)]
    upstream = Measured("slow", command, port, folder / "slow.log")
    servers = [upstream]
    try:
        conduit = start_conduit(folder, port, shlex.split(options.conduit_command), name="slow-c")
        servers.append(conduit)
        queries = write_queries(folder)
        rounds = []
        for number in range(options.rounds):
            _progress(f"slow upstream: round {number + 1} of {options.rounds}")
            rounds.append(measure(conduit, queries, options.seconds, window))
        _progress("")
    finally:
        for server in reversed(servers):
            server.stop()
    possible = window / SLOW_DELAY
    rate = _median([r.rate for r in rounds])
    lost = sum(r.lost + r.failed for r in rounds)
    _say(f"\n50 ms upstream, {window} outstanding: {rate:.0f} q/s of {possible:.0f} possible")
    bars.check("queries lost or failed (none)", lost, lost == 0)
    bars.check("share of window / delay (at least 0.8)", rate / possible, rate / possible >= 0.8)
    return {"rounds": [asdict(r) for r in rounds], "possible": possible}


RULE_COUNTS = (0, 10, 1_000, 10_000)


def _name_rules(count: int) -> str:
    """A `rules` block of `count` exact and suffix rules that no benchmark query matches."""
    if not count:
        return ""
    lines = ["rules:", "  rules:"]
    for number in range(count):
        kind = "qname_exact" if number % 2 else "qname_suffix"
        dot = "" if number % 2 else "."
        lines.append(
            f"    - {{ name: r{number}, hook: request, selectors: [{{ type: {kind}, "
            f'value: "{dot}blocked{number}.example.net." }}], actions: [{{ type: drop }}] }}'
        )
    return "\n".join(lines) + "\n"


def rules(folder: Path, options: argparse.Namespace, bars: Bars) -> dict[str, Any]:
    """Forwarding with 0, 10, 1,000 and 10,000 name rules, each in turn."""
    nsd = start_nsd(folder)
    servers = [nsd]
    try:
        command = shlex.split(options.conduit_command)
        for count in RULE_COUNTS:
            extra = _name_rules(count)
            servers.append(start_conduit(folder, nsd.port, command, extra, f"rules{count}"))
        queries = write_queries(folder)
        rounds: dict[str, list[Round]] = {server.name: [] for server in servers[1:]}
        for number in range(options.rounds):
            for server in servers[1:]:
                _progress(f"rules: round {number + 1} of {options.rounds}, {server.name}")
                rounds[server.name].append(
                    measure(server, queries, options.seconds, options.window)
                )
        _progress("")
    finally:
        for server in reversed(servers):
            server.stop()
    _say(f"\nforward with name rules, {options.window} outstanding")
    base = rounds["rules0"]
    ratios = {
        name: _median([a.rate / b.rate for a, b in zip(values, base, strict=True)])
        for name, values in rounds.items()
    }
    for name, values in rounds.items():
        rate = _median([r.rate for r in values])
        _say(f"  {name:<12}{rate:>9.0f} q/s{ratios[name]:>8.3f} of none")
    share = ratios[f"rules{RULE_COUNTS[-1]}"]
    bars.check("rate with 10,000 name rules against none (at least 0.85)", share, share >= 0.85)
    return {"rounds": {name: [asdict(r) for r in values] for name, values in rounds.items()}}


CACHE_YAML = (
    "caches: [{ name: c, type: memory }]\n"
    "lookup: { profiles: { default: { providers: "
    "[{ type: cache, cache: c }, { type: forward }] } } }\n"
)


def cache(folder: Path, options: argparse.Namespace, bars: Bars) -> dict[str, Any]:
    """Cache hits against the caches of the peers, and against own forwarding."""
    nsd = start_nsd(folder)
    servers: list[Measured] = [nsd]
    try:
        command = shlex.split(options.conduit_command)
        servers.append(start_conduit(folder, nsd.port, command, CACHE_YAML, "conduit"))
        servers.append(start_conduit(folder, nsd.port, command, "", "forwarding"))
        for peer in (
            start_dnsdist(folder, nsd.port, cache=True),
            start_dnsmasq(folder, nsd.port, cache=True),
        ):
            if peer is not None:
                servers.append(peer)
        queries = write_queries(folder)
        rounds: dict[str, list[Round]] = {server.name: [] for server in servers[1:]}
        for server in servers[1:]:
            measure(server, queries, 1, options.window)
        for number in range(options.rounds):
            for server in servers[1:]:
                _progress(f"cache: round {number + 1} of {options.rounds}, {server.name}")
                rounds[server.name].append(
                    measure(server, queries, options.seconds, options.window)
                )
        _progress("")
    finally:
        for server in reversed(servers):
            server.stop()
    _say(f"\ncache hits, {options.window} outstanding")
    for name, values in rounds.items():
        _say(f"  {name:<12}{_median([r.rate for r in values]):>9.0f} q/s")
    own = rounds["conduit"]
    for name, least in (("dnsdist", 0.25), ("dnsmasq", 0.5), ("forwarding", 2.5)):
        if name in rounds:
            ratio = _median([a.rate / b.rate for a, b in zip(own, rounds[name], strict=True)])
            bars.check(f"hits against {name} (at least {least})", ratio, ratio >= least)
    return {"rounds": {name: [asdict(r) for r in values] for name, values in rounds.items()}}


SCENARIOS = {"forward": forward, "slow": slow, "rules": rules, "cache": cache}


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
    _say(f"{machine['cores']} cores, Python {machine['python']}, {machine['system']}")
    bars = Bars()
    figures: dict[str, Any] = {"machine": machine}
    names = list(SCENARIOS) if options.scenario == "all" else [options.scenario]
    for name in names:
        with tempfile.TemporaryDirectory(prefix="conduit-bench-") as folder:
            try:
                figures[name] = SCENARIOS[name](Path(folder), options, bars)
            except (RuntimeError, OSError) as error:
                _say(f"{name}: {error}")
                for log in sorted(Path(folder).glob("*.log")):
                    _say(f"--- {log.name}\n{log.read_text()[-2000:]}")
                return 2
    figures["bars"] = bars.results
    if options.json:
        Path(options.json).write_text(json.dumps(figures, indent=2) + "\n")
    return 0 if all(result["ok"] for result in bars.results) else 1
