"""The probe thread: one selector loop for all backends (design 3.3, chapter 60 section 11).

Replies are read before deadlines are looked at, and round trips use the kernel's receive time where
it is offered, so that a stalled scheduler is never taken for a slow backend.
"""

from __future__ import annotations

import os
import selectors
import socket
import struct
import threading
import time
from typing import Final

from conduit.observe.counters import CounterRegistry
from conduit.observe.logging import get_log
from conduit.upstream.health.probe import build_probe, judge_reply
from conduit.upstream.health.registry import HealthRegistry
from conduit.upstream.health.schedule import ProbeSchedule, Slot
from conduit.upstream.health.settings import source_family

_log = get_log("conduit_core")

SUCCESS: Final = "success"
FAILURE: Final = "failure"
TIMEOUT: Final = "timeout"
SEND_ERROR: Final = "send_error"

# asm-generic/socket.h; the payload is a struct timespec
_SO_TIMESTAMPNS: Final = getattr(socket, "SO_TIMESTAMPNS", 35)
_unpack_timespec: Final = struct.Struct("@ll").unpack_from
_CONTROL_SIZE: Final = socket.CMSG_SPACE(16)
# probe sockets are opened anew after this time, so that their ports change
_SOCKET_SECONDS: Final = 30.0


class _UdpSocket:
    """A UDP socket shared by the probes of one family and source."""

    def __init__(self, family: int, source: str | None, now: float) -> None:
        self.sock = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        try:
            self.sock.setblocking(False)
            self.sock.bind((source or ("::" if family == socket.AF_INET6 else "0.0.0.0"), 0))
            try:
                self.sock.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
            except OSError:
                pass
        except OSError:
            self.sock.close()
            raise
        self.opened = now
        self.waiting: dict[tuple[object, int], Slot] = {}


class _TcpProbe:
    """One TCP probe in progress."""

    def __init__(self, slot: Slot, sock: socket.socket, message: bytes) -> None:
        self.slot = slot
        self.sock = sock
        self.outgoing = len(message).to_bytes(2, "big") + message
        self.buffer = b""


