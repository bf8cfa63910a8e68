"""The linter: finds values that are valid and still never do what they look like.

It is advice for the offline checker and never an error; the daemon does not run it, because a list
of some thousand names would drown its log. Each finding has a stable code, described in
`docs/lint.md`. The work grows about linearly with the number of rules.
"""

from __future__ import annotations

from collections.abc import Iterator

from conduit.config import Config
from conduit.policy.lint_coverage import unreachable_rules
from conduit.policy.lint_finding import Finding
from conduit.policy.lint_routing import Routing, routing_findings
from conduit.policy.lint_selectors import selector_findings
from conduit.policy.lint_tables import ScriptTexts, table_findings

__all__ = ["Finding", "lint"]


def lint(config: Config, base_dir: str) -> list[Finding]:
    """Return the findings about a validated configuration, in the order of the file's blocks.

    Script files are read, relative to `base_dir`, only to see which pools and tables they name; one
    that cannot be read counts as naming all of them. Never raises for anything in the file.
    """
    scripts = ScriptTexts(config, base_dir)
    findings = [
        *routing_findings(Routing(config, scripts)),
        *_rule_findings(config),
        *table_findings(config, scripts),
    ]
    order = {name: place for place, name in enumerate(("orchestrator", "pools", "rules"))}
    # stable: the findings of one block keep their order, and rules go by their place
    return sorted(
        findings, key=lambda finding: (order.get(str(finding.path[0]), 9), _item(finding))
    )


def _rule_findings(config: Config) -> Iterator[Finding]:
    dead: set[int] = set()
    for finding in selector_findings(config):
        if finding.rule_is_dead:
            dead.add(_item(finding))
        yield finding
    yield from unreachable_rules(config.rules.rules, dead)


def _item(finding: Finding) -> int:
    """Return the place of the list item that a finding is about, -1 for a whole block."""
    return next((step for step in finding.path if isinstance(step, int)), -1)
