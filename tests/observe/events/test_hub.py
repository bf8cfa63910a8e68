"""The hub with its sinks and real sockets: delivery, outages, stuck collectors, stopping."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from conduit.observe.events.collector import (
    ConnectFailed,
    Connection,
    Destination,
    Stopped,
    open_connection,
)
from conduit.observe.events.event_filter import SinkPlan, compile_plans
from conduit.observe.events.hub import EventHub, pending_changes
from conduit.observe.events.sink import Connect, SinkCounters
from tests.observe.events.support import Collector, events_of, make_txn, wait_for

QUICK = "connect_retry: {initial_ms: 20, max_ms: 20, jitter: false}"


class Running:
    """A started hub and the plans of its own configuration."""

    def __init__(self, hub: EventHub, plans: tuple[SinkPlan, ...]) -> None:
        self.hub = hub
        self.plans = plans

    def query(self, number: int = 1) -> None:
        self.hub.query(self.plans, make_txn(number))

    def response(self, number: int = 1, wire: bytes = b"r" * 20) -> None:
        self.hub.response(self.plans, make_txn(number), wire)

    def counters(self, name: str = "tap") -> SinkCounters:
        return self.hub.counters()[name]


Start = Callable[..., Running]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start hubs that stop with the test."""
    hubs: list[EventHub] = []

    def build(text: str, connect: Connect = open_connection, started: bool = True) -> Running:
        events = events_of(text)
        hub = EventHub(events, str(tmp_path), connect=connect)
        hubs.append(hub)
        if started:
            hub.start()
        return Running(hub, compile_plans(events))

    yield build
    for hub in hubs:
        hub.stop(5)


def sink(*destinations: str, keys: str = "", name: str = "tap") -> str:
    listed = ", ".join(f"'{destination}'" for destination in destinations)
    keys = f", {keys}" if keys else ""
    return f"{{type: dnstap, name: {name}, destinations: [{listed}], {QUICK}{keys}}}"


def refuse(destination: Destination, stopped: Stopped) -> Connection:
    raise ConnectFailed(str(destination))


def test_ch50_example_32_a_block_without_sinks_starts_nothing(start: Start) -> None:
    before = threading.active_count()
    running = start("{sinks: []}")
    assert running.plans == ()
    assert running.hub.counters() == {}
    assert threading.active_count() == before
    running.query()
    assert running.hub.stop()


def test_ch50_example_33_sink_label_and_identity(start: Start) -> None:
    with Collector() as collector:
        sinks = (
            f"{{type: dnstap, export_id: pod-1, destinations: ['{collector.destination}']}}, "
            + sink(collector.destination, keys="export_id: pod-2")
        )
        running = start(f"{{sinks: [{sinks}]}}")
        assert list(running.hub.counters()) == ["pod-1", "tap"]
        running.query()
        wait_for(lambda: len(collector.frames) == 2, "two frames")
        assert {frame.identity for frame in collector.frames} == {b"pod-1", b"pod-2"}


def test_ch50_example_36_drop_newest_with_the_collector_down(start: Start) -> None:
    only_query = sink("unix:s", keys="emit: [query]")
    text = f"{{queue_depth: 1, drop_policy: drop_newest, sinks: [{only_query}]}}"
    running = start(text, connect=refuse)
    for number in (1, 2, 3):
        running.query(number)
        running.response(number)
    counters = running.counters()
    assert counters.enqueued_query == 1
    assert counters.enqueued_response == 0
    assert counters.queue_dropped == 2
    assert counters.delivered == 0
    assert not counters.connected


def test_ch50_example_37_two_destinations_deliver_four(start: Start, tmp_path: Path) -> None:
    with Collector() as first, Collector(tmp_path / "tap.sock") as second:
        # a relative path is taken from the directory of the configuration
        running = start(f"{{sinks: [{sink(first.destination, 'unix:tap.sock')}]}}")
        running.query()
        running.response()
        wait_for(lambda: running.counters().delivered == 4, "four deliveries")
        for collector in (first, second):
            collector.wait_for_frames(2)
            assert [frame.message.type_name for frame in collector.frames] == [
                "CLIENT_QUERY",
                "CLIENT_RESPONSE",
            ]
        assert running.counters().enqueued_query == 1
        assert running.counters().enqueued_response == 1


def test_ch50_example_40_dropped_query_gives_one_query_frame(start: Start) -> None:
    with Collector() as collector:
        running = start(f"{{sinks: [{sink(collector.destination)}]}}")
        running.query()
        running.response(wire=b"")
        running.hub.stop(5)
        counters = running.counters()
        assert (counters.enqueued_query, counters.enqueued_response) == (1, 0)


