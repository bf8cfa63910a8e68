"""`conduit-rhai --txn`: a policy script against a made-up transaction, and what it did to it."""

from __future__ import annotations

import argparse
import ipaddress
from typing import Final, TextIO

from conduit.cli.explain import ExplainOptions, build_query
from conduit.cli.explain_observe import difference, state_of
from conduit.cli.explain_text import effect_text
from conduit.cli.explain_upstream import UsageError
from conduit.cli.rhai import EXIT_ERROR, EXIT_OK, Source, run_source
from conduit.config import load_text
from conduit.observe.counters import CounterRegistry
from conduit.pipeline import Environment
from conduit.policy.actions import DROP_NOW, RETRY_NOW
from conduit.scripting.host import host_engine
from conduit.scripting.objects import ScriptHome, ScriptRun
from conduit.scripting.reports import ScriptReports
from conduit.scripting.scan import MetricRegistry, ScanError
from conduit.scripting.scripts import VARIABLES
from conduit.snapshot import compile_snapshot
from conduit.transaction import FORWARD, Transaction
from conduit.wire import Query, parse_query, parse_rcode, synthesize_reply

_CONFIG: Final = (
    "schema_version: 1\nlisteners: {listeners: []}\npools: []\nmetrics: {enabled: true}\n"
)


class _Listener:
    label = "127.0.0.1:53"
    protocol = "udp"
    is_tcp = False

    def reply(self, client_context: object, wire: bytes) -> None:
        """Nothing is sent."""

    def no_reply(self, client_context: object) -> None:
        """Nothing is sent."""


def run_policy(source: Source, options: argparse.Namespace, out: TextIO, err: TextIO) -> int:
    """Run `source` as a rule would and print its effects; returns the exit status.

    Raises UsageError when the options name what does not exist.
    """
    txn = _transaction(options)
    metrics = MetricRegistry()
    try:
        metrics.add(source.text, source.label)
    except ScanError as error:
        err.write(f"{source.label}: {error.shape}: {error}\n")
        return EXIT_ERROR
    events: list[str] = []
    reports = ScriptReports()
    reports.observer = events.append
    home = ScriptHome(source.label, "conduit-rhai", options.rcode is not None, {}, metrics, reports)
    run = ScriptRun(txn, home)
    for name, make in VARIABLES.items():
        run.push(name, make(run))
    engine = host_engine()
    engine.limits = options.limits
    before = state_of(txn)
    status = run_source(
        source, engine, run, out=out, err=err, check=options.check, show_value=False
    )
    if status != EXIT_OK or options.check:
        return status
    end = run.effects.apply(txn)
    lines = [effect_text(effect) for effect in difference(before, state_of(txn))]
    lines += events
    assert txn.recorder is not None
    lines += [f"counts {count} in metric {name}" for (name, _), count in txn.recorder.user.items()]
    if end == DROP_NOW:
        lines.append("drops the query")
    elif end == RETRY_NOW:
        lines.append("retries at once")
    for line in lines or ["changes nothing"]:
        out.write(f"{line}\n")
    return EXIT_OK


def _transaction(options: argparse.Namespace) -> Transaction:
    try:
        client = str(ipaddress.ip_address(options.client))
        rcode = None if options.rcode is None else parse_rcode(options.rcode)
    except ValueError as error:
        raise UsageError(str(error)) from error
    query = parse_query(build_query(ExplainOptions(options.qname, options.qtype)))
    assert isinstance(query, Query)
    loaded = load_text(_CONFIG, "conduit-rhai")
    environment = Environment()
    txn = Transaction(
        1,
        1,
        query,
        compile_snapshot(loaded.config, 1, "."),
        _Listener(),
        client,
        None,
        environment.clock(),
        53535,
    )
    txn.environment = environment
    txn.recorder = CounterRegistry().acquire()
    if rcode is not None:
        txn.attempt_count = 1
        txn.answer = synthesize_reply(query, rcode & 0xF)
        txn.rcode = rcode
        txn.answer_source = FORWARD
    return txn
