"""Validation of `metrics`: the plan of chapter 50 sections 2.2 to 2.5 and 2.11, and the exporters.

A block that is not enabled is not validated: one warning names what is ignored.
"""

from __future__ import annotations

from typing import Final

from conduit.config.address import parse_socket_address
from conduit.config.diagnostics import KeyPath
from conduit.config.extras import missing_extra
from conduit.config.model import Config
from conduit.config.model_observe import Granularity, Metrics, UserMetric
from conduit.config.report import Report

MINIMAL_CATEGORIES: Final = ("volume", "failures", "lookup", "health", "topology", "meta")
CATEGORIES: Final = (
    "volume", "failures", "lookup", "timing", "cache_detail", "forward_detail", "health",
    "runtime", "topology", "process", "meta",
)  # fmt: skip
BASES: Final[dict[str, tuple[str, ...]]] = {
    "none": (),
    "minimal": MINIMAL_CATEGORIES,
    "standard": CATEGORIES,
}
#: Labels that each granularity family may have, in canonical order.
GRANULARITY_FAMILIES: Final[dict[str, tuple[str, ...]]] = {
    "volume": ("listener", "protocol", "qtype", "qclass", "ip_family"),
    "responses": ("listener", "protocol", "rcode", "ip_family", "answer_source"),
    "timing": ("pool", "backend"),
    "forward_failures": ("pool", "backend", "reason"),
    "acl": ("tier", "action", "listener", "ip_family"),
    "cache_lookup": ("cache", "profile", "result"),
}
_PROFILE_BASES: Final = {"minimal": "minimal", "full": "standard"}
_COLLECT_WITHOUT_EMIT: Final = "collect is false while emit is true (unset means true)"


def validate_metrics(config: Config, report: Report) -> None:
    """Check the block and report deprecations."""
    metrics = config.metrics
    if metrics is None:
        return
    if not metrics.enabled:
        _warn_ignored(metrics, report)
        return
    base = _check_base(metrics, report)
    if base == "off":
        return
    _check_categories(metrics, base, report)
    if metrics.granularity is not None:
        _check_granularity(metrics.granularity, report)
    _check_collection(metrics, report)
    names: set[str] = set()
    for index, user in enumerate(metrics.user_metrics):
        _check_user_metric(user, index, names, report)
        names.add(user.name)
    _check_exporters(metrics, report)


def _warn_ignored(metrics: Metrics, report: Report) -> None:
    categories = metrics.categories
    granularity = metrics.granularity
    ignored = [
        key
        for key, given in (
            ("base", metrics.base),
            ("profile", metrics.profile),
            ("categories", categories and (categories.include or categories.exclude)),
            ("collection", metrics.collection),
            ("granularity", granularity and (granularity.default or granularity.families)),
            ("event_export", metrics.event_export is not None),
        )
        if given
    ]
    if ignored:
        report.warn(
            ("metrics",),
            f"metrics is not enabled; ignored: {', '.join(ignored)}",
            "metrics-disabled",
        )


def _check_base(metrics: Metrics, report: Report) -> str | None:
    """Return the base in force, `off` for a disabled plan, None when it is not known."""
    path: KeyPath = ("metrics", "profile")
    if metrics.profile:
        if metrics.profile not in ("minimal", "full", "off"):
            report.error(path, f"metrics.profile '{metrics.profile}' must be minimal, full, or off")
        else:
            report.warn(path, "metrics.profile is deprecated; use metrics.base", "deprecated")
            if metrics.profile == "off":
                report.warn(
                    path,
                    "metrics.profile 'off' disables metrics although metrics.enabled is true",
                    "metrics-off",
                )
                return "off"
    base = metrics.base or _PROFILE_BASES.get(metrics.profile or "", "standard")
    if base not in BASES:
        report.error(
            ("metrics", "base"), f"metrics.base '{base}' must be none, minimal, or standard"
        )
        return None
    return base


def _check_categories(metrics: Metrics, base: str | None, report: Report) -> None:
    include = (metrics.categories.include or ()) if metrics.categories else ()
    exclude = (metrics.categories.exclude or ()) if metrics.categories else ()
    root: KeyPath = ("metrics", "categories")
    known = True
    for key, names in (("include", include), ("exclude", exclude)):
        for index, name in enumerate(names):
            if name not in CATEGORIES:
                known = False
                report.error((*root, key, index), _unknown(f"metrics.categories.{key}", name))
    for index, name in enumerate(exclude):
        if name in include:
            report.warn(
                (*root, "exclude", index),
                f"metrics.categories: '{name}' is both included and excluded; exclude wins",
                "category-conflict",
            )
        if name == "failures":
            report.warn(
                (*root, "exclude", index),
                "metrics.categories.exclude 'failures' hides the series that alerts need",
                "blind-spot",
            )
    if base is not None and known and not (set(BASES[base]) | set(include)) - set(exclude):
        report.error(
            ("metrics", "base"),
            "metrics: the resolved category set is empty; include at least one category in "
            "metrics.categories.include or use another metrics.base",
        )


