"""The service manager protocol: what is sent, where, and that a deaf manager does no harm."""

from __future__ import annotations

import os
import select
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from conduit.runtime.service_manager import ServiceManager, WatchdogThread


class Listening:
    """A notification socket as the service manager holds it."""

    def __init__(self, address: str, bind_to: str) -> None:
        self.address = address
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(bind_to)
        self.socket.settimeout(5)

    def next(self) -> str:
        return self.socket.recv(4096).decode()

    def nothing_waits(self) -> bool:
        # a local datagram is queued before its sender returns
        return not select.select([self.socket], [], [], 0)[0]


@pytest.fixture(params=["path", "abstract"])
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Listening]:
    if request.param == "path":
        path = str(tmp_path / "notify")
        listening = Listening(path, path)
    else:
        name = f"conduit-test-{os.getpid()}-{id(request)}"
        listening = Listening(f"@{name}", f"\0{name}")
    with listening.socket:
        yield listening


def test_each_state_is_one_datagram(manager: Listening) -> None:
    service = ServiceManager.from_environment({"NOTIFY_SOCKET": manager.address})
    service.ready()
    assert manager.next() == "READY=1"
    service.status("serving 2 listeners\nand more")
    assert manager.next() == "STATUS=serving 2 listeners and more"
    service.feed_watchdog()
    assert manager.next() == "WATCHDOG=1"
    service.stopping()
    assert manager.next() == "STOPPING=1"
    assert manager.nothing_waits()


def test_reloading_carries_the_monotonic_clock_in_microseconds(manager: Listening) -> None:
    service = ServiceManager.from_environment({"NOTIFY_SOCKET": manager.address})
    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    service.reloading()
    after = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    state, stamp = manager.next().split("\n")
    assert state == "RELOADING=1"
    name, _, value = stamp.partition("=")
    assert name == "MONOTONIC_USEC"
    assert before <= int(value) <= after


@pytest.mark.parametrize("environ", [{}, {"NOTIFY_SOCKET": ""}, {"WATCHDOG_USEC": "1000000"}])
def test_without_a_socket_nothing_is_sent_and_no_watchdog_runs(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_socket(*arguments: object) -> None:
        raise AssertionError("a socket was opened")

    service = ServiceManager.from_environment(environ)
    monkeypatch.setattr(socket, "socket", no_socket)
    service.ready()
    service.reloading()
    service.status("text")
    service.feed_watchdog()
    service.stopping()
    assert service.watchdog_interval is None


def test_the_process_environment_is_the_default(
    manager: Listening, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", manager.address)
    ServiceManager.from_environment().ready()
    assert manager.next() == "READY=1"


@pytest.mark.parametrize(
    ("usec", "pid", "expected"),
    [
        ("30000000", None, 30.0),
        ("500000", str(os.getpid()), 0.5),
        ("500000", str(os.getpid() + 1), None),
        ("0", None, None),
        ("-5", None, None),
        ("soon", None, None),
        ("", None, None),
        ("\u0663", None, None),
    ],
)
def test_watchdog_interval(usec: str, pid: str | None, expected: float | None) -> None:
    environ = {"NOTIFY_SOCKET": "/nonexistent", "WATCHDOG_USEC": usec}
    if pid is not None:
        environ["WATCHDOG_PID"] = pid
    assert ServiceManager.from_environment(environ).watchdog_interval == expected


@pytest.mark.parametrize("address", ["/nonexistent/notify", "relative", "@nobody", "/" + "x" * 200])
def test_a_failure_is_logged_once_and_never_raised(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    warnings: list[str] = []

    class Log:
        def warn(self, message: str, **fields: object) -> None:
            warnings.append(message)

    monkeypatch.setattr("conduit.runtime.service_manager._log", Log())
    service = ServiceManager(address)
    service.ready()
    service.feed_watchdog()
    service.stopping()
    assert warnings == ["service manager notification failed"]


class Fed(ServiceManager):
    """Counts the feedings and says when one came."""

    def __init__(self, interval: float | None) -> None:
        super().__init__("/nonexistent", interval)
        self.times: list[float] = []
        self.came = threading.Event()

    def feed_watchdog(self) -> None:
        self.times.append(time.monotonic())
        self.came.set()


def test_the_watchdog_is_fed_twice_an_interval_and_stops_on_request() -> None:
    service = Fed(0.04)
    asked = threading.Event()

    def is_alive() -> bool:
        if len(service.times) >= 3:
            asked.set()
        return True

    started = time.monotonic()
    thread = WatchdogThread(service, is_alive)
    thread.start()
    assert asked.wait(5)
    thread.stop()
    thread.join(5)
    assert not thread.is_alive()
    # three feedings take at least three halves of the interval, whatever the machine does
    assert service.times[2] - started >= 3 * 0.02 * 0.9
    assert thread.daemon


def test_the_watchdog_starves_while_the_service_shows_no_life() -> None:
    service = Fed(0.01)
    asked = 0
    revived = threading.Event()
    enough = threading.Event()

    def is_alive() -> bool:
        nonlocal asked
        asked += 1
        if asked == 5:
            enough.set()
        return revived.is_set()

    thread = WatchdogThread(service, is_alive)
    thread.start()
    assert enough.wait(5)
    assert not service.times
    revived.set()
    assert service.came.wait(5)
    thread.stop()
    thread.join(5)


def test_without_a_watchdog_the_thread_ends_at_once() -> None:
    service = Fed(None)
    thread = WatchdogThread(service, lambda: True)
    thread.start()
    thread.join(5)
    assert not thread.is_alive()
    assert not service.times
