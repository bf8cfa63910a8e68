"""Advice of the offline checker: values that are valid and still never do what they look like.

The daemon does not print these; a list of some thousand names would drown its log.
"""

from __future__ import annotations

from conduit.config.diagnostics import KeyPath
from conduit.config.model import Config
from conduit.config.model_policy import Rule, Selector
from conduit.config.report import Report


def lint(config: Config, report: Report) -> None:
    """Add warnings about rules to `report`."""
    caches = frozenset(cache.name for cache in config.caches)
    matches_all: dict[str, str] = {}
    for index, rule in enumerate(config.rules.rules):
        path: KeyPath = ("rules", "rules", index)
        earlier = matches_all.get(rule.hook)
        if earlier is not None:
            report.warn(
                path,
                f"rule '{rule.name}' is never reached: rule '{earlier}' before it matches every "
                f"query of hook '{rule.hook}'",
                "unreachable-rule",
            )
        elif not rule.selectors:
            matches_all[rule.hook] = rule.name
        for position, selector in enumerate(rule.selectors):
            _check(rule, selector, (*path, "selectors", position), caches, report)


def _check(
    rule: Rule, selector: Selector, path: KeyPath, caches: frozenset[str], report: Report
) -> None:
    value = selector.value
    start = f"rule '{rule.name}' {selector.type} '{value}'"
    if selector.type in ("qname_exact", "qname_suffix") and value and not value.endswith("."):
        report.warn(
            (*path, "value"),
            f"{start} never matches: query names end with a dot",
            "missing-trailing-dot",
        )
    elif selector.type == "qname_suffix" and value not in (".", "") and value[0] != ".":
        report.warn(
            (*path, "value"),
            f"{start} also matches names such as 'x{value}': a suffix has no label boundary "
            f"(write '.{value}' for the names below it)",
            "suffix-without-dot",
        )
    elif selector.type == "cache_instance" and value not in caches:
        report.warn(
            (*path, "value"), f"{start} names no cache instance of this file", "unknown-cache"
        )
    if rule.hook == "request" and selector.type in ("rcode", "answer_source", "cache_instance"):
        report.warn(
            (*path, "type"),
            f"rule '{rule.name}': a {selector.type} selector never matches on hook 'request'",
            "never-matches",
        )
