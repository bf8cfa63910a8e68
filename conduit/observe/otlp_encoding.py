"""The metrics page as an OTLP request, through the OpenTelemetry encoder (chapter 50, 2.10)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from prometheus_client.metrics_core import Metric as Page

_UNITS = (
    ("_seconds", "s"),
    ("_milliseconds", "ms"),
    ("_bytes", "By"),
    ("_ratio", "1"),
    ("_ms", "ms"),
    ("_total", "1"),
    ("_info", "1"),
)


def unit_of(name: str) -> str:
    """Return the unit of a family by its suffix; empty when no suffix tells one."""
    return next((unit for suffix, unit in _UNITS if name.endswith(suffix)), "")


def encode(
    page: Iterable[Page], attributes: Mapping[str, str], start_ns: int, now_ns: int
) -> bytes:
    """Return the serialized request for the families of a scrape.

    `start_ns` is when the push task started, `now_ns` the present, both wall-clock nanoseconds.
    """
    metrics = [m for family in page if (m := _convert(family, start_ns, now_ns)) is not None]
    # a configured service.name wins
    resource = Resource({"service.name": "conduit", **attributes})
    scope = ScopeMetrics(InstrumentationScope("conduit"), metrics, "")
    request = encode_metrics(MetricsData([ResourceMetrics(resource, [scope], "")]))
    return bytes(request.SerializeToString())


def _convert(family: Page, start_ns: int, now_ns: int) -> Metric | None:
    if not family.samples:
        return None
    data: Sum | Gauge | Histogram
    name = family.name
    if family.type == "histogram":
        data = Histogram(
            _histogram_points(family, start_ns, now_ns), AggregationTemporality.CUMULATIVE
        )
    elif family.type == "counter":
        # the samples carry the full name of the family
        name = family.samples[0].name
        points = [
            NumberDataPoint(dict(s.labels), start_ns, now_ns, int(s.value)) for s in family.samples
        ]
        data = Sum(points, AggregationTemporality.CUMULATIVE, is_monotonic=True)
    else:
        data = Gauge(
            [NumberDataPoint(dict(s.labels), 0, now_ns, float(s.value)) for s in family.samples]
        )
    return Metric(name, family.documentation, unit_of(name), data)


def _histogram_points(family: Page, start_ns: int, now_ns: int) -> list[HistogramDataPoint]:
    rows: dict[tuple[tuple[str, str], ...], dict[str, float]] = {}
    for sample in family.samples:
        labels = tuple(sorted((k, v) for k, v in sample.labels.items() if k != "le"))
        row = rows.setdefault(labels, {})
        kind = sample.name.removeprefix(family.name)
        row[sample.labels["le"] if kind == "_bucket" else kind] = sample.value
    points: list[HistogramDataPoint] = []
    for labels, row in rows.items():
        bounds = [bound for bound in row if not bound.startswith("_") and bound != "+Inf"]
        cumulative = [*(row[bound] for bound in bounds), row["_count"]]
        counts = [
            int(value - before)
            for value, before in zip(cumulative, [0.0, *cumulative], strict=False)
        ]
        points.append(
            HistogramDataPoint(
                attributes=dict(labels),
                start_time_unix_nano=start_ns,
                time_unix_nano=now_ns,
                count=int(row["_count"]),
                sum=row["_sum"],
                bucket_counts=counts,
                explicit_bounds=[float(bound) for bound in bounds],
                min=None,  # type: ignore[arg-type]
                max=None,  # type: ignore[arg-type]
            )
        )
    return points
