"""A long run: steady load, reloads, a backend that comes and goes, scrapes and dnstap.

Nothing may be lost but what the stopped backend explains, and memory, threads and descriptors must
stay flat. The command is `tools/soak`.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

from tools.bench.load import measure
from tools.bench.process import Measured, find_program
from tools.bench.servers import free_port, start_nsd, write_queries

#: Seconds between two reloads, and between two changes of the second backend.
RELOAD_EVERY = 10.0
BACKEND_EVERY = 10.0


@dataclass
class Sample:
    """The service at one moment."""

    at: float
    resident: int
    threads: int
    descriptors: int


@dataclass
class SoakResult:
    """What a soak saw; `explained` is how many failures the stopped backend may cause."""

    sent: int
    lost: int
    failed: int
    explained: int
    reloads: int
    outages: int
    scrapes: int
    failed_scrapes: int
    frames: float
    samples: list[Sample] = field(default_factory=list)

    def growth(self, warm_up: float) -> float:
        """Growth of resident memory after `warm_up` seconds, as a share."""
        settled = [s for s in self.samples if s.at >= warm_up]
        third = max(1, len(settled) // 3)
        first = sorted(s.resident for s in settled[:third])[third // 2]
        last = sorted(s.resident for s in settled[-third:])[third // 2]
        return last / first - 1

    def faults(self, warm_up: float, growth_limit: float) -> list[str]:
        """Return what is not as it must be."""
        found = []
        if self.lost + self.failed > self.explained:
            found.append(f"{self.lost} lost and {self.failed} failed of {self.sent} queries")
        if self.growth(warm_up) > growth_limit:
            found.append(f"memory grew by {self.growth(warm_up):.1%}")
        settled = [s for s in self.samples if s.at >= warm_up]
        for name in ("threads", "descriptors"):
            values = [getattr(s, name) for s in settled]
            # the pool and the upstream sockets breathe, a leak only grows
            if min(values[-5:]) > max(values[:5]) * 1.5 + 8:
                found.append(f"{name} grew from {max(values[:5])} to {min(values[-5:])}")
        if self.failed_scrapes:
            found.append(f"{self.failed_scrapes} of {self.scrapes} scrapes failed")
        if not self.frames:
            found.append("no dnstap frame was delivered")
        return found


def soak(folder: Path, seconds: float, share: float, runtime: str) -> SoakResult:
    """Run for `seconds` at `share` of what the service can do."""
    first, second = start_nsd(_made(folder / "a")), start_nsd(_made(folder / "b"))
    metrics, socket = free_port(), folder / "tap.sock"
    collector = subprocess.Popen(
        [
            find_program("fstrm_capture") or "fstrm_capture",
            *("-t", "protobuf:dnstap.Dnstap", "-u", str(socket), "-w", "/dev/null"),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    port = free_port()
    config = folder / "soak.yaml"
    config.write_text(_configuration(port, first.port, second.port, metrics, socket, runtime))
    command = [sys.executable, "-m", "conduit.cli.daemon", "-c", str(config)]
    conduit = Measured("conduit", command, port, folder / "soak.log")
    queries = write_queries(folder)
    backend = _Backend(second, folder / "b")
    try:
        capacity = measure(conduit, queries, 3, 100).rate
        rate = capacity * share
        _say(f"{capacity:.0f} q/s possible, {rate:.0f} q/s for {seconds:g} s, {runtime}")
        load = subprocess.Popen(
            [
                *("dnsperf", "-s", "127.0.0.1", "-p", str(port), "-d", str(queries)),
                *("-q", "200", "-c", "4", "-t", "5"),
                *("-l", str(round(seconds)), "-Q", str(round(rate))),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        watch = _Watch(conduit, metrics)
        watch.start()
        reloads = outages = 0
        started = time.monotonic()
        next_reload, next_change = started + RELOAD_EVERY, started + BACKEND_EVERY / 2
        while load.poll() is None:
            now = time.monotonic()
            if now >= next_reload:
                conduit.send_signal(signal.SIGHUP)
                reloads += 1
                next_reload += RELOAD_EVERY
            if now >= next_change:
                outages += backend.toggle()
                next_change += BACKEND_EVERY
            time.sleep(0.1)
        watch.stop()
        text = load.communicate()[0]
        frames = _metric(metrics, "conduit_events_delivered_total")
    finally:
        for step in (conduit.stop, backend.stop, first.stop, collector.terminate):
            step()
        collector.wait(5)
    completed = _count(r"Queries completed:\s+(\d+)", text)
    good = _count(r"NOERROR (\d+)", text)
    return SoakResult(
        sent=_count(r"Queries sent:\s+(\d+)", text),
        lost=_count(r"Queries lost:\s+(\d+)", text),
        failed=completed - good,
        # each outage may cost what is under way to the backend until it is marked down
        explained=outages * round(rate * 0.25),
        reloads=reloads,
        outages=outages,
        scrapes=watch.scrapes,
        failed_scrapes=watch.failed,
        frames=frames,
        samples=watch.samples,
    )


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _configuration(
    port: int, first: int, second: int, metrics: int, socket: Path, runtime: str
) -> str:
    return (
        "schema_version: 1\n"
        f'listeners: {{ listeners: [{{ address: "127.0.0.1:{port}", protocol: udp, '
        "rcvbuf: 1048576 }] }\n"
        "pools:\n  - name: default\n"
        f'    backends: [{{ address: "127.0.0.1:{first}" }}, {{ address: "127.0.0.1:{second}" }}]\n'
        "    health: { enabled: true, interval_ms: 500, timeout_ms: 300, passive_fall: 2,\n"
        "              probe_qname: ns1.example.test., probe_qtype: A }\n"
        "forward: { timeout_ms: 500, outstanding_per_backend: 10000 }\n"
        "orchestrator: { txn_table_capacity: 4096 }\n"
        f"dataplane: {{ runtime: {runtime} }}\n"
        "rules: { rules: [{ name: again, hook: response, "
        "selectors: [{ type: rcode, value: SERVFAIL }], actions: [{ type: retry }] }] }\n"
        "metrics: { enabled: true, base: standard, "
        f'prometheus: {{ listen_address: "127.0.0.1:{metrics}" }} }}\n'
        f"events: {{ sinks: [{{ type: dnstap, name: tap, destinations: ['unix:{socket}'] }}] }}\n"
        "logging: { level: warn }\n"
    )


class _Backend:
    """A name server that is ended and started again on its port."""

    def __init__(self, server: Measured, folder: Path) -> None:
        self._server: Measured | None = server
        self._command = server.command
        self._port = server.port
        self._log = folder / "again.log"

    def toggle(self) -> int:
        """End it, or start it again; returns 1 for an end."""
        if self._server is not None:
            self._server.stop()
            self._server = None
            return 1
        self._server = Measured("nsd", self._command, self._port, self._log)
        return 0

    def stop(self) -> None:
        if self._server is not None:
            self._server.stop()


class _Watch(threading.Thread):
    """Scrapes and samples the service once a second."""

    def __init__(self, conduit: Measured, port: int) -> None:
        super().__init__(daemon=True)
        self._conduit = conduit
        self._port = port
        self._end = threading.Event()
        self._began = time.monotonic()
        self.samples: list[Sample] = []
        self.scrapes = 0
        self.failed = 0

    def run(self) -> None:
        folder = Path(f"/proc/{self._conduit.pid}")
        while not self._end.wait(1.0):
            self.scrapes += 1
            try:
                _page(self._port)
            except OSError:
                self.failed += 1
            self.samples.append(
                Sample(
                    time.monotonic() - self._began,
                    self._conduit.resident_bytes(),
                    len(os.listdir(folder / "task")),
                    len(os.listdir(folder / "fd")),
                )
            )

    def stop(self) -> None:
        self._end.set()
        self.join(5)


def _page(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as page:
        text: str = page.read().decode()
    return text


def _metric(port: int, name: str) -> float:
    lines = (line for line in _page(port).splitlines() if line.startswith(name))
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines)


def _count(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    return int(found.group(1)) if found is not None else 0


def _say(text: str) -> None:
    print(text, flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Run a soak; returns 1 when something was not as it must be."""
    parser = argparse.ArgumentParser(prog="tools/soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0, help="length (default 600)")
    parser.add_argument("--share", type=float, default=0.7, help="of capacity (default 0.7)")
    parser.add_argument("--runtime", choices=["sync", "split_io"], default="sync")
    parser.add_argument("--growth", type=float, default=0.02, help="memory limit (default 0.02)")
    options = parser.parse_args(arguments)
    for program in ("nsd", "dnsperf", "fstrm_capture"):
        if find_program(program) is None and shutil.which(program) is None:
            _say(f"{program} is needed; `make peers` installs it")
            return 2
    os.chdir(Path(__file__).resolve().parents[2])
    with tempfile.TemporaryDirectory(prefix="conduit-soak-") as folder:
        result = soak(Path(folder), options.seconds, options.share, options.runtime)
    warm_up = min(60.0, options.seconds / 3)
    _say(
        f"{result.sent} sent, {result.lost} lost, {result.failed} failed "
        f"(the stopped backend explains up to {result.explained}); {result.reloads} reloads, "
        f"{result.outages} outages, {result.scrapes} scrapes, {result.frames:.0f} frames"
    )
    last = result.samples[-1]
    _say(
        f"memory {last.resident / 1e6:.1f} MB, growth {result.growth(warm_up):+.2%} after "
        f"{warm_up:.0f} s; {last.threads} threads, {last.descriptors} descriptors"
    )
    every = max(1, len(result.samples) // 10)
    _say("memory in MB: " + " ".join(f"{s.resident / 1e6:.0f}" for s in result.samples[::every]))
    _say("threads: " + " ".join(str(s.threads) for s in result.samples[::every]))
    faults = result.faults(warm_up, options.growth)
    for fault in faults:
        _say(f"FAIL  {fault}")
    return 1 if faults else 0
