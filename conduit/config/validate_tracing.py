"""Validation of `tracing`, only while it is enabled (chapter 50 section 4.1)."""

from __future__ import annotations

from typing import Final

from conduit.config.model import Config
from conduit.config.report import Report
from conduit.config.validate_selectors import (
    SelectorPlace,
    check_key_source,
    in_percent_range,
    validate_selector,
)

_KEY_SOURCES: Final = frozenset({"qname"})


def validate_tracing(config: Config, report: Report) -> None:
    """Check the activation of traces."""
    block = config.tracing
    if block is None or not block.enabled:
        return
    activation = block.activation
    path = ("tracing", "activation")
    for index, selector in enumerate(activation.selectors):
        place = SelectorPlace(f"tracing.activation.selectors[{index}]", _KEY_SOURCES)
        validate_selector(selector, (*path, "selectors", index), place, report)
    if not in_percent_range(activation.sample_percent):
        report.error(
            (*path, "sample_percent"),
            f"tracing.activation.sample_percent {activation.sample_percent} must be a float in "
            "[0, 100]",
        )
    if activation.sample_key and activation.sample_key_from:
        report.error(
            (*path, "sample_key_from"),
            "tracing.activation: sample_key and sample_key_from are mutually exclusive",
        )
    if activation.sample_key_from:
        check_key_source(
            activation.sample_key_from,
            (*path, "sample_key_from"),
            "tracing.activation.sample_key_from",
            _KEY_SOURCES,
            report,
        )