def _check_granularity(granularity: Granularity, report: Report) -> None:
    root: KeyPath = ("metrics", "granularity")
    if granularity.default and granularity.default not in ("coarse", "balanced", "fine"):
        report.error(
            (*root, "default"),
            f"metrics.granularity.default '{granularity.default}' must be coarse, balanced, or "
            "fine",
        )
    for family, override in granularity.families.items():
        path: KeyPath = (*root, family)
        start = f"metrics.granularity.{family}"
        allowed = GRANULARITY_FAMILIES.get(family)
        if allowed is None:
            families = ", ".join(GRANULARITY_FAMILIES)
            report.error(path, f"{start}: unknown family '{family}', must be one of {families}")
            continue
        for label in override.dimensions or ():
            if label not in allowed:
                report.error(
                    path,
                    f"{start}: label '{label}' is not allowed, must be one of {', '.join(allowed)}",
                )
        if override.rcode is None:
            continue
        if family != "responses":
            report.error(
                (*path, "rcode"), f"{start}.rcode is only valid under metrics.granularity.responses"
            )
        elif override.rcode not in ("coarse", "iana"):
            report.error(
                (*path, "rcode"), f"{start}.rcode '{override.rcode}' must be coarse or iana"
            )


def _check_collection(metrics: Metrics, report: Report) -> None:
    for name, switch in metrics.collection.items():
        path: KeyPath = ("metrics", "collection", name)
        if name not in CATEGORIES:
            report.error(path, _unknown("metrics.collection", name))
        if switch.collect is False and switch.emit is not False:
            report.error(path, f"metrics.collection.{name}: {_COLLECT_WITHOUT_EMIT}")
    export = metrics.event_export
    if export is not None and not export.collect and export.emit:
        report.error(("metrics", "event_export"), f"metrics.event_export: {_COLLECT_WITHOUT_EMIT}")


def _check_user_metric(user: UserMetric, index: int, earlier: set[str], report: Report) -> None:
    path: KeyPath = ("metrics", "user_metrics", index)
    start = f"metrics.user_metrics[{index}]"
    if not user.name:
        report.error((*path, "name"), f"{start}.name must not be empty")
    elif user.name in earlier:
        report.error((*path, "name"), f"{start}: duplicate name '{user.name}'")
    if user.export:
        if user.export not in ("minimal", "full"):
            report.error(
                (*path, "export"), f"{start}.export '{user.export}' must be minimal or full"
            )
        report.warn(
            (*path, "export"),
            f"{start}.export is deprecated; use collect and emit",
            "deprecated",
        )
    if user.collect is False and user.emit is not False:
        report.error(path, f"{start}: {_COLLECT_WITHOUT_EMIT}")


def _check_exporters(metrics: Metrics, report: Report) -> None:
    prometheus = metrics.prometheus
    if prometheus is not None and prometheus.listen_address:
        try:
            parse_socket_address(prometheus.listen_address)
        except ValueError as error:
            report.error(
                ("metrics", "prometheus", "listen_address"),
                f"metrics.prometheus.listen_address '{prometheus.listen_address}' is not a valid "
                f"socket address: {error}",
            )
    otel = metrics.otel
    if otel is None:
        return
    if otel.push_interval_ms and otel.push_interval_ms < 1000:
        report.error(
            ("metrics", "otel", "push_interval_ms"),
            f"metrics.otel.push_interval_ms {otel.push_interval_ms} must be >= 1000",
        )
    if not otel.endpoint:
        return
    if not otel.endpoint.startswith(("http://", "https://")):
        report.error(
            ("metrics", "otel", "endpoint"),
            f"metrics.otel.endpoint '{otel.endpoint}' must begin with http:// or https://",
        )
    command = missing_extra("opentelemetry.exporter.otlp.proto.http")
    if command is not None:
        report.error(
            ("metrics", "otel", "endpoint"),
            f"metrics.otel.endpoint needs the OTLP exporter: {command}",
            "missing-extra",
        )


def _unknown(key: str, name: str) -> str:
    return f"{key}: unknown category '{name}', must be one of {', '.join(CATEGORIES)}"
