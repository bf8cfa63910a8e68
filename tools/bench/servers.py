"""What is measured: NSD as the upstream, the forwarder, and dnsdist and dnsmasq as peers."""

from __future__ import annotations

import random
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.bench.process import Measured, find_program

NAMES = 1000
_random = random.Random()


def free_port() -> int:
    """Return a loopback port that is free for UDP and TCP."""
    while True:
        port = _random.randrange(10_000, 30_000)
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp, socket.socket() as tcp:
                udp.bind(("127.0.0.1", port))
                tcp.bind(("127.0.0.1", port))
            return port
        except OSError:
            continue


def start_nsd(folder: Path) -> Measured:
    """NSD with a wildcard zone, rate limiting off."""
    program = find_program("nsd")
    if program is None:
        raise RuntimeError("nsd is needed (Debian package nsd); `make peers` installs it")
    port = free_port()
    (folder / "bench.zone").write_text(
        "$ORIGIN example.test.\n$TTL 3600\n@ SOA ns1 host 1 2 3 4 300\n@ NS ns1\n"
        "ns1 A 192.0.2.53\n*.w A 192.0.2.9\n"
    )
    (folder / "nsd.conf").write_text(
        f'server:\n  ip-address: 127.0.0.1@{port}\n  username: ""\n  zonesdir: "{folder}"\n'
        f'  database: ""\n  pidfile: "{folder}/nsd.pid"\n  xfrdfile: "{folder}/xfrd"\n'
        f'  zonelistfile: "{folder}/zones"\n  server-count: 1\n  rrl-ratelimit: 0\n'
        "  rrl-whitelist-ratelimit: 0\nremote-control:\n  control-enable: no\n"
        "zone:\n  name: example.test\n  zonefile: bench.zone\n"
    )
    command = [program, "-d", "-c", str(folder / "nsd.conf")]
    return Measured("nsd", command, port, folder / "nsd.log")


def start_conduit(
    folder: Path, upstream: int, command: Sequence[str] = (), extra: str = "", name: str = "conduit"
) -> Measured:
    """The forwarder, from this checkout unless `command` says otherwise; `extra` is more YAML."""
    port = free_port()
    path = folder / f"{name}.yaml"
    path.write_text(
        "schema_version: 1\nlisteners:\n  listeners:\n"
        f'    - {{ address: "127.0.0.1:{port}", protocol: udp, rcvbuf: 1048576 }}\n'
        f'pools:\n  - name: default\n    backends: [{{ address: "127.0.0.1:{upstream}" }}]\n'
        "forward: { outstanding_per_backend: 10000 }\n"
        "orchestrator: { txn_table_capacity: 4096 }\n"
        + ("" if "logging:" in extra else "logging: { level: warn }\n")
        + extra
    )
    command = command or [sys.executable, "-m", "conduit.cli.daemon"]
    return Measured(name, [*command, "-c", str(path)], port, folder / f"{name}.log")


def start_dnsdist(folder: Path, upstream: int, cache: bool = False) -> Measured | None:
    """dnsdist, with a packet cache or without, or None when it is not installed."""
    program = find_program("dnsdist")
    if program is None:
        return None
    port = free_port()
    (folder / "dnsdist.conf").write_text(
        f'setLocal("127.0.0.1:{port}")\nsetACL("127.0.0.0/8")\nsetSecurityPollSuffix("")\n'
        f'newServer({{address="127.0.0.1:{upstream}", checkName="example.test."}})\n'
        + ('getPool(""):setCache(newPacketCache(100000))\n' if cache else "")
    )
    command = [program, "--supervised", "--disable-syslog", "-C", str(folder / "dnsdist.conf")]
    return Measured("dnsdist", command, port, folder / "dnsdist.log")


def start_dnsmasq(folder: Path, upstream: int, cache: bool = False) -> Measured | None:
    """dnsmasq, with a cache or without, or None when it is not installed."""
    program = find_program("dnsmasq")
    if program is None:
        return None
    port = free_port()
    command = [
        program,
        "--keep-in-foreground",
        "--conf-file=/dev/null",
        f"--port={port}",
        "--listen-address=127.0.0.1",
        "--bind-interfaces",
        "--no-resolv",
        "--no-hosts",
        "--user=",
        f"--pid-file={folder}/dnsmasq.pid",
        f"--server=127.0.0.1#{upstream}",
        f"--cache-size={10000 if cache else 0}",
        "--dns-forward-max=10000",
    ]
    return Measured("dnsmasq", command, port, folder / "dnsmasq.log")


def write_queries(folder: Path) -> Path:
    """Write the query file that dnsperf repeats."""
    path = folder / "queries.txt"
    path.write_text("".join(f"h{n}.w.example.test A\n" for n in range(NAMES)))
    return path
