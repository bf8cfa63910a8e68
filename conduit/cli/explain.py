"""`conduit-check --explain`: what the configuration would do with one query, without a network.

It sends the query through the daemon's own admission and pipeline; only the clock and the answers
of the backends are made up, so the explanation cannot differ from what the daemon does.
"""

from __future__ import annotations

import argparse
import ipaddress
import itertools
import logging
import socket
import struct
from dataclasses import dataclass
from typing import Final

from conduit.cli.explain_observe import Journal, observe
from conduit.cli.explain_record import (
    REPLY,
    SILENCE,
    AclFacts,
    AttemptFacts,
    ClientFacts,
    Explanation,
    QueryFacts,
)
from conduit.cli.explain_reply import read_reply
from conduit.cli.explain_selectors import tags_of
from conduit.cli.explain_upstream import ScriptedUpstream, UsageError, VirtualClock
from conduit.config import Listener
from conduit.observe.counters import CounterRegistry
from conduit.pipeline import Environment, run
from conduit.policy.acl import DROP, REFUSE, AclPolicy
from conduit.runtime.ingress import Ingress, IngressContext
from conduit.runtime.slots import SlotPool
from conduit.snapshot import RuntimeSnapshot, SnapshotRef
from conduit.transaction import CACHE, Transaction
from conduit.upstream.exchange import Exchange
from conduit.upstream.pool import canonical_sources
from conduit.upstream.source import SourceSelector
from conduit.wire import (
    Query,
    class_name,
    name_from_text,
    parse_query,
    parse_query_class,
    parse_record_type,
    record_type_name,
)

_MAX_ID: Final = 2**64 - 1
_DEFAULT_EDNS: Final = 1232
#: No rule reads the port of the client; scripts may.
_CLIENT_PORT: Final = 53535
_RD: Final = 0x0100
_DO: Final = 0x8000
_TYPE_OPT: Final = 41

#: Options that mean something only together with --explain, by attribute.
_DESTINATIONS: Final = (
    "qname",
    "qtype",
    "qclass",
    "client",
    "listener",
    "tcp",
    "edns",
    "do",
    "rcode",
    "answer_from",
    "id",
)


@dataclass(frozen=True, slots=True)
class ExplainOptions:
    """One question to explain; texts as given on the command line, `edns` in octets."""

    qname: str
    qtype: str = "A"
    qclass: str = "IN"
    client: str = "127.0.0.1"
    listener: str | None = None
    tcp: bool = False
    edns: int | None = None
    dnssec_ok: bool = False
    rcode: str = "NOERROR"
    answers: tuple[str, ...] = ()
    id: int = 1


def add_explain_options(parser: argparse.ArgumentParser) -> None:
    """Add `--explain` and what goes with it to `parser`."""
    group = parser.add_argument_group(
        "explaining one query", "needs exactly one FILE; nothing is sent anywhere"
    )
    add = group.add_argument
    add("--explain", action="store_true", help="tell what would happen to one query, step by step")
    add("--qname", metavar="NAME", help="name asked for (required)")
    add("--qtype", metavar="TYPE", help="record type (default A)")
    add("--qclass", metavar="CLASS", help="class (default IN)")
    add("--client", metavar="ADDR", help="IP address of the client (default 127.0.0.1)")
    add("--listener", metavar="LABEL", help="name or address of the listener (default the first)")
    add("--tcp", action="store_true", default=None, help="ask over TCP instead of UDP")
    add("--edns", metavar="SIZE", type=int, help="send EDNS with this UDP payload size")
    add("--do", action="store_true", default=None, help="set the DNSSEC OK bit (implies EDNS)")
    add("--rcode", metavar="RCODE", help="what backends answer otherwise (default NOERROR)")
    add(
        "--answer-from",
        metavar="POOL/BACKEND=OUTCOME",
        action="append",
        help="next outcome of one backend: an rcode, timeout, send_error or tcp_error; may be given"
        " several times, used up in order",
    )
    add("--id", metavar="N", type=int, help="transaction id, decides backend and samples (1)")


