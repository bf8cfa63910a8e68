"""What a scenario reports: lines, progress, the bars and how they were met."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from tools.bench.load import Round


def say(text: str = "") -> None:
    """Print one line of the report."""
    print(text, flush=True)


def progress(text: str) -> None:
    """Show what is going on, on one line of a terminal."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{text}")
    elif text:
        sys.stderr.write(text + "\n")
    sys.stderr.flush()


def median(values: Sequence[float]) -> float:
    """The middle value."""
    return statistics.median(values)


def ratio(own: Sequence[Round], other: Sequence[Round]) -> float:
    """The median ratio of the rates of rounds that were run side by side."""
    return median([a.rate / b.rate for a, b in zip(own, other, strict=True)])


def as_json(rounds: Mapping[str, Sequence[Round]]) -> dict[str, Any]:
    """The rounds of each server as plain data."""
    return {name: [asdict(r) for r in values] for name, values in rounds.items()}


class Bars:
    """The limits that an issue or a release sets, with what was measured."""

    def __init__(self) -> None:
        self.results: list[dict[str, Any]] = []

    def check(self, text: str, value: float, ok: bool) -> None:
        """Note one bar."""
        self.results.append({"bar": text, "value": round(value, 4), "ok": ok})
        say(f"  {'pass' if ok else 'FAIL'}  {text}: {value:.3g}")
