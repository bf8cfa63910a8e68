"""Client ACLs: who may ask, decided by the socket peer (chapters 20 and 30, sections 3 and 11).

Tier 0 runs before parsing and acts only when the first matching rule is `drop`; tier 1 runs after
a successful parse and takes the full decision.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from conduit.config import Acls
from conduit.policy.tables import CidrTable, Table

ADMIT: Final = "admit"
TAG: Final = "tag"
DROP: Final = "drop"
REFUSE: Final = "refuse"

PREADMISSION: Final = "preadmission"
LISTENER: Final = "listener"
DEFAULT_VIEW: Final = "default"


class AclRule(NamedTuple):
    """One compiled rule: `view` is the name of its table."""

    view: str
    table: CidrTable
    action: str
    tag: str | None


class AclDecision(NamedTuple):
    """The outcome of tier 1: `view` is the table that decided, or `default`.

    `rule_action` is the action as configured (`accept`, or `allow`/`deny` for the default).
    """

    decision: str
    view: str
    rule_action: str
    tag: str | None = None


class AclPolicy:
    """A compiled ACL; immutable, one a listener or shared by all that inherit it."""

    __slots__ = ("_default", "_has_drop", "_rules")

    def __init__(self, rules: tuple[AclRule, ...], default_deny: bool) -> None:
        self._rules = rules
        self._has_drop = any(rule.action == DROP for rule in rules)
        self._default = (
            AclDecision(DROP, DEFAULT_VIEW, "deny")
            if default_deny
            else AclDecision(ADMIT, DEFAULT_VIEW, "allow")
        )

    def drops_before_parse(self, address: str) -> str | None:
        """Tier 0: the view of the rule that drops `address`, or None to go on."""
        if not self._has_drop:
            return None
        for rule in self._rules:
            if rule.table.covers(address):
                return rule.view if rule.action == DROP else None
        return None

    def decide(self, address: str) -> AclDecision:
        """Tier 1: the first matching rule, else the default action."""
        for rule in self._rules:
            if rule.table.covers(address):
                if rule.action == "accept":
                    return AclDecision(ADMIT, rule.view, "accept")
                return AclDecision(rule.action, rule.view, rule.action, rule.tag)
        return self._default


def compile_acls(acls: Acls | None, tables: Mapping[str, Table]) -> AclPolicy | None:
    """Compile a validated `acls` block; None without one (everyone admitted, nothing counted)."""
    if acls is None:
        return None
    rules: list[AclRule] = []
    for rule in acls.rules:
        table = tables.get(rule.match)
        if not isinstance(table, CidrTable):
            raise ValueError(f"acls match '{rule.match}' is not a type:cidr data_sources name")
        rules.append(AclRule(rule.match, table, rule.action, rule.tag))
    return AclPolicy(tuple(rules), acls.default_action == "deny")
