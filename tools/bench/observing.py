"""What being watched costs: metrics with scrapes, event export, traces, debug logging."""

from __future__ import annotations

import argparse
import subprocess
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tools.bench.alternatives import in_turn
from tools.bench.process import find_program
from tools.bench.report import Bars, as_json, median, ratio, say
from tools.bench.servers import free_port

#: Largest share of the undisturbed rate that each way of watching may cost.
LIMITS = {
    "metrics": 0.10,
    "dnstap": 0.25,
    "dnstap 10 %": 0.08,
    "tracing": 0.40,
    "debug log": 0.40,
}


def observe(folder: Path, options: argparse.Namespace, bars: Bars) -> dict[str, Any]:
    """Forwarding watched in one way at a time, against forwarding unwatched."""
    port = free_port()
    socket = folder / "tap.sock"
    alternatives = {
        "unwatched": "",
        "metrics": "metrics: { enabled: true, base: standard, prometheus: "
        f'{{ listen_address: "127.0.0.1:{port}" }} }}\n',
        "tracing": "tracing: { enabled: true }\n",
        "debug log": "logging: { level: debug }\n",
    }
    with _collector(socket) as there, _scraper(port):
        if there:
            alternatives["dnstap"] = _dnstap(socket, 100)
            alternatives["dnstap 10 %"] = _dnstap(socket, 10)
        else:
            say("fstrm_capture is not installed (Debian package fstrm-bin): no dnstap figures")
        rounds = in_turn(folder, options, alternatives, "observe")
    say(f"\nforward while watched, {options.window} outstanding")
    base = rounds["unwatched"]
    for name, values in rounds.items():
        rate = median([r.rate for r in values])
        say(f"  {name:<12}{rate:>9.0f} q/s{ratio(values, base):>8.3f} of unwatched")
    for name, limit in LIMITS.items():
        if name in rounds:
            cost = 1 - ratio(rounds[name], base)
            bars.check(f"cost of {name} (at most {limit:.2f})", cost, cost <= limit)
    return {"rounds": as_json(rounds)}


def _dnstap(socket: Path, percent: int) -> str:
    return (
        f"events: {{ sinks: [{{ type: dnstap, name: tap, destinations: ['unix:{socket}'], "
        f"filters: {{ sample_percent: {percent} }} }}] }}\n"
    )


@contextmanager
def _collector(socket: Path) -> Iterator[bool]:
    """Run fstrm_capture on `socket` with its output thrown away; False without the program."""
    program = find_program("fstrm_capture")
    if program is None:
        yield False
        return
    command = [program, "-t", "protobuf:dnstap.Dnstap", "-u", str(socket), "-w", "/dev/null"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield True
    finally:
        process.terminate()
        process.wait(5)


@contextmanager
def _scraper(port: int) -> Iterator[None]:
    """Read the metrics page once a second, as far as it is there."""
    stop = threading.Event()

    def scrape() -> None:
        while not stop.wait(1.0):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=2) as page:
                    page.read()
            except OSError:
                continue

    thread = threading.Thread(target=scrape, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(3)
