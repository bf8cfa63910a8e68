"""Validation of `events`: sinks, identities, destinations and filters (chapter 50 section 5.10)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from conduit.config.diagnostics import KeyPath
from conduit.config.model import Config
from conduit.config.model_observe import Sink, SinkFilters
from conduit.config.report import Report
from conduit.config.validate_selectors import (
    SelectorPlace,
    check_key_source,
    in_percent_range,
    validate_selector,
)

_EMIT: Final = ("query", "response", "retry")
EXTRA_FIELDS: Final = (
    "pool", "backend", "attempt_count", "txn_id", "qname", "rcode", "tags", "client", "sink_name",
    "answer_source", "cache_instance",
)  # fmt: skip
_KEY_SOURCES: Final = frozenset({"qname", "sink_name"})


def validate_events(config: Config, report: Report) -> None:
    """Check the block; one without sinks is valid."""
    block = config.events
    if block.queue_depth < 1:
        report.error(("events", "queue_depth"), "events.queue_depth must be >= 1")
    if block.drop_policy not in ("drop_oldest", "drop_newest"):
        report.error(
            ("events", "drop_policy"),
            f"events.drop_policy '{block.drop_policy}' must be drop_oldest or drop_newest",
        )
    for index, sink in enumerate(block.sinks):
        _check_sink(sink, index, report)
    _check_unique(block.sinks, "name", lambda sink: sink.canonical_name, report)
    _check_unique(block.sinks, "export_id", lambda sink: (sink.export_id or "").strip(), report)


def _check_unique(
    sinks: tuple[Sink, ...], key: str, value_of: Callable[[Sink], str], report: Report
) -> None:
    first: dict[str, int] = {}
    for index, sink in enumerate(sinks):
        value = value_of(sink)
        if not value:
            continue
        earlier = first.setdefault(value, index)
        if earlier != index:
            report.error(
                ("events", "sinks", index, key),
                f"events.sinks[{index}] {key} '{value}' duplicates sinks[{earlier}]",
            )


def _check_sink(sink: Sink, index: int, report: Report) -> None:
    path: KeyPath = ("events", "sinks", index)
    start = f"events.sinks[{index}]"
    if sink.type != "dnstap":
        report.error((*path, "type"), f"{start}.type '{sink.type}' must be dnstap")
    if sink.name == "":
        report.error((*path, "name"), f"{start}.name must not be empty")
    elif not sink.canonical_name:
        report.error(path, f"{start} requires name or export_id")
    _check_destinations(sink, start, path, report)
    for position, point in enumerate(sink.emit):
        if point not in _EMIT:
            report.error(
                (*path, "emit", position),
                f"{start}.emit '{point}' must be query, response, or retry",
            )
    _check_extras(sink, start, path, report)
    multiplier = sink.connect_retry.multiplier
    if math.isnan(multiplier) or (multiplier != 0 and multiplier < 1):
        report.error(
            (*path, "connect_retry", "multiplier"),
            f"{start}.connect_retry.multiplier {multiplier} must be >= 1.0",
        )
    if sink.filters is not None and not sink.filters.is_empty:
        _check_filters(sink.filters, f"{start}.filters", (*path, "filters"), report)


def _check_destinations(sink: Sink, start: str, path: KeyPath, report: Report) -> None:
    if not sink.destinations:
        report.error((*path, "destinations"), f"{start}.destinations must not be empty")
    for position, text in enumerate(sink.destinations):
        place: KeyPath = (*path, "destinations", position)
        name = f"{start}.destinations[{position}]"
        if text.startswith("unix:"):
            if text == "unix:":
                report.error(place, f"{name} 'unix:' needs a path")
        elif not text.startswith("tcp:"):
            report.error(place, f"{name} '{text}' must begin with unix: or tcp:")
        elif not _is_host_and_port(text[4:]):
            report.warn(
                place, f"{name} '{text}' is not tcp:HOST:PORT and is left out", "destination"
            )


def _is_host_and_port(text: str) -> bool:
    host, colon, port = text.rpartition(":")
    return bool(host and colon) and port.isascii() and port.isdigit() and int(port[:9]) <= 65535


def _check_extras(sink: Sink, start: str, path: KeyPath, report: Report) -> None:
    for position, name in enumerate(sink.extra_fields):
        if name not in EXTRA_FIELDS:
            report.error(
                (*path, "extra_fields", position),
                f"{start}.extra_fields '{name}' must be one of {', '.join(EXTRA_FIELDS)}",
            )
    if not sink.extra_tags:
        return
    tags: KeyPath = (*path, "extra_tags")
    if "tags" not in sink.extra_fields:
        report.error(tags, f"{start}.extra_tags needs tags in extra_fields")
    if "*" in sink.extra_tags and len(sink.extra_tags) > 1:
        report.error(tags, f"{start}.extra_tags: '*' cannot be mixed with names")
    for position, tag in enumerate(sink.extra_tags):
        if not tag:
            report.error((*tags, position), f"{start}.extra_tags[{position}] must not be empty")


def _check_filters(filters: SinkFilters, start: str, path: KeyPath, report: Report) -> None:
    for index, selector in enumerate(filters.selectors):
        place = SelectorPlace(f"{start}.selectors[{index}]", _KEY_SOURCES)
        validate_selector(selector, (*path, "selectors", index), place, report)
    if not in_percent_range(filters.sample_percent):
        report.error(
            (*path, "sample_percent"),
            f"{start}.sample_percent {filters.sample_percent} must be a float in [0, 100]",
        )
    if filters.sample_key and filters.sample_key_from:
        report.error(
            (*path, "sample_key_from"),
            f"{start}: sample_key and sample_key_from are mutually exclusive",
        )
    if filters.sample_key_from:
        check_key_source(
            filters.sample_key_from,
            (*path, "sample_key_from"),
            f"{start}.sample_key_from",
            _KEY_SOURCES,
            report,
        )
    for key, value in (("pool", filters.pool), ("backend", filters.backend)):
        if value == "":
            report.error((*path, key), f"{start}.{key} must not be empty")