def explain_options_given(options: argparse.Namespace) -> bool:
    """True when an option is present that needs `--explain`."""
    return any(getattr(options, name) is not None for name in _DESTINATIONS)


def read_options(options: argparse.Namespace) -> ExplainOptions:
    """Return the parsed command line as options; raises UsageError without `--qname`."""
    if options.qname is None:
        raise UsageError("--explain needs --qname NAME")
    defaults = ExplainOptions(options.qname)
    return ExplainOptions(
        options.qname,
        options.qtype or defaults.qtype,
        options.qclass or defaults.qclass,
        options.client or defaults.client,
        options.listener,
        bool(options.tcp),
        options.edns,
        bool(options.do),
        options.rcode or defaults.rcode,
        tuple(options.answer_from or ()),
        defaults.id if options.id is None else options.id,
    )


class _ExplainListener:
    """Stands in for the listener: keeps what would be sent."""

    def __init__(self, entry: Listener) -> None:
        self.label = entry.label
        self.is_tcp = entry.is_tcp
        self.protocol = "tcp" if entry.is_tcp else "udp"
        self.sent: bytes | None = None

    def reply(self, client_context: object, wire: bytes) -> None:
        self.sent = wire

    def no_reply(self, client_context: object) -> None:
        self.sent = None


def explain(file: str, snapshot: RuntimeSnapshot, options: ExplainOptions) -> Explanation:
    """Explain one query to the compiled configuration of `file`.

    Raises UsageError when the options name what does not exist.
    """
    clock = VirtualClock()
    message = build_query(options)
    client = _client(options.client)
    entry = _listener(snapshot, options)
    if not 1 <= options.id <= _MAX_ID:
        raise UsageError("--id must be from 1 to 2^64 - 1")
    upstream = ScriptedUpstream(snapshot.config, options.answers, options.rcode, clock)
    journal = Journal(snapshot, clock)
    listener = _ExplainListener(entry)
    admitted: list[Transaction] = []
    context = IngressContext(
        SnapshotRef(observe(snapshot, journal)),
        SlotPool(1),
        CounterRegistry(),
        admitted.append,
        clock,
    )
    context.ids = itertools.count(options.id)
    previous = logging.root.manager.disable
    # what the daemon would log about this query is in the explanation
    logging.disable(logging.CRITICAL)
    try:
        ingress = Ingress(context, listener, entry)
        if not listener.is_tcp or ingress.admits_connection(client):
            ingress.admit(message, client, 53000, None)
        ingress.close()
        for txn in admitted:
            txn.worker_index = options.id
            if snapshot.metrics_enabled:
                txn.recorder = context.counters.acquire()
            _drive(txn, snapshot, upstream, clock, journal)
            journal.note_stop(txn)
    finally:
        logging.disable(previous)
    acl = _acl_facts(snapshot.policy.acl_of(entry), client)
    result = Explanation(
        file,
        _query_facts(options, message, client, listener),
        acl,
        _client_facts(admitted, listener, acl),
        journal.steps,
    )
    for txn in admitted:
        result.tags = tags_of(txn)
        result.convergence_reason = txn.convergence_reason
    result.notes = [*journal.notes, *(f"not used: --answer-from {t}" for t in upstream.unused())]
    if any(pool.health is not None and pool.health.enabled for pool in snapshot.config.pools):
        result.notes.append("health checks are on; here every backend counts as up")
    return result


def _drive(
    txn: Transaction,
    snapshot: RuntimeSnapshot,
    upstream: ScriptedUpstream,
    clock: VirtualClock,
    journal: Journal,
) -> None:
    forward = snapshot.config.forward
    sources = SourceSelector(
        canonical_sources(forward.sources_v4, socket.AF_INET),
        canonical_sources(forward.sources_v6, socket.AF_INET6),
    )
    for exchange in run(txn, Environment(clock=clock)):
        # one transaction leads every flight that it joins, so it never waits for another
        assert isinstance(exchange, Exchange)
        started_ms = round((clock() - txn.started) * 1000)
        txn.effect_result, outcome, scripted = upstream.perform(exchange)
        backend = exchange.backend
        wanted = exchange.source_override
        journal.add(
            AttemptFacts(
                txn.attempt_count,
                exchange.pool.name,
                backend.label,
                str(backend.address),
                exchange.transport,
                sources.choose(exchange.pool, backend.is_ipv6, wanted),
                wanted,
                str(outcome),
                outcome.failure is None,
                scripted,
                started_ms,
            )
        )


