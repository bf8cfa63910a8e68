"""The metrics page: adds recorders up, reads gauges, renders through prometheus_client.

Everything here runs on the scraping thread; the query path is not touched.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from conduit import __version__
from conduit.observe import families
from conduit.observe.counters import CounterRegistry, Key
from conduit.observe.families import Family
from conduit.observe.labels import coarse_rcode, qclass_label, qtype_label
from conduit.observe.plan import MetricPlan

#: Values of a family at scrape time, by label values at full detail.
Reading = Callable[[], Mapping[Key, float]]


class ExpositionCollector(Collector):
    """Yields every family of the plan that has a row."""

    def __init__(
        self,
        counters: CounterRegistry,
        readings: Mapping[Family, Reading],
        plan: Callable[[], MetricPlan],
    ) -> None:
        """`readings` are the families computed at scrape time; `plan` gives the current plan."""
        self._counters = counters
        self._readings = dict(readings)
        self._readings.setdefault(
            families.BUILD_INFO, lambda: {(__version__, "unknown", "false", "release"): 1}
        )
        self._plan = plan

    def describe(self) -> Iterable[Metric]:
        """Return nothing: the families depend on the plan of the moment."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Yield the families of the page, sorted by name."""
        plan = self._plan()
        sources: dict[Family, Reading] = dict(self._readings)
        for recorded in families.RECORDED:
            sources[recorded] = self._recorded(recorded)
        for family in sorted(sources, key=lambda f: f.name):
            if plan.exports(family):
                values = _project(family, sources[family](), plan)
                if values:
                    yield _metric(family, plan.labels(family), values)

    def _recorded(self, family: Family) -> Reading:
        return lambda: self._counters.totals(family)


def render(collector: ExpositionCollector) -> bytes:
    """Return the page in the Prometheus text format 0.0.4."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(collector)
    return generate_latest(registry)


def _project(
    family: Family, values: Mapping[Key, float], plan: MetricPlan
) -> dict[tuple[str, ...], float]:
    """Sum `values` over the labels that the plan leaves out, and spell label values."""
    labels = plan.labels(family)
    places = [family.labels.index(label) for label in labels]
    spell = [_speller(label, plan) for label in labels]
    result: dict[tuple[str, ...], float] = defaultdict(float)
    for key, value in values.items():
        result[tuple(say(key[at]) for say, at in zip(spell, places, strict=True))] += value
    return result


def _speller(label: str, plan: MetricPlan) -> Callable[[object], str]:
    if label == "qtype":
        return lambda value: qtype_label(value) if isinstance(value, int) else "UNKNOWN"
    if label == "qclass":
        return lambda value: qclass_label(value) if isinstance(value, int) else "UNKNOWN"
    if label == "rcode" and plan.coarse_rcodes:
        return lambda value: coarse_rcode(str(value))
    return str


def _metric(
    family: Family, labels: tuple[str, ...], values: Mapping[tuple[str, ...], float]
) -> Metric:
    metric: CounterMetricFamily | GaugeMetricFamily
    if family.kind == "counter":
        metric = CounterMetricFamily(family.name, family.help, labels=labels)
    else:
        metric = GaugeMetricFamily(family.name, family.help, labels=labels)
    for key in sorted(values):
        metric.add_metric(list(key), values[key])
    return metric
