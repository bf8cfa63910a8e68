"""Reads a metrics page: fetching, samples, and differences of two readings."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from conduit.cli.ctl.errors import CtlError

#: Seconds that a scrape may take.
TIMEOUT: Final = 5.0
#: Largest page that is read, in octets.
_MAX_PAGE: Final = 64 * 1024 * 1024

Labels = Mapping[str, str]
Samples = Mapping[str, Sequence[tuple[Labels, float]]]


@dataclass(frozen=True)
class Reading:
    """The samples of a page by name, and when it was read (monotonic seconds)."""

    at: float
    samples: Samples

    def has(self, name: str) -> bool:
        """True when the page holds the series at all."""
        return name in self.samples

    def total(self, name: str, **labels: str) -> float:
        """Return the sum of a name's samples that have `labels`."""
        return sum(value for found, value in self.matching(name, labels))

    def by(self, name: str, label: str) -> dict[str, float]:
        """Return a name's samples summed by one label; a page without the label has `-`."""
        sums: dict[str, float] = {}
        for labels, value in self.samples.get(name, ()):
            key = labels.get(label, "-")
            sums[key] = sums.get(key, 0.0) + value
        return sums

    def matching(self, name: str, wanted: Labels) -> Iterator[tuple[Labels, float]]:
        """Yield a name's samples that have the labels `wanted`."""
        for labels, value in self.samples.get(name, ()):
            if all(labels.get(key) == text for key, text in wanted.items()):
                yield labels, value


def fetch(url: str) -> Reading:
    """Read the page at `url`; raises CtlError."""
    if not url.startswith(("http://", "https://")):
        raise CtlError(f"reading metrics {url}: only http:// and https:// are supported")
    # no proxy: what is asked is a service of the operator's own network
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=TIMEOUT) as response:
            text = response.read(_MAX_PAGE).decode("utf-8", "replace")
    except (OSError, ValueError, urllib.error.URLError) as error:
        reason = getattr(error, "reason", None) or error
        raise CtlError(f"reading metrics {url}: {reason}") from error
    return parse(text, time.monotonic())


def parse(text: str, at: float) -> Reading:
    """Return the samples of a page in the text format; raises CtlError when it is none."""
    from prometheus_client.parser import text_string_to_metric_families

    samples: dict[str, list[tuple[Labels, float]]] = {}
    try:
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                samples.setdefault(sample.name, []).append((sample.labels, sample.value))
    except (ValueError, KeyError, IndexError) as error:
        raise CtlError(f"the metrics page cannot be read: {error}") from error
    return Reading(at, samples)


class Interval:
    """What happened between two readings of one service."""

    def __init__(self, before: Reading, after: Reading) -> None:
        self.before = before
        self.after = after
        self.seconds = max(after.at - before.at, 1e-6)

    def rate(self, name: str, **labels: str) -> float:
        """Return the increase a second of the counters with `labels`."""
        return (
            self._increase(self.before.total(name, **labels), self.after.total(name, **labels))
            / self.seconds
        )

    def rates_by(self, name: str, label: str) -> dict[str, float]:
        """Return the increase a second by one label, largest first."""
        before, after = self.before.by(name, label), self.after.by(name, label)
        rates = {
            key: self._increase(before.get(key, 0.0), value) / self.seconds
            for key, value in after.items()
        }
        return dict(sorted(rates.items(), key=lambda item: (-item[1], item[0])))

    def quantile(self, histogram: str, share: float, **labels: str) -> float | None:
        """Return a quantile in seconds by the buckets of a histogram; None without observations."""
        bounds = self._buckets(histogram, labels)
        total = bounds[-1][1] if bounds else 0.0
        if total <= 0:
            return None
        wanted = share * total
        low, below = 0.0, 0.0
        for bound, count in bounds:
            if count >= wanted:
                if bound == float("inf"):
                    return low
                inside = count - below
                return low + (bound - low) * ((wanted - below) / inside if inside else 1.0)
            low, below = bound, count
        return low

    def _buckets(self, histogram: str, labels: Labels) -> list[tuple[float, float]]:
        name = f"{histogram}_bucket"
        counts: dict[float, float] = {}
        for sign, reading in ((-1.0, self.before), (1.0, self.after)):
            for found, value in reading.matching(name, labels):
                bound = float(found["le"])
                counts[bound] = counts.get(bound, 0.0) + sign * value
        if any(count < 0 for count in counts.values()):
            # the service started anew in between
            counts = {}
            for found, value in self.after.matching(name, labels):
                bound = float(found["le"])
                counts[bound] = counts.get(bound, 0.0) + value
        return sorted(counts.items())

    @staticmethod
    def _increase(before: float, after: float) -> float:
        return after - before if after >= before else after
