"""Export of the counters that policy scripts define (chapter 50 section 2.11)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from prometheus_client.metrics_core import Metric

from conduit.observe.counters import Key
from conduit.observe.plan import MetricPlan

_DEFAULT_HELP = "Rhai user-defined metric"
_USER_SAMPLE = re.compile(rb"^(conduit_user_\w+)[{ ]", re.MULTILINE)
_USER_HEADER = re.compile(rb"^(# (?:HELP|TYPE) )(conduit_user_\w+)_total ", re.MULTILINE)
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9_]")


def series_name(name: str) -> str:
    """Return the name of the series for a script's metric, without `_total`."""
    return "conduit_user_" + _NOT_PLAIN.sub("_", name)


def name_plainly(page: bytes) -> bytes:
    """Take off the `_total` that the renderer adds to the HELP and TYPE lines of counters.

    A script's metric keeps the name it was given, with `_total` or without.
    """
    samples = set(_USER_SAMPLE.findall(page))

    def rename(match: re.Match[bytes]) -> bytes:
        name = match.group(2)
        return match.group(0) if name + b"_total" in samples else match.group(1) + name + b" "

    return _USER_HEADER.sub(rename, page)


def user_metrics(totals: Mapping[Key, int], plan: MetricPlan) -> Iterator[Metric]:
    """Yield one family a metric, sorted by name.

    `totals` maps (name, ((label, value), ...)) to counts; a metric may have rows with different
    label sets.
    """
    if not plan.enabled:
        return
    by_name: dict[str, list[tuple[dict[str, str], int]]] = {}
    for (name, pairs), value in totals.items():
        assert isinstance(pairs, tuple)
        by_name.setdefault(str(name), []).append((dict(pairs), value))
    for name in sorted(by_name):
        if not plan.user_emitted.get(name, plan.standard_tier):
            continue
        series = series_name(name)
        metric = Metric(
            series.removesuffix("_total"), plan.user_help.get(name, _DEFAULT_HELP), "counter"
        )
        for labels, value in sorted(by_name[name], key=lambda row: sorted(row[0].items())):
            metric.add_sample(series, labels, value)
        yield metric
