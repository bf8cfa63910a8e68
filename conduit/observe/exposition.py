"""The metrics page: adds recorders up, reads gauges, renders through prometheus_client.

Everything here runs on the scraping thread; the query path is not touched. A change of the plan
never loses a count: what a family had under one set of labels stays with that set.
"""

from __future__ import annotations

import re
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from conduit import __version__
from conduit.observe import families
from conduit.observe.counters import CounterRegistry, Key
from conduit.observe.families import Family
from conduit.observe.labels import coarse_rcode, qclass_label, qtype_label
from conduit.observe.plan import MetricPlan
from conduit.observe.user_metrics import name_plainly, user_metrics

#: Values of a family at scrape time, by label values at full detail.
Reading = Callable[[], Mapping[Key, float]]
Labels = tuple[str, ...]
# the value of a sample line, where it is spelled with a point or an exponent
_NUMBER = re.compile(rb"^([^#\n].* )([0-9.]+(?:[eE][+-]?[0-9]+)?)$", re.MULTILINE)
#: A counter's value as one number, a histogram's as bucket counts and sum.
Vector = tuple[float, ...]
Rows = dict[Labels, Vector]


class ExpositionCollector(Collector):
    """Yields every family of the plan that has a row."""

    def __init__(
        self, counters: CounterRegistry, readings: Mapping[Family, Reading], plan: MetricPlan
    ) -> None:
        """`readings` are the families computed at scrape time."""
        self._counters = counters
        self._readings = dict(readings)
        self._readings.setdefault(
            families.BUILD_INFO, lambda: {(__version__, "unknown", "false", "release"): 1}
        )
        self._plan = plan
        self._lock = threading.Lock()
        # per family and label set: what it had when it was last switched off
        self._kept: dict[tuple[Family, Labels], Rows] = {}
        # per recorded family: what had been counted when its present label set came into force
        self._baseline: dict[Family, Rows] = {}

    def describe(self) -> Iterable[Metric]:
        """Return nothing: the families depend on the plan of the moment."""
        return ()

    def change_plan(self, plan: MetricPlan) -> None:
        """Follow a new plan; counts of families whose labels stay go on."""
        with self._lock:
            old = self._plan
            for family in (*families.RECORDED, *families.TIMED):
                before, after = _identity(old, family), _identity(plan, family)
                if before == after:
                    continue
                if before is not None:
                    self._kept[(family, before)] = self._rows(family, old)
                if after is not None:
                    self._baseline[family] = self._project(family, plan)
            self._plan = plan

    def collect(self) -> Iterator[Metric]:
        """Yield the families of the page, sorted by name; then those of scripts."""
        with self._lock:
            plan = self._plan
            metrics: list[Metric] = []
            for family in (*families.RECORDED, *families.TIMED):
                if plan.exports(family):
                    metrics.append(_metric(family, plan, self._rows(family, plan)))
        for family, reading in self._readings.items():
            if plan.exports(family):
                rows: Rows = {
                    tuple(map(str, key)): (float(value),) for key, value in reading().items()
                }
                metrics.append(_metric(family, plan, rows))
        yield from sorted((m for m in metrics if m.samples), key=lambda m: m.name)
        yield from user_metrics(self._counters.user_totals(), plan)

    def _rows(self, family: Family, plan: MetricPlan) -> Rows:
        rows = _subtract(self._project(family, plan), self._baseline.get(family, {}))
        kept = self._kept.get((family, plan.labels(family)), {})
        for key, value in kept.items():
            rows[key] = _add(rows[key], value) if key in rows else value
        return rows

    def _project(self, family: Family, plan: MetricPlan) -> Rows:
        """Sum the recorders over the labels that the plan leaves out, and spell label values."""
        totals: Mapping[Key, Any]
        if family.kind == "histogram":
            totals = self._counters.histogram(family)
        else:
            totals = {key: (value,) for key, value in self._counters.totals(family).items()}
        labels = plan.labels(family)
        places = [family.labels.index(label) for label in labels]
        spell = [_speller(label, plan) for label in labels]
        rows: Rows = {}
        for key, vector in totals.items():
            name = tuple(say(key[at]) for say, at in zip(spell, places, strict=True))
            values = tuple(vector)
            rows[name] = _add(rows[name], values) if name in rows else values
        return rows


def render(collector: ExpositionCollector) -> bytes:
    """Return the page in the Prometheus text format 0.0.4."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(collector)
    return _NUMBER.sub(_plain_number, name_plainly(generate_latest(registry)))


def _plain_number(match: re.Match[bytes]) -> bytes:
    """Spell a value in the shortest decimal form: no exponent, no `.0` (chapter 50, 2.9)."""
    value = float(match.group(2))
    if value.is_integer():
        return match.group(1) + str(int(value)).encode()
    return match.group(1) + format(Decimal(repr(value)), "f").encode()


def _identity(plan: MetricPlan, family: Family) -> Labels | None:
    """What makes a series the same under two plans: its labels, None while it is not counted."""
    return plan.labels(family) if plan.records(family) else None


def _add(left: Vector, right: Vector) -> Vector:
    return tuple(a + b for a, b in zip(left, right, strict=True))


def _subtract(rows: Rows, baseline: Rows) -> Rows:
    result: Rows = {}
    for key, vector in rows.items():
        before = baseline.get(key)
        if before is not None:
            vector = tuple(a - b for a, b in zip(vector, before, strict=True))
        # a row appears with its first count under the present labels
        if any(vector):
            result[key] = vector
    return result


def _speller(label: str, plan: MetricPlan) -> Callable[[object], str]:
    if label == "qtype":
        return lambda value: qtype_label(value) if isinstance(value, int) else "UNKNOWN"
    if label == "qclass":
        return lambda value: qclass_label(value) if isinstance(value, int) else "UNKNOWN"
    if label == "rcode" and plan.coarse_rcodes:
        return lambda value: coarse_rcode(str(value))
    return str


def _metric(family: Family, plan: MetricPlan, rows: Rows) -> Metric:
    labels = plan.labels(family)
    if family.kind == "histogram":
        histogram = HistogramMetricFamily(family.name, family.help, labels=labels)
        bounds = [*(f"{bound:g}" for bound in family.buckets), "+Inf"]
        for key in sorted(rows):
            counts = defaultdict(float, enumerate(rows[key][:-1]))
            total = 0.0
            buckets: list[tuple[str, float]] = []
            for place, bound in enumerate(bounds):
                total += counts[place]
                buckets.append((bound, total))
            histogram.add_metric(list(key), buckets, rows[key][-1])
        return histogram
    metric: CounterMetricFamily | GaugeMetricFamily
    if family.kind == "counter":
        metric = CounterMetricFamily(family.name, family.help, labels=labels)
    else:
        metric = GaugeMetricFamily(family.name, family.help, labels=labels)
    for key in sorted(rows):
        metric.add_metric(list(key), rows[key][0])
    return metric