def test_order_and_retry_frames(start: Start) -> None:
    keys = "emit: [query, response, retry], extra_fields: [attempt_count]"
    with Collector() as collector:
        running = start(f"{{sinks: [{sink(collector.destination, keys=keys)}]}}")
        txn = make_txn()
        running.hub.query(running.plans, txn)
        txn.attempt_count = 1
        running.hub.retry(running.plans, txn)
        txn.attempt_count = 2
        running.hub.response(running.plans, txn, b"r" * 12)
        wait_for(lambda: len(collector.frames) == 3, "three frames")
        assert [(frame.message.type, frame.extra) for frame in collector.frames] == [
            (5, b'{"attempt_count":0}'),
            (5, b'{"attempt_count":2}'),
            (6, b'{"attempt_count":2}'),
        ]
        assert running.counters().enqueued_retry == 1


def test_queue_fills_without_a_connection_and_is_drained_later(
    start: Start, tmp_path: Path
) -> None:
    running = start(f"{{sinks: [{sink('unix:late.sock')}]}}")
    for number in range(1, 101):
        running.query(number)
    wait_for(lambda: running.counters().connect_attempts >= 2, "a second attempt")
    with Collector(tmp_path / "late.sock") as collector:
        wait_for(lambda: len(collector.frames) == 100, "all frames")
        assert running.counters().queue_dropped == 0


