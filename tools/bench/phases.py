"""Where the time of one query goes: each step by itself, in this process, in microseconds."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dns.flags
import dns.message
import dns.rrset

from conduit.config import load_text
from conduit.lookup.cache.keys import cache_key
from conduit.lookup.cache.serve import serve
from conduit.lookup.caches import CacheRegistry
from conduit.observe.counters import CounterRegistry
from conduit.pipeline import Environment, run
from conduit.runtime.ingress import Ingress, IngressContext
from conduit.runtime.slots import SlotPool
from conduit.runtime.worker_pool import WorkerPool
from conduit.snapshot import RuntimeSnapshot, SnapshotRef, compile_snapshot
from conduit.transaction import Transaction
from conduit.upstream.exchange import Exchange, ExchangeResult
from conduit.wire import Query, message_decodes, parse_query, synthesize_reply
from tools.bench.policy import SCRIPT, SCRIPT_YAML, name_rules
from tools.bench.report import Bars, say

_BASE = (
    "schema_version: 1\n"
    'listeners: {{ listeners: [{{ address: "127.0.0.1:53", protocol: udp }}] }}\n'
    'pools: [{{ name: p, backends: [{{ address: "192.0.2.1:53" }}] }}]\nmetrics: {metrics}\n'
)
_CACHE = (
    "caches: [{ name: c, type: memory }]\n"
    "lookup: { profiles: { default: { providers: "
    "[{ type: cache, cache: c }, { type: forward }] } } }\n"
)
_LOOPS = 4000


class _Listener:
    label = "127.0.0.1:53"
    protocol = "udp"
    is_tcp = False

    def reply(self, client_context: object, wire: bytes) -> None:
        """Sending is the kernel's part."""

    def no_reply(self, client_context: object) -> None:
        """Nothing is sent."""


def _microseconds(step: Callable[[], object]) -> float:
    """The best of seven, because something else may run."""
    best = float("inf")
    for _ in range(7):
        began = time.perf_counter()
        for _ in range(_LOOPS):
            step()
        best = min(best, time.perf_counter() - began)
    return best / _LOOPS * 1e6


def _snapshot(extra: str, metrics: str, folder: Path) -> RuntimeSnapshot:
    loaded = load_text(_BASE.format(metrics=metrics) + extra, str(folder / "phases.yaml"))
    return compile_snapshot(loaded.config, 1, str(folder))


def phases(folder: Path, options: argparse.Namespace, bars: Bars) -> dict[str, Any]:
    """Time the steps one by one."""
    (folder / "policy.rhai").write_text(SCRIPT)
    (folder / "blocked.csv").write_text("key,value\nbad.example.,block\n")
    asked = dns.message.make_query("h1.w.example.test.", "A", use_edns=0)
    answer = dns.message.make_response(asked)
    answer.answer.append(dns.rrset.from_text("h1.w.example.test.", 3600, "IN", "A", "192.0.2.9"))
    message, reply = asked.to_wire(), answer.to_wire()
    query = parse_query(message)
    assert isinstance(query, Query)
    found = {
        "parse a query": _microseconds(lambda: parse_query(message)),
        "decode an upstream's answer": _microseconds(
            lambda: message_decodes(reply, query.question)
        ),
        "synthesize SERVFAIL": _microseconds(lambda: synthesize_reply(query, 2)),
    }
    off, standard = "{ enabled: false }", "{ enabled: true }"
    found["pipeline, forwarded"] = _forwarded(query, reply, _snapshot("", off, folder))
    found["the same, metrics minimal"] = _forwarded(
        query, reply, _snapshot("", "{ enabled: true, base: minimal }", folder)
    )
    found["the same, metrics standard"] = _forwarded(query, reply, _snapshot("", standard, folder))
    found["1,000 name rules, none matches"] = _rules(query, name_rules(1000), folder)
    found["policy script of a dozen operations"] = _rules(query, SCRIPT_YAML, folder)
    found |= _hits(message, query, reply, folder)
    say("\nsteps of one query in microseconds, in this process")
    for name, value in found.items():
        say(f"  {name:<44}{value:>7.2f}")
    return {"microseconds": found}


def _transaction(query: Query, snapshot: RuntimeSnapshot) -> Transaction:
    return Transaction(
        1, 1, query, snapshot, _Listener(), "127.0.0.1", None, time.monotonic(), 4000
    )


def _forwarded(query: Query, reply: bytes, snapshot: RuntimeSnapshot) -> float:
    environment = Environment()
    recorder = CounterRegistry().acquire() if snapshot.metrics_enabled else None
    result = ExchangeResult(reply)

    def step() -> None:
        txn = _transaction(query, snapshot)
        txn.recorder = recorder
        for effect in run(txn, environment):
            assert isinstance(effect, Exchange)
            txn.effect_result = result

    return _microseconds(step)


def _rules(query: Query, yaml: str, folder: Path) -> float:
    snapshot = _snapshot(yaml, "{ enabled: false }", folder)
    assert snapshot.request_rules is not None
    rules = snapshot.request_rules

    def step() -> None:
        rules(_transaction(query, snapshot))

    bare = _microseconds(lambda: _transaction(query, snapshot))
    return _microseconds(step) - bare


def _hits(message: bytes, query: Query, reply: bytes, folder: Path) -> dict[str, float]:
    snapshot = _snapshot(_CACHE, "{ enabled: false }", folder)
    caches = CacheRegistry(1)
    caches.prepare(snapshot.config.caches, str(folder))()
    environment = Environment(caches=caches)
    fill = _transaction(query, snapshot)
    for _ in run(fill, environment):
        fill.effect_result = ExchangeResult(reply)
    key = cache_key(query)
    assert key is not None
    store = caches.caches["c"].store
    entry = store.get(key, time.monotonic())
    assert entry is not None
    slots, counters = SlotPool(16), CounterRegistry()

    def no_exchanger() -> Any:
        raise AssertionError("a hit needs none")

    def admission(one: RuntimeSnapshot, remember: bool) -> float:
        pool = WorkerPool(environment, slots, counters, no_exchanger, 4)
        context = IngressContext(
            SnapshotRef(one), slots, counters, pool.submit, remember_packets=remember
        )
        ingress = Ingress(context, _Listener(), one.config.listeners.listeners[0])
        return _microseconds(lambda: ingress.admit(message, "127.0.0.1", 4000, None))

    counted = _snapshot(_CACHE, "{ enabled: true }", folder)
    return {
        "cache key": _microseconds(lambda: cache_key(query)),
        "look-up in memory": _microseconds(lambda: store.get(key, 0.0)),
        "reply from an entry": _microseconds(lambda: serve(entry, query, entry.stored + 5)),
        "hit from datagram to reply": admission(snapshot, False),
        "that hit, metrics standard": admission(counted, False),
        "hit of a packet just answered": admission(snapshot, True),
        "that packet, metrics standard": admission(counted, True),
    }
