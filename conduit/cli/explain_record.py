"""The record of one explained query: what was decided, in order, as plain data.

`conduit.cli.explain` fills it, the text and JSON writers show it. The field names are the keys of
the JSON output (docs/explain.md), so a change here is a change of a public format.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

CONTINUE: Final = "continue"
DROP: Final = "drop"
RETRY: Final = "retry"

REPLY: Final = "reply"
SILENCE: Final = "silence"


@dataclass(frozen=True, slots=True)
class QueryFacts:
    """The query as sent: sizes in octets, `edns` None without an OPT record."""

    qname: str
    qtype: str
    qclass: str
    edns: int | None
    dnssec_ok: bool
    client: str
    listener: str
    protocol: str
    id: int


@dataclass(frozen=True, slots=True)
class AclFacts:
    """The client ACL: decisions are `admit`, `tag`, `drop`, `refuse`.

    `tier0` is `drop` or `pass`, None when nothing is configured; `tier1` is None when tier 0 or the
    parser ended the query. `view` is the table that decided, or `default`.
    """

    configured: bool
    tier0: str | None = None
    tier1: str | None = None
    view: str | None = None
    tag: str | None = None


@dataclass(frozen=True, slots=True)
class SelectorFacts:
    """One selector: `wanted` as configured, `actual` what the query or transaction had."""

    type: str
    wanted: str
    actual: str
    matched: bool


@dataclass(frozen=True, slots=True)
class RuleFacts:
    """One rule that was looked at; `index` is its place in `rules.rules`, from 0."""

    name: str
    index: int
    selectors: tuple[SelectorFacts, ...]


@dataclass(frozen=True, slots=True)
class Effect:
    """One field of the transaction that an action changed; `key` is the tag's key, else None."""

    field: str
    key: str | None
    before: str | None
    after: str | None


@dataclass(slots=True)
class ActionFacts:
    """One action of the matched rule; `ended_rule` tells that it was a hard drop or retry.

    `events` is what a script did besides: log lines, counted metrics, failures.
    """

    type: str
    value: str
    ran: bool = False
    ended_rule: bool = False
    effects: tuple[Effect, ...] = ()
    events: tuple[str, ...] = ()


@dataclass(slots=True)
class RulePass:
    """One rule pass: the rules before the first match, the match, its actions, the outcome."""

    hook: str
    rcode: str | None
    rules: int
    not_matched: tuple[RuleFacts, ...]
    matched: RuleFacts | None
    actions: list[ActionFacts]
    outcome: str = CONTINUE
    kind: str = "rules"


@dataclass(slots=True)
class AttemptFacts:
    """One forward; `outcome` is an rcode or the reason of a failure.

    `source` is the local address it leaves from, None when the system chooses; `source_wanted` is
    the one that policy asked for. `started_ms` counts from the start of the transaction.
    """

    number: int
    pool: str
    backend: str
    address: str
    transport: str
    source: str | None
    source_wanted: str | None
    outcome: str
    answered: bool
    scripted: bool
    started_ms: int
    kind: str = "attempt"


@dataclass(frozen=True, slots=True)
class RouteFailure:
    """A Route that found no backend: `no_pool`, `unknown_pool` or `no_backend_left`."""

    pool: str | None
    reason: str
    kind: str = "route_failure"


@dataclass(frozen=True, slots=True)
class Stop:
    """Why the pipeline went on without a further attempt or without response rules."""

    reason: str
    text: str
    kind: str = "stop"


Step = RulePass | AttemptFacts | RouteFailure | Stop


@dataclass(frozen=True, slots=True)
class ExtendedErrorFacts:
    """An Extended DNS Error (RFC 8914 section 2)."""

    code: int
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class ClientFacts:
    """What the client gets: a reply of `size` octets, or silence with its `drop_reason`.

    `source` is `upstream`, `cache`, `synthesized` or `acl`.
    """

    result: str
    rcode: str | None = None
    flags: tuple[str, ...] = ()
    size: int | None = None
    truncated: bool = False
    source: str | None = None
    extended_error: ExtendedErrorFacts | None = None
    drop_reason: str | None = None


@dataclass(slots=True)
class Explanation:
    """Everything about one query."""

    file: str
    query: QueryFacts
    acl: AclFacts
    client: ClientFacts
    steps: list[Step] = field(default_factory=list)
    tags: dict[str, str | bool] = field(default_factory=dict)
    convergence_reason: str | None = None
    notes: list[str] = field(default_factory=list)
