"""Validation of client access lists, global and per listener (chapter 30 section 11.1)."""

from __future__ import annotations

from typing import Final

from conduit.config.diagnostics import KeyPath
from conduit.config.model import Config
from conduit.config.model_traffic import Acls
from conduit.config.report import Report

_ACTIONS: Final = ("drop", "refuse", "tag", "accept")


def validate_acls(config: Config, report: Report) -> None:
    """Check every access list of the configuration."""
    tables = config.cidr_names()
    if config.acls is not None:
        _check(config.acls, "acls", ("acls",), tables, report)
    for index, entry in enumerate(config.listeners.listeners):
        if entry.acls is None:
            continue
        prefix = f"listeners.listeners[{index}]"
        prefix += f" (name '{entry.name}') acls" if entry.name else ".acls"
        _check(entry.acls, prefix, ("listeners", "listeners", index, "acls"), tables, report)


def _check(acls: Acls, prefix: str, path: KeyPath, tables: frozenset[str], report: Report) -> None:
    if acls.default_action not in ("", "allow", "deny"):
        report.error(
            (*path, "default_action"),
            f"{prefix}.default_action must be allow or deny, got '{acls.default_action}'",
        )
    for index, rule in enumerate(acls.rules):
        rule_path: KeyPath = (*path, "rules", index)
        start = f"{prefix}.rules[{index}]"
        if not rule.match:
            report.error((*rule_path, "match"), f"{start}.match must not be empty")
        elif rule.match not in tables:
            report.error(
                (*rule_path, "match"),
                f"{start}.match '{rule.match}' is not a type:cidr data_sources name",
            )
        if rule.action not in _ACTIONS:
            report.error(
                (*rule_path, "action"),
                f"{start}.action must be drop|refuse|tag|accept, got '{rule.action}'",
            )
        if rule.action == "tag" and not rule.tag:
            report.error((*rule_path, "tag"), f"{start} action tag requires a non-empty tag name")
        if rule.action != "tag" and rule.tag is not None:
            report.error((*rule_path, "tag"), f"{start}.tag is only valid when action is tag")
