"""One dnsperf run: rate, losses, latency and the CPU time of the server under load."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tools.bench.process import Measured


@dataclass(frozen=True)
class Round:
    """The figures of one run; latencies in milliseconds."""

    rate: float
    sent: int
    lost: int
    #: answers with an rcode other than NOERROR: every name of the query file exists
    failed: int
    average_ms: float
    cpu_per_1000: float


def _number(pattern: str, text: str) -> float:
    found = re.search(pattern, text)
    if found is None:
        raise RuntimeError(f"dnsperf printed no {pattern!r}:\n{text}")
    return float(found.group(1))


def _answered(text: str) -> int:
    """The answers with NOERROR; dnsperf leaves out an rcode that it did not see."""
    found = re.search(r"Response codes:.*\bNOERROR (\d+)", text)
    return int(found.group(1)) if found is not None else 0


def _dnsperf(port: int, queries: Path, seconds: float, window: int, *more: str) -> str:
    command = [
        "dnsperf",
        *("-s", "127.0.0.1", "-p", str(port), "-d", str(queries)),
        *("-l", str(max(1, round(seconds))), "-q", str(window), "-c", "4", "-t", "5"),
        *more,
    ]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def measure(server: Measured, queries: Path, seconds: float, window: int) -> Round:
    """Load `server` for `seconds` with `window` queries outstanding."""
    before = server.cpu_seconds()
    text = _dnsperf(server.port, queries, seconds, window)
    cpu = server.cpu_seconds() - before
    completed = _number(r"Queries completed:\s+(\d+)", text)
    return Round(
        _number(r"Queries per second:\s+([\d.]+)", text),
        int(_number(r"Queries sent:\s+(\d+)", text)),
        int(_number(r"Queries lost:\s+(\d+)", text)),
        int(completed) - _answered(text),
        _number(r"Average Latency \(s\):\s+([\d.]+)", text) * 1000,
        cpu / max(1.0, completed) * 1000,
    )


def percentiles(server: Measured, queries: Path, window: int) -> tuple[float, float, float]:
    """Return p50, p95 and p99 latency in milliseconds of a one-second run."""
    text = _dnsperf(server.port, queries, 1, window, "-v")
    values = sorted(
        float(line.rsplit(" ", 1)[1]) * 1000 for line in text.splitlines() if line.startswith("> N")
    )
    if not values:
        raise RuntimeError("dnsperf saw no answer")
    last = len(values) - 1
    p50, p95, p99 = (values[min(last, int(len(values) * p))] for p in (0.5, 0.95, 0.99))
    return p50, p95, p99
