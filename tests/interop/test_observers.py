"""Event export and traces of the running service; the collectors are programs of others."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dns.exception
import pytest

from conduit.observe.events.dnstap_decode import Frame, decode_frame
from conduit.observe.events.frame_streams import FrameReader
from tests.support.child import Child
from tests.support.daemon import Conduit, configuration, with_metrics
from tests.support.ports import free_port
from tests.support.stub_upstream import StubUpstream, rcode

Start = Callable[..., Conduit]
NAME = "www.example.test."


def capture(tmp_path: Path) -> tuple[Child, Path, Path]:
    """Start fstrm_capture; returns it, its socket and the file it writes."""
    program = shutil.which("fstrm_capture")
    if program is None:
        pytest.skip("needs fstrm_capture from the Debian package fstrm-bin")
    socket, output = tmp_path / "tap.sock", tmp_path / "frames.fstrm"
    child = Child([program, "-t", "protobuf:dnstap.Dnstap", "-u", str(socket), "-w", str(output)])
    deadline = time.monotonic() + 5
    while not socket.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    return child, socket, output


def frames_in(output: Path) -> list[Frame]:
    reader = FrameReader()
    reader.feed(output.read_bytes())
    found = []
    while (frame := reader.next_frame()) is not None:
        if isinstance(frame, bytes):
            found.append(decode_frame(frame))
    return found


def sink(destination: str, **more: Any) -> dict[str, Any]:
    return {
        "type": "dnstap",
        "name": "tap",
        "destinations": [destination],
        "connect_retry": {"initial_ms": 20, "max_ms": 50},
        **more,
    }


def observed(backend: str, **blocks: Any) -> dict[str, Any]:
    return configuration(backend, metrics=with_metrics(free_port()), **blocks)


def wait_until(condition: Callable[[], bool], seconds: float = 5.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "timed out"
        time.sleep(0.02)


def test_dnstap_carries_what_was_asked_and_sent(
    stub: StubUpstream, start_conduit: Start, tmp_path: Path
) -> None:
    collector, socket, output = capture(tmp_path)
    try:
        conduit = start_conduit(
            observed(
                stub.address,
                events={
                    "sinks": [
                        sink(
                            f"unix:{socket}",
                            extra_fields=["txn_id", "qname", "rcode", "answer_source"],
                        )
                    ]
                },
            )
        )
        replies = [conduit.query(f"n{n}.example.test.", tcp=n % 2 == 1) for n in range(20)]
        wait_until(lambda: conduit.metric("conduit_events_delivered_total", sink="tap") == 40)
        assert conduit.metric("conduit_events_enqueued_query_total", sink="tap") == 20
        assert conduit.metric("conduit_events_enqueued_response_total", sink="tap") == 20
        assert conduit.metric("conduit_events_queue_dropped_total", sink="tap") == 0
        conduit.send_signal(signal.SIGTERM)
        assert conduit.wait() == 0
        collector.send_signal(signal.SIGTERM)
        collector.wait()
    finally:
        collector.stop()
    frames = frames_in(output)
    responses = [f for f in frames if f.message.type_name == "CLIENT_RESPONSE"]
    assert len(responses) == 20
    assert {f.message.response_message for f in responses} == {r.wire for r in replies}
    asked = [f.message.query_message for f in frames if f.message.type_name == "CLIENT_QUERY"]
    assert len(asked) == 20
    extra = json.loads(responses[0].extra or b"")
    assert extra["rcode"] == "NOERROR"
    assert extra["answer_source"] == "forward"
    reader = shutil.which("dnstap-ldns")
    if reader is not None:
        text = subprocess.run(
            [reader, "-q", "-r", str(output)], capture_output=True, text=True, check=True
        ).stdout
        assert len(text.splitlines()) == 40
        assert text.count(" TCP ") == 20


def test_a_dropped_query_has_a_query_frame_and_no_response(
    stub: StubUpstream, start_conduit: Start, tmp_path: Path
) -> None:
    drop = {
        "name": "drop",
        "hook": "request",
        "selectors": [{"type": "qname_suffix", "value": ".bad.test."}],
        "actions": [{"type": "drop"}],
    }
    collector, socket, _ = capture(tmp_path)
    try:
        conduit = start_conduit(
            observed(
                stub.address,
                rules={"rules": [drop]},
                events={"sinks": [sink(f"unix:{socket}")]},
            )
        )
        with pytest.raises(dns.exception.Timeout):
            conduit.query("x.bad.test.", timeout=0.3)
        conduit.query(NAME)
        wait_until(lambda: conduit.metric("conduit_events_delivered_total", sink="tap") == 3)
        conduit.send_signal(signal.SIGTERM)
        conduit.wait()
    finally:
        collector.stop()


def test_a_retry_has_a_frame_of_its_own(
    stub: StubUpstream, start_conduit: Start, tmp_path: Path
) -> None:
    again = {
        "name": "again",
        "hook": "response",
        "selectors": [{"type": "rcode", "value": "SERVFAIL"}],
        "actions": [{"type": "retry"}],
    }
    collector, socket, output = capture(tmp_path)
    try:
        stub.default = rcode("SERVFAIL")
        config = observed(
            stub.address,
            rules={"rules": [again]},
            orchestrator={"max_attempts": 2},
            events={
                "sinks": [
                    sink(
                        f"unix:{socket}",
                        emit=["query", "response", "retry"],
                        extra_fields=["attempt_count", "backend"],
                    )
                ]
            },
        )
        with StubUpstream() as other:
            config["pools"][0]["backends"].append({"address": other.address})
            conduit = start_conduit(config)
            conduit.query(NAME)
        wait_until(lambda: conduit.metric("conduit_events_delivered_total", sink="tap") == 3)
        conduit.send_signal(signal.SIGTERM)
        conduit.wait()
        collector.send_signal(signal.SIGTERM)
        collector.wait()
    finally:
        collector.stop()
    kinds = [f.message.type_name for f in frames_in(output)]
    assert kinds == ["CLIENT_QUERY", "CLIENT_QUERY", "CLIENT_RESPONSE"]


def test_a_collector_that_does_not_read_costs_no_answer(
    stub: StubUpstream, start_conduit: Start, tmp_path: Path
) -> None:
    collector, socket, _ = capture(tmp_path)
    try:
        conduit = start_conduit(
            observed(
                stub.address,
                events={"queue_depth": 100, "sinks": [sink(f"unix:{socket}")]},
            )
        )
        conduit.query(NAME)
        wait_until(lambda: conduit.metric("conduit_events_delivered_total", sink="tap") == 2)
        collector.send_signal(signal.SIGSTOP)
        for number in range(3000):
            assert conduit.query(f"n{number}.example.test.").answer
        assert conduit.metric("conduit_events_queue_dropped_total", sink="tap") > 0
        started = time.monotonic()
        conduit.send_signal(signal.SIGTERM)
        assert conduit.wait() == 0
        assert time.monotonic() - started < 3
        collector.send_signal(signal.SIGCONT)
    finally:
        collector.stop()


def test_filters_follow_a_reload_and_sinks_do_not(
    stub: StubUpstream, start_conduit: Start, tmp_path: Path
) -> None:
    collector, socket, _ = capture(tmp_path)
    try:
        config = observed(stub.address, events={"sinks": [sink(f"unix:{socket}", emit=["query"])]})
        conduit = start_conduit(config)
        conduit.query(NAME)
        wait_until(lambda: conduit.metric("conduit_events_enqueued_query_total") == 1)
        config["events"]["sinks"][0]["filters"] = {
            "selectors": [{"type": "qname_exact", "value": "only.example.test."}]
        }
        conduit.write(config)
        conduit.reload()
        conduit.query(NAME)
        conduit.query("only.example.test.")
        wait_until(lambda: conduit.metric("conduit_events_enqueued_query_total") == 2)
        assert not any("events: pending" in line for line in conduit.lines)
        config["events"]["queue_depth"] = 7
        conduit.write(config)
        conduit.reload()
        conduit.wait_for_line("events: pending (restart required)")
    finally:
        collector.stop()


def test_trace_names_the_phases_in_order(stub: StubUpstream, start_conduit: Start) -> None:
    conduit = start_conduit(
        observed(
            stub.address,
            tracing={
                "enabled": True,
                "activation": {"selectors": [{"type": "qname_suffix", "value": ".traced.test."}]},
                "output": {"log_json": True},
            },
        )
    )
    conduit.query("a.other.test.")
    conduit.query("a.traced.test.")
    line = conduit.wait_for_line("pipeline trace")
    found = re.search(r"events=(\[.*\])", line)
    assert found is not None
    events = json.loads(found.group(1))
    assert [event["phase"] for event in events] == [
        "parse",
        "request_rules",
        "route",
        "forward",
        "wait_response",
        "lookup",
        "send",
    ]
    elapsed = [event["elapsed_us"] for event in events]
    assert elapsed == sorted(elapsed)
    assert events[-1]["pool"] == "default"
    assert events[-1]["backend"] == stub.address
    assert sum("pipeline trace" in text for text in conduit.lines) == 1
