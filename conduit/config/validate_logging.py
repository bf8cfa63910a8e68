"""Validation of `logging` (chapter 10 section 6.14, chapter 50 section 3.1)."""

from __future__ import annotations

from typing import Final

from conduit.config.model import Config
from conduit.config.model_observe import AclDeniedSample
from conduit.config.report import Report
from conduit.config.validate_selectors import in_percent_range

_LEVELS: Final = ("error", "warn", "info", "debug", "trace")


def validate_logging(config: Config, report: Report) -> None:
    """Check levels, the output and the sampling of denial lines."""
    block = config.logging
    if block.level and block.level not in _LEVELS:
        report.error(
            ("logging", "level"),
            f"logging.level '{block.level}' must be error, warn, info, debug, or trace",
        )
    if block.output not in ("", "stderr", "stdout"):
        report.error(
            ("logging", "output"), f"logging.output '{block.output}' must be stderr or stdout"
        )
    access = block.query_access
    if access is None:
        return
    if access.acl_denied and access.acl_denied not in ("off", *_LEVELS):
        report.error(
            ("logging", "query_access", "acl_denied"),
            f"logging.query_access.acl_denied '{access.acl_denied}' must be off, error, warn, "
            "info, debug, or trace",
        )
    if access.acl_denied_sample is not None:
        _check_sample(access.acl_denied_sample, report)


def _check_sample(sample: AclDeniedSample, report: Report) -> None:
    path = ("logging", "query_access", "acl_denied_sample")
    start = "logging.query_access.acl_denied_sample"
    if sample.mode == "per_source":
        if not in_percent_range(sample.rate):
            report.error((*path, "rate"), f"{start}.rate {sample.rate} must be from 0 to 100")
    elif sample.mode == "every_nth":
        if not sample.nth:
            report.error((*path, "nth"), f"{start}.nth must be >= 1 for mode every_nth")
    else:
        report.error(
            (*path, "mode"), f"{start}.mode '{sample.mode}' must be per_source or every_nth"
        )