class Prober(threading.Thread):
    """Probes every backend that the registry knows."""

    def __init__(self, registry: HealthRegistry, counters: CounterRegistry) -> None:
        super().__init__(name="conduit-prober", daemon=True)
        self._registry = registry
        self._recorder = counters.acquire()
        self._schedule = ProbeSchedule()
        self._selector = selectors.DefaultSelector()
        self._udp: dict[tuple[int, str | None], _UdpSocket] = {}
        self._tcp: dict[int, _TcpProbe] = {}
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._changed = True
        self._stop_requested = False
        self._outcomes = 0

    def follow(self) -> None:
        """Look at the registry's backends again: the configuration changed."""
        self._changed = True
        self._wake()

    def stop(self) -> None:
        """End the thread."""
        self._stop_requested = True
        self._wake()

    def _wake(self) -> None:
        try:
            os.write(self._wake_write, b"\0")
        except OSError:
            # full: a wake-up is on its way
            pass

    def run(self) -> None:
        self._selector.register(self._wake_read, selectors.EVENT_READ)
        while not self._stop_requested:
            try:
                self._pass()
            except Exception:
                # health must outlive a surprise: DNS depends on it
                _log.exception("probe loop failed, going on")
                time.sleep(0.5)

    def _pass(self) -> None:
        if self._changed:
            self._changed = False
            for slot in self._schedule.follow(self._registry.entries(), time.monotonic()):
                self._forget(slot)
        wait = self._schedule.next_event(time.monotonic())
        for key, _ in self._selector.select(wait):
            if key.data is None:
                try:
                    os.read(self._wake_read, 4096)
                except BlockingIOError:
                    pass
            elif isinstance(key.data, _UdpSocket):
                self._read_udp(key.data)
            else:
                self._advance_tcp(key.data)
        now = time.monotonic()
        for slot in self._schedule.take_due(now):
            if slot.open:
                self._end(slot, TIMEOUT)
            if slot.due <= now:
                self._send(slot)
        if self._outcomes:
            self._outcomes = 0
            self._registry.recompute_factors()

    # sending

    def _send(self, slot: Slot) -> None:
        now = time.monotonic()
        entry = slot.entry
        probe_id = self._schedule.new_id()
        try:
            message = build_probe(probe_id, entry.settings)
        except ValueError as error:
            _log.warn(
                "probe build failed; skipping",
                pool=entry.backend.pool,
                backend=entry.backend.key,
                error=error,
            )
            self._schedule.postpone(slot, now)
            return
        self._schedule.sent(slot, probe_id, now)
        try:
            source = entry.settings.probe.source
            if source is not None and source_family(source) != entry.backend.family:
                raise OSError("probe_source is of the other address family")
            if entry.settings.probe.tcp:
                self._connect(slot, message, source)
            else:
                udp = self._udp_socket(entry.backend.family, source, now)
                udp.waiting[(entry.backend.sockaddr, probe_id)] = slot
                slot.sent_wall = time.time()
                udp.sock.sendto(message, entry.backend.sockaddr)
        except OSError as error:
            _log.debug("probe send failed", backend=entry.backend.key, error=error)
            self._end(slot, SEND_ERROR)

    def _udp_socket(self, family: int, source: str | None, now: float) -> _UdpSocket:
        key = (family, source)
        udp = self._udp.get(key)
        if udp is not None and now - udp.opened > _SOCKET_SECONDS and not udp.waiting:
            self._selector.unregister(udp.sock)
            udp.sock.close()
            udp = None
        if udp is None:
            udp = self._udp[key] = _UdpSocket(family, source, now)
            self._selector.register(udp.sock, selectors.EVENT_READ, udp)
        return udp

    def _connect(self, slot: Slot, message: bytes, source: str | None) -> None:
        backend = slot.entry.backend
        sock = socket.socket(backend.family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        probe = _TcpProbe(slot, sock, message)
        try:
            sock.setblocking(False)
            if source is not None:
                sock.bind((source, 0))
            slot.sent_wall = time.time()
            try:
                sock.connect(backend.sockaddr)
            except BlockingIOError:
                pass
        except OSError:
            sock.close()
            raise
        self._tcp[id(slot)] = probe
        self._selector.register(sock, selectors.EVENT_WRITE, probe)

    # replies

    def _read_udp(self, udp: _UdpSocket) -> None:
        while True:
            try:
                reply, control, _, address = udp.sock.recvmsg(65535, _CONTROL_SIZE)
            except BlockingIOError:
                return
            except OSError as error:
                _log.debug("probe receive failed", error=error)
                return
            if len(reply) < 12:
                continue
            slot = udp.waiting.get((address, int.from_bytes(reply[:2], "big")))
            if slot is None:
                continue
            verdict = judge_reply(reply, slot.probe_id, slot.entry.settings)
            if verdict is None:
                continue
            received = _kernel_time(control) or time.time()
            if received - slot.sent_wall > slot.entry.settings.timeout:
                # it came after its deadline: the timeout stands
                continue
            self._end(slot, SUCCESS if verdict else FAILURE, received)

    def _advance_tcp(self, probe: _TcpProbe) -> None:
        slot = probe.slot
        try:
            if probe.outgoing:
                error = probe.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if error:
                    raise OSError(error, os.strerror(error))
                sent = probe.sock.send(probe.outgoing)
                probe.outgoing = probe.outgoing[sent:]
                if not probe.outgoing:
                    self._selector.modify(probe.sock, selectors.EVENT_READ, probe)
                return
            chunk = probe.sock.recv(65536)
            if not chunk:
                raise ConnectionResetError("backend closed the connection")
        except BlockingIOError:
            return
        except OSError as error:
            _log.debug("probe over TCP failed", backend=slot.entry.backend.key, error=error)
            self._end(slot, SEND_ERROR)
            return
        probe.buffer += chunk
        while len(probe.buffer) >= 2:
            length = int.from_bytes(probe.buffer[:2], "big")
            if len(probe.buffer) < length + 2:
                return
            reply, probe.buffer = probe.buffer[2 : length + 2], probe.buffer[length + 2 :]
            verdict = judge_reply(reply, slot.probe_id, slot.entry.settings)
            if verdict is not None:
                self._end(slot, SUCCESS if verdict else FAILURE, time.time())
                return

    def _end(self, slot: Slot, outcome: str, received: float = 0.0) -> None:
        """Close the open probe of `slot` and tell the registry how it ended."""
        entry = slot.entry
        self._forget(slot)
        self._schedule.close(slot)
        self._outcomes += 1
        self._recorder.probe_results[(entry.backend.pool, entry.backend.label, outcome)] += 1
        if outcome == SUCCESS:
            # both times are wall-clock: a clock step shows as a negative or absurd round trip
            rtt = received - slot.sent_wall
            if 0 <= rtt <= entry.settings.timeout:
                self._registry.probe_succeeded(entry, rtt * 1000)
            else:
                self._registry.probe_succeeded(entry, entry.ewma_ms or 1.0)
        else:
            self._registry.probe_failed(entry)

    def _forget(self, slot: Slot) -> None:
        probe = self._tcp.pop(id(slot), None)
        if probe is not None:
            self._selector.unregister(probe.sock)
            probe.sock.close()
        elif slot.open:
            settings = slot.entry.settings
            udp = self._udp.get((slot.entry.backend.family, settings.probe.source))
            if udp is not None:
                udp.waiting.pop((slot.entry.backend.sockaddr, slot.probe_id), None)


def _kernel_time(control: list[tuple[int, int, bytes]]) -> float | None:
    for level, kind, data in control:
        if level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPNS and len(data) >= 16:
            seconds, nanos = _unpack_timespec(data)
            return float(seconds) + float(nanos) / 1e9
    return None