def test_collector_goes_away_and_comes_back(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "tap.sock"
    running = start(f"{{sinks: [{sink(f'unix:{path}')}]}}")
    first = Collector(path)
    running.query(1)
    wait_for(lambda: len(first.frames) == 1, "the first frame")
    first.close()
    # a closed peer is noticed before the next write: nothing is lost
    for number in range(2, 52):
        running.query(number)
    wait_for(lambda: not running.counters().connected, "the disconnection")
    with Collector(path) as second:
        wait_for(lambda: len(second.frames) == 50, "what waited")
    assert running.counters().queue_dropped == 0
    assert running.counters().delivered == 51


def test_idle_consumer_notices_that_the_collector_left(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "tap.sock"
    with Collector(path):
        running = start(f"{{sinks: [{sink(f'unix:{path}')}]}}")
        wait_for(lambda: running.counters().connected, "the connection")
    wait_for(lambda: not running.counters().connected, "the disconnection")


def test_no_event_goes_uncounted_with_many_producers(start: Start) -> None:
    with Collector() as collector:
        running = start(f"{{queue_depth: 64, sinks: [{sink(collector.destination)}]}}")

        def produce() -> None:
            for number in range(2000):
                running.query(number)

        threads = [threading.Thread(target=produce) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        counters = running.counters()
        assert counters.enqueued_query + counters.queue_dropped == 8000
        # an overflow replaces one event by another
        wait_for(lambda: running.counters().delivered == counters.enqueued_query, "the rest")
        collector.wait_for_frames(counters.enqueued_query)


def test_one_destination_of_two_comes_back_on_its_own(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "second.sock"
    with Collector() as first:
        running = start(f"{{sinks: [{sink(first.destination, f'unix:{path}')}]}}")
        running.query(1)
        wait_for(lambda: len(first.frames) == 1, "delivery to the one that is up")
        with Collector(path) as second:
            number = 1

            def both() -> bool:
                nonlocal number
                number += 1
                running.query(number)
                return bool(second.frames)

            wait_for(both, "delivery to the one that came later")
        # only whole rounds count as attempts
        assert running.counters().connect_attempts == 1


@pytest.mark.parametrize("policy", ["drop_oldest", "drop_newest"])
def test_stuck_collector_costs_drops_and_nothing_else(
    start: Start, tmp_path: Path, policy: str
) -> None:
    with Collector(tmp_path / "stuck.sock", reads=False) as stuck, Collector() as healthy:
        running = start(
            f"{{queue_depth: 50, drop_policy: {policy}, sinks: ["
            f"{sink(stuck.destination, name='stuck')}, {sink(healthy.destination)}]}}"
        )
        wait_for(lambda: running.counters("stuck").connected, "the handshake")
        slowest = 0.0
        for number in range(2000):
            began = time.perf_counter()
            running.response(number, b"r" * 4000)
            slowest = max(slowest, time.perf_counter() - began)
        assert slowest < 1.0
        counters = running.counters("stuck")
        assert counters.connected
        assert counters.enqueued_response + counters.queue_dropped == 2000
        # no more than socket buffers hold
        assert counters.delivered < 1000
        assert counters.queue_dropped > 500
        before = running.counters().delivered
        running.query()
        wait_for(lambda: running.counters().delivered > before, "delivery by the other sink")
        began = time.monotonic()
        running.hub.stop(5)
        assert time.monotonic() - began < 1.0


def test_stop_during_a_handshake_that_never_ends(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        running = start(f"{{sinks: [{sink(f'tcp:127.0.0.1:{port}')}]}}")
        client, _ = silent.accept()
        with client:
            began = time.monotonic()
            assert running.hub.stop(5)
            assert time.monotonic() - began < 1.0


def test_stop_during_the_sleep_between_attempts(start: Start) -> None:
    tried = threading.Event()

    def connect(destination: Destination, stopped: Stopped) -> Connection:
        tried.set()
        raise ConnectFailed("down")

    text = "{sinks: [{type: dnstap, name: tap, destinations: ['unix:/s']}]}"
    running = start(text, connect=connect)
    assert tried.wait(10)
    began = time.monotonic()
    assert running.hub.stop(5)
    assert time.monotonic() - began < 0.9


def test_stop_sends_stop(start: Start) -> None:
    with Collector() as collector:
        running = start(f"{{sinks: [{sink(collector.destination)}]}}")
        running.query()
        wait_for(lambda: len(collector.frames) == 1, "the frame")
        assert running.hub.stop(5)
        wait_for(lambda: collector.streams[0].stopped, "STOP")
        assert not running.counters().connected


def test_stop_without_start(start: Start) -> None:
    running = start(f"{{sinks: [{sink('unix:s')}]}}", started=False)
    assert running.hub.stop()


def test_frames_behind_the_lost_one_wait_for_the_next_connection(
    start: Start, tmp_path: Path
) -> None:
    """The connection dies in the middle of a batch."""

    class Dying:
        def write(self, frames: list[bytes], stall_limit: float) -> int:
            return 1

        def peer_left(self) -> bool:
            return False

        def close(self) -> None:
            pass

    path = tmp_path / "tap.sock"
    connections: list[int] = []
    go = threading.Event()

    def connect(destination: Destination, stopped: Stopped) -> Connection:
        assert go.wait(10)
        connections.append(1)
        if len(connections) == 1:
            return Dying()  # type: ignore[return-value]
        return open_connection(destination, stopped)

    with Collector(path) as collector:
        running = start(f"{{sinks: [{sink(f'unix:{path}')}]}}", connect=connect)
        for number in range(1, 6):
            running.query(number)
        go.set()
        wait_for(lambda: len(collector.frames) == 3, "the frames behind")
        counters = running.counters()
        assert (counters.delivered, counters.write_failed) == (4, 1)


def test_encode_failure_is_counted_and_skipped(start: Start) -> None:
    with Collector() as collector:
        running = start(f"{{sinks: [{sink(collector.destination)}]}}")
        running.hub.query(running.plans, make_txn(client="nowhere"))
        running.query()
        wait_for(lambda: len(collector.frames) == 1, "the good frame")
        assert running.counters().encode_failed == 1


def test_plans_meet_sinks_by_name(start: Start) -> None:
    with Collector() as collector:
        running = start(f"{{sinks: [{sink(collector.destination)}]}}")
        newer = events_of(
            f"{{sinks: [{sink('unix:x', name='new')}, {sink('unix:y', keys='emit: [response]')}]}}"
        )
        running.hub.query(compile_plans(newer), make_txn())
        running.hub.response(compile_plans(newer), make_txn(), b"r" * 12)
        wait_for(lambda: len(collector.frames) == 1, "the response frame")
        assert collector.frames[0].message.is_response
        running.hub.response((), make_txn(), b"r" * 12)
        assert running.counters().enqueued_response == 1


def test_a_fault_never_reaches_the_query(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    running = start(f"{{sinks: [{sink('unix:s')}]}}", connect=refuse)
    caplog.set_level("ERROR", logger="conduit_events")
    for _ in range(3):
        running.hub.query(running.plans, None)  # type: ignore[arg-type]
        running.hub.response(running.plans, object(), b"r")  # type: ignore[arg-type]
        running.hub.retry((object(),), make_txn())  # type: ignore[arg-type]
    lines = [record.getMessage() for record in caplog.records]
    assert lines.count("event export failed") == 1


def test_sink_without_a_usable_destination_is_not_started(start: Start) -> None:
    running = start("{sinks: [{type: dnstap, name: tap, destinations: ['tcp:nonsense']}]}")
    running.query()
    assert running.counters() == SinkCounters()


@pytest.mark.parametrize(
    ("change", "pending"),
    [
        ("{sinks: [%s]}", False),
        ("{sinks: [{type: dnstap, name: a, destinations: ['unix:/a'], emit: [retry]}, %s]}", True),
        ("{sinks: []}", True),
        ("{queue_depth: 5, sinks: [%s]}", True),
        ("{drop_policy: drop_newest, sinks: [%s]}", True),
    ],
)
def test_what_takes_a_restart(change: str, pending: bool) -> None:
    base = "{type: dnstap, name: tap, destinations: ['unix:/s']%s}"
    old = events_of(f"{{sinks: [{base % ''}]}}")
    hot = base % ", emit: [query], extra_fields: [tags], extra_tags: [a], filters: {pool: p}"
    text = change % hot if "%s" in change else change
    assert pending_changes(old, events_of(text)) is pending


@pytest.mark.parametrize(
    "keys", ["export_id: x", "connect_retry: {max_ms: 5}", "destinations: ['unix:/other']"]
)
def test_sink_keys_that_take_a_restart(keys: str) -> None:
    def load(extra: str) -> object:
        places = "" if "destinations" in extra else "destinations: ['unix:/s'], "
        return events_of(f"{{sinks: [{{type: dnstap, {places}name: tap{extra}}}]}}")

    assert pending_changes(load(""), load(f", {keys}"))  # type: ignore[arg-type]
    assert not pending_changes(load(""), load(", export_id: tap"))  # type: ignore[arg-type]
