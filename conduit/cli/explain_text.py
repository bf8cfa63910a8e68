"""The explanation of one query as text for people, readable at 80 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Final, TextIO

from conduit.cli.explain_record import (
    SILENCE,
    AclFacts,
    ActionFacts,
    AttemptFacts,
    ClientFacts,
    Effect,
    Explanation,
    RouteFailure,
    RuleFacts,
    RulePass,
    SelectorFacts,
    Step,
    Stop,
)
from conduit.config.diagnostics import printable

WIDTH: Final = 80
#: Of more rules than these only the near misses are listed; JSON has all.
MAX_LISTED: Final = 20

_HOOKS: Final = {
    "request": "Request rules",
    "response": "Response rules",
    "no_answer": "No-answer rules",
}
_TRANSPORTS: Final = {"udp_then_tcp": "udp, then tcp if truncated"}
_ROUTE_FAILURES: Final = {
    "no_pool": "no pool is configured",
    "unknown_pool": "there is no pool of that name",
    "no_backend_left": "the query has used every backend of the pool",
}


def write_explanation_text(explanation: Explanation, out: TextIO) -> None:
    """Write the explanation, one fact a line, longer ones folded."""
    encoding = out.encoding or "utf-8"
    for indent, text in _lines(explanation):
        for line in _fold(indent, printable(text, 2000)):
            out.write(line.encode(encoding, "backslashreplace").decode(encoding) + "\n")


def _fold(indent: int, text: str) -> Sequence[str]:
    space = "  " * indent
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=space,
        subsequent_indent=space + "    ",
        break_on_hyphens=False,
    ) or [""]


_Line = tuple[int, str]


def _lines(explanation: Explanation) -> Iterator[_Line]:
    query = explanation.query
    edns = "no EDNS" if query.edns is None else f"EDNS {query.edns}"
    yield (
        0,
        f"Query: {query.qname} {query.qclass} {query.qtype} over {query.protocol}, "
        f"{edns}{', DO' if query.dnssec_ok else ''}, id {query.id}",
    )
    yield 0, f"From {query.client} to listener {query.listener}"
    yield 0, ""
    yield from _acl(explanation.acl)
    for number, step in enumerate(explanation.steps, 1):
        yield 0, ""
        yield from _step(number, step)
    yield 0, ""
    yield from _client(explanation.client, explanation.convergence_reason)
    if explanation.tags:
        tags = ", ".join(
            key if value is True else f"{key}={value}" for key, value in explanation.tags.items()
        )
        yield 1, f"tags at the end: {tags}"
    for note in explanation.notes:
        yield 0, f"Note: {note}"


def _acl(acl: AclFacts) -> Iterator[_Line]:
    if not acl.configured:
        yield 0, "Client ACL: none for this listener, everyone is admitted"
        return
    yield 0, "Client ACL"
    view = f"table '{acl.view}'" if acl.view != "default" else "the default action"
    if acl.tier0 == "drop":
        yield 1, f"tier 0 (before parsing): drop, by {view}"
        return
    yield 1, "tier 0 (before parsing): pass"
    tag = f" with '{acl.tag}'" if acl.tag is not None else ""
    yield 1, f"tier 1: {acl.tier1}{tag}, by {view}"


def _step(number: int, step: Step) -> Iterator[_Line]:
    if isinstance(step, RulePass):
        yield from _rule_pass(number, step)
    elif isinstance(step, AttemptFacts):
        yield from _attempt(number, step)
    elif isinstance(step, RouteFailure):
        where = f"pool '{step.pool}'" if step.pool is not None else "no pool"
        yield 0, f"{number}. Route: {where}"
        yield 1, f"failed: {_ROUTE_FAILURES[step.reason]}"
    elif isinstance(step, Stop):
        yield 0, f"{number}. No further attempt: {step.reason}"
        yield 1, step.text


def _rule_pass(number: int, step: RulePass) -> Iterator[_Line]:
    rcode = f", rcode {step.rcode}" if step.rcode is not None else ""
    count = f"{step.rules} rule{'' if step.rules == 1 else 's'}"
    yield 0, f"{number}. {_HOOKS[step.hook]} ({count}{rcode})"
    listed = list(step.not_matched)
    if len(listed) > MAX_LISTED:
        near = [rule for rule in listed if any(s.matched for s in rule.selectors)]
        listed = near[:MAX_LISTED]
    for rule in listed:
        yield 1, f"'{rule.name}' does not match: {_misses(rule)}"
    hidden = len(step.not_matched) - len(listed)
    if hidden:
        yield 1, f"{hidden} {'other ' if listed else ''}rules do not match (--format json has all)"
    if step.matched is None:
        yield 1, "no rule matches: continue"
        return
    yield 1, f"'{step.matched.name}' matches{_why(step.matched)}"
    for action in step.actions:
        yield 2, f"{_action(action)}{_effects(action)}"
        for event in action.events:
            yield 3, event
    yield 1, f"outcome: {step.outcome}"


def _misses(rule: RuleFacts) -> str:
    return "; ".join(_miss(selector) for selector in rule.selectors if not selector.matched)


def _miss(selector: SelectorFacts) -> str:
    if selector.type == "tag":
        return f"tag wants '{selector.wanted}', the query has {selector.actual}"
    if selector.type == "client_cidr":
        return f"client_cidr wants table '{selector.wanted}', the client is {selector.actual}"
    return f"{selector.type} wants {selector.wanted}, is {selector.actual}"


def _why(rule: RuleFacts) -> str:
    if not rule.selectors:
        return " (no selectors: every query)"
    return " (" + ", ".join(f"{s.type} {s.wanted}" for s in rule.selectors) + ")"


def _action(action: ActionFacts) -> str:
    name = "script" if action.type == "rhai" else action.type
    return f"{name} {action.value}".rstrip()


def _effects(action: ActionFacts) -> str:
    if not action.ran:
        return ": not run"
    parts = [effect_text(effect) for effect in action.effects]
    if action.ended_rule:
        parts.append("ends the rule")
    return ": " + (", ".join(parts) if parts else "changes nothing")


def effect_text(effect: Effect) -> str:
    """Return one changed field as text."""
    name = effect.field if effect.key is None else f"{effect.field} '{effect.key}'"
    return f"{name} {_value(effect.before)} -> {_value(effect.after)}"


def _value(text: str | None) -> str:
    if text is None:
        return "(none)"
    return text if text else "''"


def _attempt(number: int, step: AttemptFacts) -> Iterator[_Line]:
    transport = _TRANSPORTS.get(step.transport, step.transport)
    yield (
        0,
        f"{number}. Attempt {step.number} (at {step.started_ms} ms): pool '{step.pool}', "
        f"backend '{step.backend}'",
    )
    where = step.address if step.address != step.backend else "its address"
    source = "" if step.source is None else f", from {step.source}"
    yield 1, f"to {where}, {transport}{source}"
    if step.source_wanted is not None and step.source_wanted != step.source:
        yield 1, f"source {step.source_wanted} is not allowed for this pool"
    scripted = "as given" if step.scripted else "assumed"
    verb = "answers" if step.answered else "fails:"
    yield 1, f"{verb} {step.outcome} ({scripted})"


def _client(client: ClientFacts, convergence_reason: str | None) -> Iterator[_Line]:
    if client.result == SILENCE:
        yield 0, f"The client gets no reply (dropped by {client.drop_reason})"
        return
    yield 0, f"The client gets {client.rcode} ({client.source}, {client.size} octets)"
    yield 1, f"flags: {' '.join(client.flags)}"
    if client.truncated:
        yield 1, "truncated to the client's payload size"
    error = client.extended_error
    if error is not None:
        text = f": {error.text}" if error.text else ""
        yield 1, f"Extended DNS Error {error.code} {error.name}{text}"
    if client.source == "synthesized" and convergence_reason is not None:
        yield 1, f"no answer because: {convergence_reason}"
