"""Against collectors that others wrote: fstrm_capture and dnstap-ldns, where installed."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from conduit.observe.events.dnstap_decode import decode_frame
from conduit.observe.events.event_filter import compile_plans
from conduit.observe.events.frame_streams import FrameReader
from conduit.observe.events.hub import EventHub
from tests.observe.events.support import events_of, make_txn, wait_for
from tests.support.child import Child
from tests.support.ports import free_port


def tool(name: str, package: str) -> str:
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"needs {name} from the Debian package {package}")
    return path


def data_frames(octets: bytes) -> list[bytes]:
    reader = FrameReader()
    reader.feed(octets)
    frames = []
    while (frame := reader.next_frame()) is not None:
        if isinstance(frame, bytes):
            frames.append(frame)
    return frames


def capture(tmp_path: Path, listen: Sequence[str], destination: str, expected: int) -> Path:
    """Send a query and a response to fstrm_capture and return the file it wrote."""
    output = tmp_path / "frames.fstrm"
    events = events_of(
        f"{{sinks: [{{type: dnstap, name: tap, destinations: ['{destination}'],"
        " extra_fields: [txn_id], connect_retry: {initial_ms: 20, max_ms: 20}}]}"
    )
    command = [tool("fstrm_capture", "fstrm-bin"), "-t", "protobuf:dnstap.Dnstap"]
    collector = Child([*command, *listen, "-w", str(output)])
    hub = EventHub(events, str(tmp_path))
    hub.start()
    try:
        plans = compile_plans(events)
        txn = make_txn(7)
        hub.query(plans, txn)
        hub.response(plans, txn, txn.query.wire)
        wait_for(lambda: hub.counters()["tap"].delivered == expected, "delivery")
        assert hub.stop(5)
    finally:
        hub.stop(5)
        collector.stop()
    return output


def test_fstrm_capture_over_a_unix_socket(tmp_path: Path) -> None:
    path = tmp_path / "tap.sock"
    output = capture(tmp_path, ["-u", str(path)], f"unix:{path}", 2)
    frames = [decode_frame(octets) for octets in data_frames(output.read_bytes())]
    assert [frame.message.type_name for frame in frames] == ["CLIENT_QUERY", "CLIENT_RESPONSE"]
    assert frames[0].message.query_message == make_txn().query.wire
    assert [json.loads(frame.extra or b"") for frame in frames] == [{"txn_id": 7}] * 2


def test_fstrm_capture_over_tcp_and_dnstap_ldns_reads_the_file(tmp_path: Path) -> None:
    reader = tool("dnstap-ldns", "dnstap-ldns")
    port = free_port()
    output = capture(tmp_path, ["-a", "127.0.0.1", "-p", str(port)], f"tcp:127.0.0.1:{port}", 2)
    found = subprocess.run(
        [reader, "-q", "-r", str(output)], capture_output=True, text=True, timeout=10, check=True
    )
    lines = found.stdout.splitlines()
    assert len(lines) == 2
    query, response = lines
    assert " CQ 192.0.2.7 UDP " in query
    assert " CR 192.0.2.7 UDP " in response
    assert all('"www.example.test." IN A' in line for line in lines)
