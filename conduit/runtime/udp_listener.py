"""UDP listeners: one socket and one thread an ingress worker (chapter 20 section 2.2)."""

from __future__ import annotations

import socket
import struct
import threading
import time
from typing import Any, Final

from conduit.config import Listener
from conduit.observe.logging import get_log
from conduit.runtime.ingress import MAX_UDP_QUERY, Ingress, IngressContext, client_text

_log = get_log("conduit_core")

#: Datagrams taken after one wake-up before the thread looks at its stop flag again.
BATCH: Final = 32
# one octet more than a query may have: what fills it is too long
_RECEIVE_SIZE: Final = MAX_UDP_QUERY + 1
_WAKE_SECONDS: Final = 1
# linux/in.h; not every Python build names it
_IP_PKTINFO: Final = getattr(socket, "IP_PKTINFO", 8)
_PKTINFO4: Final = struct.Struct("=I4s4s")
_PKTINFO6: Final = struct.Struct("=16sI")
_CMSG_SPACE: Final = socket.CMSG_SPACE(32) * 2


class UdpListener(threading.Thread):
    """Receives datagrams on one bound socket and answers on it."""

    protocol = "udp"
    is_tcp = False

    def __init__(
        self, sock: socket.socket, entry: Listener, context: IngressContext, wildcard: bool
    ) -> None:
        """`wildcard` sockets answer from the address that the query was sent to."""
        super().__init__(name=f"conduit-udp-{entry.label}", daemon=True)
        self.label = entry.label
        self._entry = entry
        self._sock = sock
        self._wildcard = wildcard
        self._context = context
        self._stop_requested = False
        #: Monotonic time of the last sign of life, for the watchdog.
        self.last_alive = context.clock()
        # the wait ends once a second so that a stop and the watchdog need no extra system call
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("@ll", _WAKE_SECONDS, 0))
        if wildcard:
            if sock.family == socket.AF_INET6:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
            else:
                sock.setsockopt(socket.IPPROTO_IP, _IP_PKTINFO, 1)

    def run(self) -> None:
        ingress = Ingress(self._context, self, self._entry)
        try:
            if self._wildcard:
                self._receive_with_destination(ingress)
            else:
                self._receive(ingress)
        finally:
            ingress.close()

    def _receive(self, ingress: Ingress) -> None:
        receive = self._sock.recvfrom
        ipv6 = self._sock.family == socket.AF_INET6
        clock = self._context.clock
        while not self._stop_requested:
            self.last_alive = clock()
            flags = 0
            for _ in range(BATCH):
                try:
                    message, address = receive(_RECEIVE_SIZE, flags)
                except BlockingIOError:
                    break
                except OSError as error:
                    self._receive_failed(error)
                    break
                if self._stop_requested or not address:
                    break
                flags = socket.MSG_DONTWAIT
                if len(message) > MAX_UDP_QUERY:
                    ingress.reject_oversized()
                else:
                    host = address[0]
                    ingress.admit(message, client_text(host) if ipv6 else host, address[1], address)

    def _receive_with_destination(self, ingress: Ingress) -> None:
        clock = self._context.clock
        while not self._stop_requested:
            self.last_alive = clock()
            flags = 0
            for _ in range(BATCH):
                try:
                    message, control, _, address = self._sock.recvmsg(
                        _RECEIVE_SIZE, _CMSG_SPACE, flags
                    )
                except BlockingIOError:
                    break
                except OSError as error:
                    self._receive_failed(error)
                    break
                if self._stop_requested or not address:
                    break
                flags = socket.MSG_DONTWAIT
                if len(message) > MAX_UDP_QUERY:
                    ingress.reject_oversized()
                    continue
                ingress.admit(
                    message,
                    client_text(address[0]),
                    address[1],
                    (address, _reply_source(control)),
                )

    def _receive_failed(self, error: OSError) -> None:
        if self._stop_requested:
            return
        # a receive error is about one datagram; the socket goes on serving
        _log.error("UDP receive failed", listener=self.label, error=error)
        time.sleep(0.05)

    def reply(self, client_context: Any, wire: bytes) -> None:
        """Send a reply to the client; errors are the client's loss alone."""
        try:
            if self._wildcard:
                address, control = client_context
                self._sock.sendmsg([wire], control, 0, address)
            else:
                self._sock.sendto(wire, client_context)
        except OSError as error:
            if _log.debug_enabled:
                _log.debug("UDP reply failed", listener=self.label, error=error)

    def no_reply(self, client_context: Any) -> None:
        """Nothing to do: UDP clients get silence."""

    def stop(self) -> None:
        """Ask the thread to end and wake it up."""
        self._stop_requested = True
        try:
            # raises ENOTCONN on an unconnected socket, but wakes the receiver all the same
            self._sock.shutdown(socket.SHUT_RD)
        except OSError:
            pass

    def close(self) -> None:
        """Close the socket, after the thread has ended."""
        self._sock.close()


def _reply_source(control: list[tuple[int, int, bytes]]) -> list[tuple[int, int, bytes]]:
    """Turn the destination of a query into the source of its reply (RFC 3542 section 6)."""
    for level, kind, data in control:
        if level == socket.IPPROTO_IPV6 and kind == socket.IPV6_PKTINFO:
            address, interface = _PKTINFO6.unpack_from(data)
            # only a link-local address needs its interface; else the route decides
            if not (address[0] == 0xFE and address[1] & 0xC0 == 0x80):
                interface = 0
            return [(level, kind, _PKTINFO6.pack(address, interface))]
        if level == socket.IPPROTO_IP and kind == _IP_PKTINFO:
            _, local_address, _ = _PKTINFO4.unpack_from(data)
            return [(level, kind, _PKTINFO4.pack(0, local_address, b"\0\0\0\0"))]
    return []
