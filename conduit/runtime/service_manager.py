"""Service manager notifications: the `sd_notify` datagram protocol and its watchdog.

Without `NOTIFY_SOCKET` every method is a cheap no-op. Nothing here raises: a service manager that
does not listen must not stop DNS.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Mapping

from conduit.observe.logging import get_log

_log = get_log("conduit")


class ServiceManager:
    """Sends state changes to the service manager that started the process."""

    def __init__(self, address: str | None, watchdog_interval: float | None = None) -> None:
        """`address` is a socket path, or starts with `@` for an abstract one; None turns it off.

        `watchdog_interval` is the time in seconds after which silence counts as failure.
        """
        self._address = address
        self._complained = False
        self.watchdog_interval = watchdog_interval if address else None

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> ServiceManager:
        """Read `NOTIFY_SOCKET`, `WATCHDOG_USEC` and `WATCHDOG_PID`."""
        environment = os.environ if environ is None else environ
        address = environment.get("NOTIFY_SOCKET") or None
        interval: float | None = None
        micros = environment.get("WATCHDOG_USEC", "")
        pid = environment.get("WATCHDOG_PID", "")
        ours = not pid or pid == str(os.getpid())
        if ours and micros.isascii() and micros.isdigit() and int(micros) > 0:
            interval = int(micros) / 1_000_000
        return cls(address, interval)

    def ready(self) -> None:
        """The service serves (also: a reload has ended)."""
        self._send("READY=1")

    def reloading(self) -> None:
        """A reload begins; carries the time stamp that `Type=notify-reload` needs."""
        self._send(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self) -> None:
        """The service stops."""
        self._send("STOPPING=1")

    def status(self, text: str) -> None:
        """A line for the operator, shown by the service manager."""
        self._send("STATUS=" + text.replace("\n", " "))

    def feed_watchdog(self) -> None:
        """Say that the service is alive."""
        self._send("WATCHDOG=1")

    def _send(self, message: str) -> None:
        address = self._address
        if address is None:
            return
        if address.startswith("@"):
            address = "\0" + address[1:]
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
                sock.settimeout(1.0)
                sock.sendto(message.encode(), address)
        except OSError as error:
            if not self._complained:
                self._complained = True
                _log.warn("service manager notification failed", error=error)


class WatchdogThread(threading.Thread):
    """Feeds the watchdog at half its interval while the serving threads show signs of life."""

    def __init__(self, manager: ServiceManager, is_alive: Callable[[], bool]) -> None:
        """`is_alive` must rest on evidence of the serving threads, not on this thread's."""
        super().__init__(name="conduit-watchdog", daemon=True)
        self._manager = manager
        self._is_serving = is_alive
        self._stop_requested = threading.Event()

    def run(self) -> None:
        interval = self._manager.watchdog_interval
        if interval is None:
            return
        while not self._stop_requested.wait(interval / 2):
            if self._is_serving():
                self._manager.feed_watchdog()

    def stop(self) -> None:
        """End the thread."""
        self._stop_requested.set()
