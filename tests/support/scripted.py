"""Drives the pipeline by hand: a virtual clock and a scripted list of exchange results."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import dns.flags
import dns.message
import dns.rcode

from conduit.config import load_text
from conduit.observe.counters import CounterRegistry, Recorder
from conduit.pipeline import Environment, run
from conduit.snapshot import RuntimeSnapshot, compile_snapshot
from conduit.transaction import Transaction
from conduit.upstream.exchange import Exchange, ExchangeResult
from conduit.wire import Query, parse_query

MINIMAL = """
schema_version: 1
listeners: {listeners: [{address: "127.0.0.1:15353", protocol: udp}]}
metrics: {enabled: true}
"""


class VirtualClock:
    """A clock that moves only when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


class FakeListener:
    """Stands in for a listener: has a label and a protocol, sends nothing."""

    def __init__(self, protocol: str = "udp") -> None:
        self.label = "127.0.0.1:15353"
        self.protocol = protocol
        self.is_tcp = protocol == "tcp"

    def reply(self, client_context: object, wire: bytes) -> None:
        raise AssertionError("the driver of a scripted run does not send")

    def no_reply(self, client_context: object) -> None:
        raise AssertionError("the driver of a scripted run does not send")


def snapshot_of(yaml: str, base_dir: str | None = None, **overrides: Any) -> RuntimeSnapshot:
    """Compile `yaml` (with listeners and metrics added) as generation 1."""
    loaded = load_text(MINIMAL + yaml, "test.yaml")
    snapshot = compile_snapshot(loaded.config, 1, base_dir or loaded.base_dir)
    return replace(snapshot, **overrides) if overrides else snapshot


def make_query(
    qname: str = "www.example.test.",
    qtype: str = "A",
    *,
    edns: int | None = None,
    payload: int = 1232,
    dnssec: bool = False,
    message_id: int = 0x1234,
) -> Query:
    """Return the parsed query for a message that dnspython builds."""
    message = dns.message.make_query(
        qname,
        qtype,
        use_edns=edns if edns is not None else False,
        payload=payload,
        want_dnssec=dnssec,
        id=message_id,
    )
    query = parse_query(message.to_wire())
    assert isinstance(query, Query)
    return query


Answer = Callable[["ScriptedRun", Exchange], ExchangeResult]


def answer(
    rcode: str = "NOERROR", *, records: Sequence[str] = (), tc: bool = False, ttl: int = 60
) -> Answer:
    """An upstream reply with `rcode` and A records of `ttl` seconds."""

    def build(run: ScriptedRun, exchange: Exchange) -> ExchangeResult:
        query = dns.message.from_wire(exchange.wire)
        reply = dns.message.make_response(query)
        reply.set_rcode(dns.rcode.from_text(rcode))
        if tc:
            reply.flags |= dns.flags.TC
        if records:
            name = query.question[0].name
            reply.answer.append(dns.rrset.from_text(name, ttl, "IN", "A", *records))
        return ExchangeResult(reply.to_wire())

    return build


def timeout(run: ScriptedRun, exchange: Exchange) -> ExchangeResult:
    """Nothing comes back: the clock moves to the deadline of the attempt."""
    run.clock.now = exchange.deadline
    return ExchangeResult(None, "timeout")


def failure(reason: str) -> Answer:
    """The attempt ends at once with `reason`."""
    return lambda run, exchange: ExchangeResult(None, reason)


@dataclass
class ScriptedRun:
    """One transaction run against a script; `attempts` are `pool/backend` labels in order."""

    snapshot: RuntimeSnapshot
    script: Sequence[Answer]
    query: Query = field(default_factory=make_query)
    transaction_id: int = 1
    protocol: str = "udp"
    environment: Environment | None = None
    setup: Callable[[Transaction], None] = lambda txn: None
    attempts: list[str] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)
    clock: VirtualClock = field(default_factory=VirtualClock)

    def __post_init__(self) -> None:
        self.recorder: Recorder = CounterRegistry().acquire()
        self.txn = Transaction(
            self.transaction_id,
            self.transaction_id,
            self.query,
            self.snapshot,
            FakeListener(self.protocol),
            "127.0.0.1",
            None,
            self.clock(),
        )
        self.txn.recorder = self.recorder
        self.setup(self.txn)

    def go(self) -> ScriptedRun:
        """Drive the transaction to its end."""
        environment = self.environment or Environment(clock=self.clock)
        script = iter(self.script)
        generator = run(self.txn, environment)
        for effect in generator:
            assert isinstance(effect, Exchange), "a follower needs two transactions"
            self.attempts.append(f"{effect.pool.name}/{effect.backend.label}")
            self.exchanges.append(effect)
            step = next(script, None)
            assert step is not None, f"unexpected attempt {self.attempts[-1]}"
            self.txn.effect_result = step(self, effect)
        unused = list(itertools.islice(script, 1))
        assert not unused, "the script has more answers than attempts were made"
        return self

    @property
    def reply(self) -> dns.message.Message | None:
        """The reply as dnspython reads it, or None when the query was dropped."""
        if self.txn.reply is None:
            return None
        return dns.message.from_wire(self.txn.reply, ignore_trailing=True)

    @property
    def rcode(self) -> str | None:
        """The rcode text of the reply."""
        reply = self.reply
        return None if reply is None else dns.rcode.to_text(reply.rcode())
