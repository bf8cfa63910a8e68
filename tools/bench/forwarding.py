"""Forwarding: against the peers, and with an upstream that takes its time."""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tools.bench.load import Round, measure, percentiles
from tools.bench.process import Measured
from tools.bench.report import Bars, as_json, median, progress, ratio, say
from tools.bench.servers import (
    free_port,
    start_conduit,
    start_dnsdist,
    start_dnsmasq,
    start_nsd,
    write_queries,
)

SLOW_DELAY = 0.05


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
                progress(f"forward: round {number + 1} of {options.rounds}, {server.name}")
                rounds[server.name].append(
                    measure(server, queries, options.seconds, options.window)
                )
        tails = {server.name: percentiles(server, queries, options.window) for server in measured}
        progress("")
        memory = {server.name: server.resident_bytes() for server in measured}
    finally:
        for server in reversed(servers):
            server.stop()
    say(f"\nforward, {options.window} outstanding, {options.rounds} x {options.seconds:g} s")
    _table(rounds, tails, memory)
    own = rounds["conduit"]
    for peer_name, least in (("dnsmasq", 1.5), ("dnsdist", 0.12)):
        if peer_name not in rounds:
            say(f"  {peer_name} is not installed: no ratio")
            continue
        ratios = [a.rate / b.rate for a, b in zip(own, rounds[peer_name], strict=True)]
        text = (
            f"rate against {peer_name}, {min(ratios):.2f} to {max(ratios):.2f} (at least {least})"
        )
        bars.check(text, median(ratios), median(ratios) >= least)
    answered = 1 - sum(r.lost + r.failed for r in own) / max(1, sum(r.sent for r in own))
    bars.check("share answered with NOERROR (at least 0.999)", answered, answered >= 0.999)
    bars.check(
        "seconds from start to first answer (under 0.6)",
        conduit.start_seconds,
        conduit.start_seconds < 0.6,
    )
    bars.check("resident MB at idle (under 60)", idle / 1e6, idle < 60e6)
    return {
        "rounds": as_json(rounds),
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
    say(
        f"  {'':<10}{'q/s':>9}{'avg ms':>9}{'p50':>8}{'p95':>8}{'p99':>8}"
        f"{'lost':>7}{'failed':>8}{'CPU s/1000':>12}{'MB':>7}"
    )
    for name, values in rounds.items():
        p50, p95, p99 = tails[name]
        say(
            f"  {name:<10}{median([r.rate for r in values]):>9.0f}"
            f"{median([r.average_ms for r in values]):>9.2f}{p50:>8.2f}{p95:>8.2f}{p99:>8.2f}"
            f"{sum(r.lost for r in values):>7}{sum(r.failed for r in values):>8}"
            f"{median([r.cpu_per_1000 for r in values]):>12.4f}{memory[name] / 1e6:>7.0f}"
        )


def slow(folder: Path, options: argparse.Namespace, bars: Bars) -> dict[str, Any]:
    """A 50 ms upstream with a window of 200: the elastic worker pool at work."""
    return _slow(folder, options, bars, "sync", 200, 0.8)


def slow_split(folder: Path, options: argparse.Namespace, bars: Bars) -> dict[str, Any]:
    """A 50 ms upstream with a window of 500 under `split_io`: nothing but parked transactions."""
    return _slow(folder, options, bars, "split_io", 500, 0.9)


def _slow(
    folder: Path,
    options: argparse.Namespace,
    bars: Bars,
    runtime: str,
    window: int,
    least: float,
) -> dict[str, Any]:
    port = free_port()
    command = [sys.executable, "-m", "tools.bench.slow_upstream", str(port), str(SLOW_DELAY)]
    upstream = Measured("slow", command, port, folder / "slow.log")
    servers = [upstream]
    extra = f"dataplane: {{ runtime: {runtime} }}\n"
    try:
        own = shlex.split(options.conduit_command)
        conduit = start_conduit(folder, port, own, extra, "slow-c")
        servers.append(conduit)
        queries = write_queries(folder)
        rounds = []
        for number in range(options.rounds):
            progress(f"slow upstream: round {number + 1} of {options.rounds}")
            rounds.append(measure(conduit, queries, options.seconds, window))
        progress("")
    finally:
        for server in reversed(servers):
            server.stop()
    possible = window / SLOW_DELAY
    rate = median([r.rate for r in rounds])
    lost = sum(r.lost + r.failed for r in rounds)
    say(f"\n50 ms upstream, {runtime}, {window} outstanding: {rate:.0f} of {possible:.0f} q/s")
    bars.check("queries lost or failed (none)", lost, lost == 0)
    share = rate / possible
    bars.check(f"share of window / delay (at least {least})", share, share >= least)
    return {"rounds": [asdict(r) for r in rounds], "possible": possible}


def split(folder: Path, options: argparse.Namespace, bars: Bars) -> dict[str, Any]:
    """Forwarding under `split_io` against dnsdist and against `sync`."""
    nsd = start_nsd(folder)
    servers: list[Measured] = [nsd]
    try:
        own = shlex.split(options.conduit_command)
        for runtime in ("split_io", "sync"):
            extra = f"dataplane: {{ runtime: {runtime} }}\n"
            servers.append(start_conduit(folder, nsd.port, own, extra, runtime))
        peer = start_dnsdist(folder, nsd.port)
        servers += [] if peer is None else [peer]
        queries = write_queries(folder)
        rounds: dict[str, list[Round]] = {server.name: [] for server in servers[1:]}
        for number in range(options.rounds):
            for server in servers[1:]:
                progress(f"split: round {number + 1} of {options.rounds}, {server.name}")
                rounds[server.name].append(
                    measure(server, queries, options.seconds, options.window)
                )
        progress("")
    finally:
        for server in reversed(servers):
            server.stop()
    say(f"\nforward, {options.window} outstanding")
    for name, values in rounds.items():
        say(f"  {name:<12}{median([r.rate for r in values]):>9.0f} q/s")
    for name, own_name, least in (("dnsdist", "split_io", 0.35), ("dnsdist", "sync", 0.15)):
        if name in rounds:
            found = ratio(rounds[own_name], rounds[name])
            bars.check(f"{own_name} against {name} (at least {least})", found, found >= least)
    return {"rounds": as_json(rounds)}
