"""The answer cache: hits against the peers, the two stores, memory and churn."""

from __future__ import annotations

import argparse
import random
import shlex
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

from tools.bench.load import Round, measure
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

CACHE_YAML = (
    "caches: [{ name: c, type: memory }]\n"
    "lookup: { profiles: { default: { providers: "
    "[{ type: cache, cache: c }, { type: forward }] } } }\n"
)


def hits(folder: Path, options: argparse.Namespace, bars: Bars) -> dict[str, Any]:
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
                progress(f"cache: round {number + 1} of {options.rounds}, {server.name}")
                rounds[server.name].append(
                    measure(server, queries, options.seconds, options.window)
                )
        progress("")
    finally:
        for server in reversed(servers):
            server.stop()
    say(f"\ncache hits, {options.window} outstanding")
    for name, values in rounds.items():
        say(f"  {name:<12}{median([r.rate for r in values]):>9.0f} q/s")
    own = rounds["conduit"]
    for name, least in (("dnsdist", 0.25), ("dnsmasq", 0.5), ("forwarding", 2.5)):
        if name in rounds:
            share = ratio(own, rounds[name])
            bars.check(f"hits against {name} (at least {least})", share, share >= least)
    return {"rounds": as_json(rounds)}


def stores(folder: Path, options: argparse.Namespace, bars: Bars) -> dict[str, Any]:
    """Warm hits of LMDB against memory, and what 100,000 entries add in memory."""
    entries = 100_000
    nsd = start_nsd(folder)
    servers: list[Measured] = [nsd]
    lmdb = CACHE_YAML.replace(
        "type: memory", f"type: lmdb, lmdb: {{ path: {folder}/store, map_size: 256MB, sync: none }}"
    )
    try:
        command = shlex.split(options.conduit_command)
        servers.append(start_conduit(folder, nsd.port, command, CACHE_YAML, "memory"))
        servers.append(start_conduit(folder, nsd.port, command, lmdb, "lmdb"))
        queries = write_queries(folder)
        rounds: dict[str, list[Round]] = {server.name: [] for server in servers[1:]}
        for server in servers[1:]:
            measure(server, queries, 1, options.window)
        for number in range(options.rounds):
            for server in servers[1:]:
                progress(f"stores: round {number + 1} of {options.rounds}, {server.name}")
                rounds[server.name].append(
                    measure(server, queries, options.seconds, options.window)
                )
        progress(f"stores: {entries:,} entries")
        memory = servers[1]
        before = memory.resident_bytes()
        many = folder / "many.txt"
        many.write_text("".join(f"m{n}.w.example.test A\n" for n in range(entries)))
        _once(memory, many, options.window)
        added = (memory.resident_bytes() - before) / 1e6
        progress("")
    finally:
        for server in reversed(servers):
            server.stop()
    say(f"\ncache stores, {options.window} outstanding")
    for name, values in rounds.items():
        say(f"  {name:<12}{median([r.rate for r in values]):>9.0f} q/s")
    share = ratio(rounds["lmdb"], rounds["memory"])
    bars.check("warm LMDB hits against memory (at least 0.7)", share, share >= 0.7)
    bars.check(f"MB that {entries:,} entries add (at most 120)", added, added <= 120)
    return {"rounds": as_json(rounds), "added_mb": added}


def churn(folder: Path, options: argparse.Namespace, bars: Bars) -> dict[str, Any]:
    """4,096 names asked for at random with room for 2,048: the hit rate."""
    names, asked = 4096, 200_000
    nsd = start_nsd(folder)
    servers: list[Measured] = [nsd]
    port = free_port()
    extra = CACHE_YAML.replace("type: memory", "type: memory, max_entries: 2048") + (
        f'metrics: {{ enabled: true, prometheus: {{ listen_address: "127.0.0.1:{port}" }} }}\n'
    )
    try:
        command = shlex.split(options.conduit_command)
        conduit = start_conduit(folder, nsd.port, command, extra, "churn")
        servers.append(conduit)
        draw = random.Random(1)
        file = folder / "churn.txt"
        file.write_text(
            "".join(f"c{draw.randrange(names)}.w.example.test A\n" for _ in range(asked))
        )
        progress("churn: filling")
        _once(conduit, file, options.window)
        before = _lookups(port)
        progress("churn: measuring")
        _once(conduit, file, options.window)
        after = _lookups(port)
        progress("")
    finally:
        for server in reversed(servers):
            server.stop()
    hit, miss = (after[kind] - before[kind] for kind in ("hit", "miss"))
    rate = hit / (hit + miss) * 100
    say(f"\nchurn, {names:,} names, room for 2,048, {asked:,} queries")
    bars.check("hit rate in percent (45 to 52)", rate, 45 <= rate <= 52)
    return {"hit_rate": rate}


def _once(server: Measured, queries: Path, window: int) -> None:
    """Ask every line of `queries` once."""
    command = ["dnsperf", "-s", "127.0.0.1", "-p", str(server.port), "-d", str(queries)]
    subprocess.run([*command, "-n", "1", "-q", str(window)], capture_output=True, check=True)


def _lookups(port: int) -> dict[str, float]:
    """Cache lookups by result, from the metrics page."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as page:
        lines = page.read().decode().splitlines()
    found = {"hit": 0.0, "miss": 0.0}
    for line in lines:
        if line.startswith("conduit_cache_lookups_total{"):
            for kind in found:
                if f'result="{kind}"' in line:
                    found[kind] += float(line.rsplit(" ", 1)[1])
    return found