def build_query(options: ExplainOptions) -> bytes:
    """Return the query as a message with RD set; raises UsageError for an impossible one."""
    try:
        name = name_from_text(options.qname)
        qtype, qclass = parse_record_type(options.qtype), parse_query_class(options.qclass)
    except ValueError as error:
        raise UsageError(str(error)) from error
    size = _DEFAULT_EDNS if options.edns is None else options.edns
    if not 0 <= size <= 0xFFFF:
        raise UsageError("--edns must be from 0 to 65535 octets")
    opt = b""
    if options.edns is not None or options.dnssec_ok:
        opt = struct.pack("!BHHIH", 0, _TYPE_OPT, size, _DO if options.dnssec_ok else 0, 0)
    header = struct.pack("!6H", 1, _RD, 1, 0, 0, 1 if opt else 0)
    return header + name + struct.pack("!2H", qtype, qclass) + opt


def _client(text: str) -> str:
    try:
        address = ipaddress.ip_address(text)
    except ValueError as error:
        raise UsageError(f"--client '{text}' is not an IP address") from error
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    # a mapped peer counts as IPv4, as at a listener (chapter 20 section 22)
    return str(mapped or address)


def _listener(snapshot: RuntimeSnapshot, options: ExplainOptions) -> Listener:
    protocol = "tcp" if options.tcp else "udp"
    entries = snapshot.config.listeners.listeners
    fitting = [entry for entry in entries if entry.is_tcp == options.tcp]
    wanted = options.listener
    for entry in fitting:
        if wanted is None or wanted in (entry.label, entry.address):
            return entry
    known = ", ".join(
        dict.fromkeys(f"{entry.label} ({'tcp' if entry.is_tcp else 'udp'})" for entry in entries)
    )
    which = f"no {protocol} listener" + (f" '{wanted}'" if wanted is not None else "")
    raise UsageError(f"{which}; known are: {known or 'none'}")


def _query_facts(
    options: ExplainOptions, message: bytes, client: str, listener: _ExplainListener
) -> QueryFacts:
    query = parse_query(message)
    assert isinstance(query, Query)
    return QueryFacts(
        query.qname_text,
        record_type_name(query.qtype),
        class_name(query.qclass),
        query.udp_payload_size,
        query.dnssec_ok,
        client,
        listener.label,
        listener.protocol,
        options.id,
    )


def _acl_facts(acl: AclPolicy | None, client: str) -> AclFacts:
    if acl is None:
        return AclFacts(configured=False)
    view = acl.drops_before_parse(client)
    if view is not None:
        return AclFacts(True, "drop", None, view)
    decision = acl.decide(client)
    return AclFacts(True, "pass", decision.decision, decision.view, decision.tag)


def _client_facts(
    admitted: list[Transaction], listener: _ExplainListener, acl: AclFacts
) -> ClientFacts:
    if not admitted:
        if listener.sent is not None and acl.tier1 == REFUSE:
            return read_reply(ClientFacts(REPLY, source="acl"), listener.sent)
        tier = "acl_tier1" if acl.tier1 == DROP else "acl_tier0"
        return ClientFacts(SILENCE, drop_reason=tier)
    txn = admitted[0]
    if txn.reply is None:
        return ClientFacts(SILENCE, drop_reason=txn.drop_reason)
    if txn.answer is None:
        source = "synthesized"
    else:
        source = "cache" if txn.answer_source == CACHE else "upstream"
    facts = ClientFacts(REPLY, truncated=txn.truncated_on_send, source=source)
    return read_reply(facts, txn.reply)
