"""The bounded queue, and back-off, log lines and giving up of an outage under a virtual clock."""

from __future__ import annotations

import logging

import pytest

from conduit.config import ConnectRetry
from conduit.observe.events.dnstap import QUERY, RESPONSE, RETRY, ClientMessage
from conduit.observe.events.event_queue import EventQueue
from conduit.observe.events.outage import Backoff, Outage
from tests.support.scripted import VirtualClock


def message(kind: int = QUERY, port: int = 1) -> ClientMessage:
    return ClientMessage(kind, 0, "192.0.2.1", port, False, b"x")


def ports(queue: EventQueue) -> list[int]:
    return [event.port for event, _ in queue.take(100, 0)]


@pytest.mark.parametrize(("policy", "kept"), [("drop_oldest", [3, 4]), ("drop_newest", [1, 2])])
def test_a_full_queue_loses_one_event_at_a_time(policy: str, kept: list[int]) -> None:
    queue = EventQueue(2, policy)
    for port in (1, 2, 3, 4):
        queue.put(message(port=port), b"")
    assert ports(queue) == kept
    assert queue.counts[QUERY] == 2
    assert queue.dropped == 2


def test_kinds_are_counted_apart() -> None:
    queue = EventQueue(10, "drop_oldest")
    for kind in (QUERY, RESPONSE, RESPONSE, RETRY):
        queue.put(message(kind), b"")
    assert [queue.counts[kind] for kind in (QUERY, RESPONSE, RETRY)] == [1, 2, 1]
    assert queue.dropped == 0


def test_take_is_bounded_and_ends_by_wake() -> None:
    queue = EventQueue(10, "drop_oldest")
    for port in range(5):
        queue.put(message(port=port), b"")
    assert [event.port for event, _ in queue.take(2, 0)] == [0, 1]
    assert len(queue) == 3
    queue.take(10, 0)
    queue.wake()
    # returns at once: it would fail by the length of the run, not by a measured time
    assert queue.take(10, 3600) == []


def test_backoff_grows_to_the_maximum_and_resets() -> None:
    retry = ConnectRetry(initial_ms=1000, max_ms=5000, multiplier=2.0, jitter=False)
    backoff = Backoff(retry)
    assert [backoff.next_delay() for _ in range(5)] == [1, 2, 4, 5, 5]
    backoff.reset()
    assert backoff.next_delay() == 1


def test_backoff_survives_any_number_of_failures() -> None:
    backoff = Backoff(ConnectRetry(multiplier=1e300, jitter=False))
    assert [backoff.next_delay() for _ in range(4)] == [1, 30, 30, 30]


def test_jitter_range_and_minimum() -> None:
    asked: list[tuple[float, float]] = []

    def uniform(low: float, high: float) -> float:
        asked.append((low, high))
        return high

    assert Backoff(ConnectRetry(max_ms=1000), uniform).next_delay() == 1.25
    assert asked == [(0.75, 1.25)]
    tiny = Backoff(ConnectRetry(initial_ms=1), lambda low, high: low)
    assert tiny.next_delay() == 0.001


def test_zero_settings_mean_the_defaults() -> None:
    backoff = Backoff(ConnectRetry(initial_ms=0, max_ms=0, multiplier=0, jitter=False))
    assert [backoff.next_delay() for _ in range(3)] == [1, 2, 4]


class OutageLog:
    """An outage with a virtual clock and the lines it wrote."""

    def __init__(self, caplog: pytest.LogCaptureFixture, retry: ConnectRetry) -> None:
        caplog.set_level(logging.DEBUG, logger="conduit_events")
        self._caplog = caplog
        self.clock = VirtualClock()
        self.outage = Outage("tap", retry, self.clock, lambda low, high: 1.0)

    def lines(self) -> list[tuple[str, str, dict[str, object]]]:
        found = [
            (record.levelname, record.getMessage(), vars(record)["conduit_fields"])
            for record in self._caplog.records
        ]
        self._caplog.clear()
        return found


def test_lines_of_an_outage(caplog: pytest.LogCaptureFixture) -> None:
    log = OutageLog(caplog, ConnectRetry())
    outage = log.outage
    assert outage.failed(1) == 1.0
    fields: dict[str, object] = {"sink": "tap", "connect_attempts": 1, "delay_ms": 1000}
    assert log.lines() == [
        ("WARNING", "dnstap destinations unreachable, reconnecting", {"sink": "tap"}),
        ("DEBUG", "dnstap connect retry sleep", fields),
    ]
    log.clock.advance(59)
    outage.failed(2)
    assert [level for level, _, _ in log.lines()] == ["DEBUG"]
    log.clock.advance(1)
    outage.failed(3)
    fields = {"sink": "tap", "connect_attempts": 3, "delay_ms": 4000}
    assert log.lines()[0] == ("WARNING", "dnstap connect retry still failing", fields)
    outage.ended(2)
    assert log.lines() == [("INFO", "dnstap connected", {"sink": "tap", "destinations": 2})]


def test_no_line_without_an_outage(caplog: pytest.LogCaptureFixture) -> None:
    log = OutageLog(caplog, ConnectRetry())
    log.outage.ended(1)
    assert log.lines() == []


def test_disconnection_and_immediate_return(caplog: pytest.LogCaptureFixture) -> None:
    log = OutageLog(caplog, ConnectRetry())
    log.outage.disconnected()
    log.outage.ended(1)
    assert log.lines() == [
        ("WARNING", "dnstap destinations disconnected, reconnecting", {"sink": "tap"}),
        ("INFO", "dnstap connected", {"sink": "tap", "destinations": 1}),
    ]


def test_giving_up_after_max_elapsed(caplog: pytest.LogCaptureFixture) -> None:
    log = OutageLog(caplog, ConnectRetry(max_elapsed_ms=5000))
    assert log.outage.failed(1) is not None
    log.clock.advance(4.9)
    assert log.outage.failed(2) is not None
    log.lines()
    log.clock.advance(0.1)
    assert log.outage.failed(3) is None
    assert log.lines() == [
        (
            "ERROR",
            "dnstap destinations given up until restart",
            {"sink": "tap", "connect_attempts": 3, "max_elapsed_ms": 5000},
        )
    ]


def test_an_outage_is_counted_from_its_own_beginning(caplog: pytest.LogCaptureFixture) -> None:
    log = OutageLog(caplog, ConnectRetry(max_elapsed_ms=5000))
    log.outage.failed(1)
    log.outage.ended(1)
    log.clock.advance(100)
    assert log.outage.failed(2) == 1.0
