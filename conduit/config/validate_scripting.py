"""Validation of `data_sources`, `data_source_limits` and `rhai` (chapter 30 section 10.6)."""

from __future__ import annotations

from conduit.config.diagnostics import KeyPath
from conduit.config.model import Config
from conduit.config.report import Report


def validate_data_sources(config: Config, report: Report) -> None:
    """Check the tables that are declared; their files are read when the snapshot is compiled."""
    names: set[str] = set()
    for index, source in enumerate(config.data_sources):
        path: KeyPath = ("data_sources", index)
        if not source.name:
            report.error((*path, "name"), "data_sources entry name must not be empty")
        elif source.name in names:
            report.error((*path, "name"), f"duplicate data_sources name '{source.name}'")
        names.add(source.name)
        if source.type not in ("csv", "cidr"):
            report.error(
                (*path, "type"),
                f"data_sources '{source.name}' has unsupported type '{source.type}', "
                "only csv and cidr are supported",
            )
        if not source.path:
            report.error((*path, "path"), f"data_sources '{source.name}' path must not be empty")
    # the built-in limit is applied when the tables are loaded
    limits = config.data_source_limits
    if limits is not None and 0 < limits.max_tables < len(config.data_sources):
        report.error(
            ("data_source_limits", "max_tables"),
            f"data_sources has {len(config.data_sources)} entries, exceeding "
            f"data_source_limits.max_tables {limits.max_tables}",
        )


def validate_rhai(config: Config, report: Report) -> None:
    """Check the script limits."""
    if config.rhai.max_operations < 1:
        report.error(("rhai", "max_operations"), "rhai.max_operations must be >= 1")
    if config.rhai.max_call_depth < 1:
        report.error(("rhai", "max_call_depth"), "rhai.max_call_depth must be >= 1")
