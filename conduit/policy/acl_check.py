"""The dry run of client ACLs: what tier 1 would decide for an address (chapter 20 section 3.5)."""

from __future__ import annotations

from conduit.config import Listeners
from conduit.policy.acl import TAG
from conduit.policy.compile import Policy


def check_acl(
    policy: Policy, block: Listeners, address: str, listener: str | None = None
) -> list[dict[str, str]]:
    """Return one result a listener entry, in configuration order; nothing is counted or logged.

    `listener` is a resolved ingress name and selects one entry. Raises ValueError when it names
    none, or when no listener is configured.
    """
    if not block.listeners:
        raise ValueError("no listeners configured")
    entries = [e for e in block.listeners if listener in (None, e.ingress_name)]
    if not entries:
        raise ValueError(f"unknown listener '{listener}'")
    results: list[dict[str, str]] = []
    for entry in entries:
        acl = policy.acl_of(entry)
        result = {"listener": entry.ingress_name}
        if acl is None:
            results.append({**result, "decision": "admit", "matched": "default", "action": "allow"})
            continue
        decision = acl.decide(address)
        result["decision"] = decision.decision
        if decision.decision == TAG and decision.tag is not None:
            result["tag"] = decision.tag
        results.append({**result, "matched": decision.view, "action": decision.rule_action})
    return results
