"""What `top` shows: the numbers of an interval, and their lines on a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from conduit.cli.ctl.scrape import Interval, Reading

_STATES: Final[Mapping[float, str]] = {0.0: "unknown", 1.0: "up", 2.0: "down"}
_LATENCY: Final = "conduit_response_duration_seconds"
_FORWARD: Final = "conduit_forward_duration_seconds"


@dataclass(frozen=True)
class BackendLine:
    """One backend; rates are per second, times in seconds, None is not known."""

    pool: str
    backend: str
    rate: float | None
    errors: float | None
    p50: float | None
    outstanding: int | None
    weight: int | None
    health: str | None
    frozen: bool


@dataclass(frozen=True)
class Overview:
    """The numbers of one interval; None is what the page does not hold."""

    generation: int | None
    uptime: float | None
    queries: float
    responses: float
    drops: float
    rejected: float
    retries: float
    cpu: float | None
    slots: tuple[int, int] | None
    p50: float | None
    p90: float | None
    p99: float | None
    cache_hits: float | None
    cache_rates: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    rcodes: Mapping[str, float] = field(default_factory=dict)
    sources: Mapping[str, float] = field(default_factory=dict)
    pools: Mapping[str, float] = field(default_factory=dict)
    backends: tuple[BackendLine, ...] = ()

    def data(self) -> dict[str, Any]:
        """Return it as plain data."""
        tree = asdict(self)
        tree["slots"] = None if self.slots is None else list(self.slots)
        tree["backends"] = [asdict(line) for line in self.backends]
        return tree


def overview(interval: Interval) -> Overview:
    """Return the numbers of an interval."""
    page = interval.after
    in_use, capacity = _gauge(page, "conduit_slots_in_use"), _gauge(page, "conduit_slots_capacity")
    caches = {
        cache: {
            result: interval.rate("conduit_cache_lookups_total", cache=cache, result=result)
            for result in ("hit", "miss", "bypass")
        }
        for cache in sorted(page.by("conduit_cache_lookups_total", "cache"))
    }
    hits = sum(rates["hit"] for rates in caches.values())
    asked = hits + sum(rates["miss"] for rates in caches.values())
    cpu = "conduit_process_cpu_seconds_total"
    generation = _gauge(page, "conduit_config_generation")
    return Overview(
        generation=None if generation is None else int(generation),
        uptime=_gauge(page, "conduit_uptime_seconds"),
        queries=interval.rate("conduit_queries_total"),
        responses=interval.rate("conduit_responses_total"),
        drops=interval.rate("conduit_queries_dropped_total"),
        rejected=interval.rate("conduit_parse_rejected_total"),
        retries=interval.rate("conduit_retries_total"),
        cpu=interval.rate(cpu) if page.has(cpu) else None,
        slots=None if in_use is None or capacity is None else (int(in_use), int(capacity)),
        p50=interval.quantile(_LATENCY, 0.5),
        p90=interval.quantile(_LATENCY, 0.9),
        p99=interval.quantile(_LATENCY, 0.99),
        cache_hits=hits / asked if asked else None,
        cache_rates=caches,
        rcodes=interval.rates_by("conduit_responses_total", "rcode"),
        sources=interval.rates_by("conduit_responses_total", "answer_source"),
        pools=interval.rates_by("conduit_queries_by_pool_total", "pool"),
        backends=_backends(interval),
    )


def _backends(interval: Interval) -> tuple[BackendLine, ...]:
    page = interval.after
    names = {
        (labels["pool"], labels["backend"])
        for name in (
            "conduit_backend_weight",
            "conduit_backend_health_applied",
            "conduit_forward_attempts_total",
            "conduit_forward_errors_total",
        )
        for labels, _ in page.samples.get(name, ())
        if "pool" in labels and "backend" in labels
    }
    return tuple(_backend(interval, pool, backend) for pool, backend in sorted(names))


def _backend(interval: Interval, pool: str, backend: str) -> BackendLine:
    page = interval.after
    labels = {"pool": pool, "backend": backend}

    def rate(name: str) -> float | None:
        return interval.rate(name, **labels) if page.has(name) else None

    def whole(name: str) -> int | None:
        value = _gauge(page, name, **labels)
        return None if value is None else int(value)

    applied = _gauge(page, "conduit_backend_health_applied", **labels)
    effective = whole("conduit_backend_health_effective_weight")
    return BackendLine(
        pool,
        backend,
        rate("conduit_forward_attempts_total"),
        rate("conduit_forward_errors_total"),
        interval.quantile(_FORWARD, 0.5, **labels),
        whole("conduit_forward_outstanding"),
        whole("conduit_backend_weight") if effective is None else effective,
        None if applied is None else _STATES.get(applied, "?"),
        _gauge(page, "conduit_backend_health_probe_automatic", **labels) == 0.0,
    )


def _gauge(page: Reading, name: str, **labels: str) -> float | None:
    values = [value for _, value in page.matching(name, labels)]
    return sum(values) if values else None


def render(view: Overview, width: int = 100) -> list[str]:
    """Return the view as lines of at most `width` columns."""
    cpu = "-" if view.cpu is None else f"{view.cpu * 100:.0f}%"
    slots = "-" if view.slots is None else f"{view.slots[0]}/{view.slots[1]}"
    hits = "-" if view.cache_hits is None else f"{view.cache_hits * 100:.1f}%"
    lines = [
        f"generation {_whole(view.generation)}  up {_span(view.uptime)}  cpu {cpu}  slots {slots}",
        f"queries {_rate(view.queries)}/s  responses {_rate(view.responses)}/s  "
        f"dropped {_rate(view.drops)}/s  rejected {_rate(view.rejected)}/s  "
        f"retries {_rate(view.retries)}/s",
        f"latency p50 {_time(view.p50)}  p90 {_time(view.p90)}  p99 {_time(view.p99)}  "
        f"cache hits {hits}",
        f"rcodes  {_shares(view.rcodes)}",
        f"answers {_shares(view.sources)}",
    ]
    for name, rates in view.cache_rates.items():
        lines.append(f"cache {name}  " + "  ".join(f"{k} {_rate(v)}/s" for k, v in rates.items()))
    if view.pools:
        lines.append("pools   " + _shares(view.pools))
    if view.backends:
        lines += ["", *_table(view.backends)]
    return [line[:width].rstrip() for line in lines]


def _table(backends: tuple[BackendLine, ...]) -> list[str]:
    rows = [("POOL", "BACKEND", "HEALTH", "WEIGHT", "QUERIES/S", "ERRORS/S", "P50", "IN FLIGHT")]
    for line in backends:
        health = line.health or "-"
        rows.append(
            (
                line.pool,
                line.backend,
                f"{health} frozen" if line.frozen else health,
                _whole(line.weight),
                _rate(line.rate),
                _rate(line.errors),
                _time(line.p50),
                _whole(line.outstanding),
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(widths[i]) if i < 3 else cell.rjust(widths[i]) for i, cell in enumerate(row)
        )
        for row in rows
    ]


def _shares(rates: Mapping[str, float]) -> str:
    shown = [f"{name} {_rate(rate)}/s" for name, rate in rates.items() if rate > 0]
    return "  ".join(shown) or "-"


def _rate(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.1f}" if value < 100 else f"{value:.0f}"


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return f"{seconds * 1000:.1f}ms" if seconds < 1 else f"{seconds:.2f}s"


def _span(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    minutes, left = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return f"{days}d{hours:02}h" if days else f"{hours}h{minutes:02}m{left:02}s"


def _whole(value: int | None) -> str:
    return "-" if value is None else str(value)
