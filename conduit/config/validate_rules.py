"""Validation of `rules`: names, hooks, selectors, actions and what actions refer to.

Each message names the rule; texts: chapter 30 section 7.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import Final

from conduit.config.address import parse_source_address
from conduit.config.diagnostics import KeyPath
from conduit.config.model import Config
from conduit.config.model_policy import Action, Rule
from conduit.config.model_traffic import Forward, Pool
from conduit.config.report import Report
from conduit.config.validate_selectors import SelectorPlace, validate_selector
from conduit.wire.enums import parse_rcode

HOOKS: Final = ("request", "response", "no_answer")
ACTION_TYPES: Final = frozenset({
    "set_pool", "clear_pool", "set_retry_pool", "clear_retry_pool",
    "retry", "retry_now", "clear_retry", "drop", "drop_now", "clear_drop",
    "set_tag", "clear_tag", "set_rcode", "rhai",
    "set_source_v4", "set_source_v6", "set_retry_source_v4", "set_retry_source_v6",
    "clear_retry_source_v4", "clear_retry_source_v6", "set_lookup_profile",
})  # fmt: skip

_RETRIES: Final = frozenset({"retry", "retry_now", "clear_retry"})
_POOL_SETTERS: Final = frozenset({"set_pool", "set_retry_pool"})
_SOURCES: Final = {
    "set_source_v4": socket.AF_INET,
    "set_source_v6": socket.AF_INET6,
    "set_retry_source_v4": socket.AF_INET,
    "set_retry_source_v6": socket.AF_INET6,
}
_REQUEST_ONLY: Final = frozenset({"set_source_v4", "set_source_v6", "set_lookup_profile"})
_NOT_ON_NO_ANSWER: Final = (
    _RETRIES
    | _POOL_SETTERS
    | {"clear_pool", "clear_retry_pool", "clear_retry_source_v4", "clear_retry_source_v6"}
    | frozenset(_SOURCES)
    | {"set_lookup_profile"}
)
_KEY_SOURCES: Final = frozenset({"qname", "rule_name"})


@dataclass(frozen=True, slots=True)
class _References:
    """What the rest of the configuration declares."""

    pools: frozenset[str]
    sources: dict[int, frozenset[str]]
    cidr_names: frozenset[str]
    profiles: frozenset[str]


def validate_rules(config: Config, report: Report) -> None:
    """Check `rules` against itself and against pools, sources and tables."""
    block = config.rules
    if block.match_mode != "first_match":
        report.error(
            ("rules", "match_mode"),
            f"unsupported rules.match_mode '{block.match_mode}', only first_match",
        )
    references = _References(
        frozenset(pool.name for pool in config.pools),
        {
            socket.AF_INET: _declared_sources(config, socket.AF_INET),
            socket.AF_INET6: _declared_sources(config, socket.AF_INET6),
        },
        config.cidr_names(),
        # without a lookup block there is one profile
        frozenset(config.lookup.profiles if config.lookup else ("default",)),
    )
    names: set[str] = set()
    for index, rule in enumerate(block.rules):
        path: KeyPath = ("rules", "rules", index)
        if not rule.name:
            report.error((*path, "name"), "rule name must not be empty")
        elif rule.name in names:
            report.error((*path, "name"), f"duplicate rule name '{rule.name}'")
        names.add(rule.name)
        _check_rule(rule, path, references, report)


def _check_rule(rule: Rule, path: KeyPath, references: _References, report: Report) -> None:
    if rule.hook not in HOOKS:
        report.error(
            (*path, "hook"),
            f"rule '{rule.name}' has unrecognized hook '{rule.hook}' "
            "(must be request, response, or no_answer)",
        )
    if rule.selectors:
        place = SelectorPlace(f"rule '{rule.name}'", _KEY_SOURCES, references.cidr_names)
        for index, selector in enumerate(rule.selectors):
            validate_selector(selector, (*path, "selectors", index), place, report)
    for index, action in enumerate(rule.actions):
        _check_action(rule, action, (*path, "actions", index), references, report)


def _check_action(
    rule: Rule, action: Action, path: KeyPath, references: _References, report: Report
) -> None:
    kind = action.type
    start = f"rule '{rule.name}'"
    if kind not in ACTION_TYPES:
        advice = " (now set_retry_pool with retry)" if kind == "retry_pool" else ""
        report.error((*path, "type"), f"{start} has unknown action type '{kind}'{advice}")
        return
    _check_hook(rule.hook, kind, start, path, report)
    value_path: KeyPath = (*path, "value")
    if kind in _POOL_SETTERS:
        _check_pool(action, start, value_path, references, report)
    elif kind in _SOURCES:
        _check_source(action, start, value_path, references, report)
    elif kind == "set_rcode":
        try:
            parse_rcode(action.value)
        except ValueError:
            report.error(
                value_path,
                f"{start} set_rcode value '{action.value}' is not a known Rcode name or RCODEN "
                "alias",
            )
    elif kind == "set_lookup_profile" and action.value not in references.profiles:
        report.error(
            value_path,
            f"{start} action 'set_lookup_profile' references unknown lookup profile "
            f"'{action.value}'; declare it under lookup.profiles or fix the name",
        )
    elif kind == "rhai" and not action.value:
        report.error(value_path, f"{start} rhai action requires script path in value")
    elif kind == "clear_tag" and not action.value:
        report.error(value_path, f"{start} clear_tag requires a non-empty tag key in value")


def _check_hook(hook: str, kind: str, start: str, path: KeyPath, report: Report) -> None:
    type_path: KeyPath = (*path, "type")
    if hook == "no_answer" and kind in _NOT_ON_NO_ANSWER:
        report.error(type_path, f"{start} hook 'no_answer' does not permit action '{kind}'")
    if kind in _RETRIES and hook != "response":
        report.error(type_path, f"{start} action '{kind}' is only valid on response hook")
    if kind == "set_rcode" and hook == "request":
        report.error(
            type_path, f"{start} action 'set_rcode' is only valid on response or no_answer hook"
        )
    if kind in _REQUEST_ONLY and hook != "request":
        report.error(type_path, f"{start} action '{kind}' is only valid on request hook")


def _check_pool(
    action: Action, start: str, path: KeyPath, references: _References, report: Report
) -> None:
    if not action.value:
        report.error(path, f"{start} {action.type} requires a pool name in value")
    elif action.value not in references.pools:
        report.error(
            path,
            f"{start} action '{action.type}' references unknown pool '{action.value}'; "
            "declare it under pools: or fix the name",
        )


def _check_source(
    action: Action, start: str, path: KeyPath, references: _References, report: Report
) -> None:
    family = _SOURCES[action.type]
    version = "4" if family == socket.AF_INET else "6"
    if not action.value:
        report.error(path, f"{start} action '{action.type}' requires an address in value")
        return
    try:
        address = parse_source_address(action.value, family)
    except ValueError:
        report.error(
            path, f"{start} {action.type} '{action.value}' is not a valid IPv{version} address"
        )
        return
    declared = references.sources[family]
    if not declared:
        report.error(
            path,
            f"{start} {action.type} requires forward.sources_v{version} or pool sources_v{version}",
        )
    elif address not in declared:
        report.error(
            path,
            f"{start} {action.type} '{action.value}' is not in configured sources_v{version}",
        )


def _declared_sources(config: Config, family: int) -> frozenset[str]:
    """Return the canonical source addresses of `forward` and of all pools."""
    declared: set[str] = set()
    blocks: tuple[Forward | Pool, ...] = (config.forward, *config.pools)
    for block in blocks:
        for text in block.sources_v4 if family == socket.AF_INET else block.sources_v6:
            try:
                declared.add(parse_source_address(text, family))
            except ValueError:
                # reported where it stands
                continue
    return frozenset(declared)
