"""Traces: activation, the order of events, the store's bounds and the JSON line."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from conduit.observe.tracing import Trace, TraceEvent, Tracer, TraceStore, trace_json
from tests.config.support import extend, extend_errors, has
from tests.observe.events.support import backend, make_txn
from tests.support.scripted import VirtualClock

EVENT = TraceEvent("send", 5, None, None, None, None)


def tracer(text: str, store: TraceStore | None = None) -> Tracer:
    return Tracer(extend(f"tracing: {text}\n").tracing, store)


def begin(found: Tracer, txn: Any) -> Trace | None:
    clock = VirtualClock()
    return found.begin(txn, clock, 1000.0, 1000.0)


def test_off_by_default() -> None:
    assert not Tracer(None).enabled
    for text in ("{}", "{enabled: false, activation: {tag: t}}"):
        found = tracer(text)
        assert not found.enabled
        assert begin(found, make_txn()) is None
    assert tracer("{enabled: true}").enabled
    assert begin(tracer("{enabled: true}"), make_txn()) is not None


def test_ch50_example_28_only_tagged_queries_are_found() -> None:
    found = tracer("{enabled: true, activation: {tag: t}}")
    tagged, untagged = make_txn(1), make_txn(2)
    tagged.set_flag("t")
    assert begin(found, untagged) is None
    trace = begin(found, tagged)
    assert trace is not None
    found.finish(tagged, trace)
    assert found.store.get("1") is not None
    for other in ("2", "", "01", "+1", "x", "1 "):
        assert found.store.get(other) is None


def test_ch50_example_29_phases_of_a_forwarded_query() -> None:
    found = tracer("{enabled: true}")
    clock = VirtualClock()
    txn = make_txn(1)
    clock.advance(0.001)
    trace = found.begin(txn, clock, 1000.0005, clock())
    assert trace is not None
    clock.advance(0.001)
    txn.record_attempt("default", backend())
    for phase in ("route", "forward", "wait_response", "lookup", "response_rules", "send"):
        trace.ended(phase, txn)
        clock.advance(0.0005)
    found.finish(txn, trace)
    events = found.store.get("1")
    assert events is not None
    assert [event.phase for event in events] == [
        "parse",
        "request_rules",
        "route",
        "forward",
        "wait_response",
        "lookup",
        "response_rules",
        "send",
    ]
    elapsed = [event.elapsed_us for event in events]
    assert elapsed == sorted(elapsed)
    assert elapsed[0] in (499, 500)
    assert elapsed[-1] in (4499, 4500)
    assert {(event.pool, event.backend) for event in events[:2]} == {(None, None)}
    assert {(event.pool, event.backend) for event in events[2:]} == {("default", "r1")}


def test_elapsed_never_decreases() -> None:
    txn = make_txn()
    trace = Trace(1000.0, VirtualClock())
    for when in (1002.0, 1001.0, 1003.0):
        trace.ended_at("lookup", when, txn)
    assert [event.elapsed_us for event in trace.events] == [2_000_000, 2_000_000, 3_000_000]


def test_ch50_example_30_a_thousand_traces() -> None:
    store = TraceStore(VirtualClock())
    for number in range(1, 1002):
        store.put(number, [EVENT])
    assert store.get("1") is None
    assert store.get("2") == (EVENT,)
    assert store.get("1001") == (EVENT,)
    assert len(store) == 1000


def test_five_minutes_from_insertion_whatever_is_read() -> None:
    clock = VirtualClock()
    store = TraceStore(clock)
    store.put(1, [EVENT])
    clock.advance(299.9)
    store.put(2, [EVENT])
    assert store.get("1") is not None
    clock.advance(0.1)
    assert store.get("1") is None
    assert store.get("2") is not None
    assert len(store) == 1


def test_oldest_of_one_id_and_no_empty_trace() -> None:
    store = TraceStore(VirtualClock())
    later = EVENT._replace(elapsed_us=9)
    store.put(1, [EVENT])
    store.put(1, [later])
    store.put(2, [])
    assert store.get("1") == (EVENT,)
    assert store.get("2") is None


def test_ch50_example_31_sink_name_is_no_salt_here() -> None:
    lines = extend_errors("tracing: {enabled: true, activation: {sample_key_from: sink_name}}\n")
    assert has(lines, "sample_key_from", "sink_name")


def test_sampling_and_selectors_hold_together() -> None:
    quarter = tracer("{enabled: true, activation: {sample_percent: 25}}")
    taken = [n for n in range(1, 21) if begin(quarter, make_txn(n)) is not None]
    assert taken == [4, 8, 12, 16, 20]
    both = tracer(
        "{enabled: true, activation: {sample_percent: 25,"
        " selectors: [{type: qname_exact, value: a.test.}]}}"
    )
    assert begin(both, make_txn(4)) is None
    assert begin(both, make_txn(4, qname="a.test.")) is not None
    assert begin(both, make_txn(5, qname="a.test.")) is None


def test_rcode_selector_never_matches() -> None:
    found = tracer("{enabled: true, activation: {selectors: [{type: rcode, value: SERVFAIL}]}}")
    assert begin(found, make_txn(rcode=2)) is None


def test_json_is_compact_with_nulls() -> None:
    event = TraceEvent("lookup", 12, None, "p\u00e9", "r1", None)
    assert trace_json([event]) == (
        '[{"phase":"lookup","elapsed_us":12,"message":null,"pool":"p\u00e9","backend":"r1",'
        '"cache":null}]'
    )


@pytest.mark.parametrize("log_json", [True, False])
def test_log_line_on_request(caplog: pytest.LogCaptureFixture, log_json: bool) -> None:
    caplog.set_level(logging.INFO, logger="conduit::trace")
    found = tracer(f"{{enabled: true, output: {{log_json: {str(log_json).lower()}}}}}")
    txn = make_txn(3)
    trace = begin(found, txn)
    assert trace is not None
    found.finish(txn, trace)
    records = [record for record in caplog.records if record.name == "conduit::trace"]
    if not log_json:
        assert records == []
        return
    (record,) = records
    assert record.getMessage() == "pipeline trace"
    fields = vars(record)["conduit_fields"]
    assert list(fields) == ["txn_id", "events"]
    assert fields["txn_id"] == 3
    assert [event["phase"] for event in json.loads(fields["events"])] == ["parse", "request_rules"]
