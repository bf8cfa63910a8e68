"""Performing an exchange by blocking the calling worker: the `sync` runtime's way upstream."""

from __future__ import annotations

import time
from collections.abc import Callable

from conduit.observe.logging import get_log
from conduit.upstream.exchange import (
    RESULT_SEND_ERROR,
    RESULT_TABLE_FULL,
    RESULT_TCP_ERROR,
    RESULT_TIMEOUT,
    TCP,
    UDP,
    Exchange,
    ExchangeResult,
)
from conduit.upstream.outstanding import OutstandingTable
from conduit.upstream.source import SourceSelector
from conduit.upstream.tcp_connection import TcpConnection, TcpConnectionPool
from conduit.upstream.udp_socket import UdpSocketSet
from conduit.wire import is_truncated, reply_matches

_log = get_log("conduit_core")


class BlockingExchanger:
    """Performs exchanges for one worker: owns its UDP sockets and its round robin.

    The outstanding table and the TCP connections are shared by all workers.
    """

    __slots__ = ("_buffer", "_clock", "_connections", "_sockets", "_sources", "_table")

    def __init__(
        self,
        table: OutstandingTable,
        connections: TcpConnectionPool,
        sources: SourceSelector,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._table = table
        self._connections = connections
        self._sources = sources
        self._sockets = UdpSocketSet()
        self._clock = clock
        # a buffer of its own: a large allocation a receive would tear the heap to pieces
        self._buffer = memoryview(bytearray(65535))

    def perform(self, exchange: Exchange) -> ExchangeResult:
        """Send, wait and return the outcome; never raises for what a network can do."""
        backend = exchange.backend
        client_id = exchange.wire[:2]
        query_id = self._table.acquire(
            backend.key, int.from_bytes(client_id, "big"), exchange.outstanding_limit
        )
        if query_id < 0:
            return RESULT_TABLE_FULL
        try:
            source = self._sources.choose(exchange.pool, backend.is_ipv6, exchange.source_override)
            message = query_id.to_bytes(2, "big") + exchange.wire[2:]
            if exchange.transport == TCP:
                result = self._over_tcp(exchange, message, query_id, source)
            else:
                result = self._over_udp(exchange, message, query_id, source)
                reply = result.reply
                if reply is not None and exchange.transport != UDP and is_truncated(reply):
                    # one deadline for both; a TCP failure leaves the truncated answer usable
                    retried = self._over_tcp(exchange, message, query_id, source)
                    if retried.reply is not None:
                        result = retried
        finally:
            self._table.release(backend.key, query_id)
        if result.reply is not None:
            return ExchangeResult(client_id + result.reply[2:])
        return result

    def close(self) -> None:
        """Close the worker's own sockets."""
        self._sockets.close()

    def _over_udp(
        self, exchange: Exchange, message: bytes, query_id: int, source: str | None
    ) -> ExchangeResult:
        backend = exchange.backend
        sockaddr = backend.sockaddr
        try:
            udp = self._sockets.get(backend.family, source)
            sock = udp.sock
            sock.sendto(message, sockaddr)
        except OSError as error:
            self._sockets.discard(backend.family, source)
            _log.debug("forward send failed", backend=backend.label, error=error)
            return RESULT_SEND_ERROR
        remaining = exchange.timeout
        while remaining > 0:
            try:
                udp.set_timeout(remaining)
                size, address = sock.recvfrom_into(self._buffer)
            except BlockingIOError:
                break
            except OSError as error:
                _log.debug("forward receive failed", backend=backend.label, error=error)
                remaining = exchange.deadline - self._clock()
                continue
            reply = bytes(self._buffer[:size])
            if address == sockaddr and reply_matches(reply, query_id, exchange.question):
                return ExchangeResult(reply)
            if _log.debug_enabled:
                _log.debug("reply ignored", backend=backend.label, peer=address[0])
            remaining = exchange.deadline - self._clock()
        # a late reply must find nobody: the next exchange gets another port
        self._sockets.discard(backend.family, source)
        return RESULT_TIMEOUT

    def _over_tcp(
        self, exchange: Exchange, message: bytes, query_id: int, source: str | None
    ) -> ExchangeResult:
        while True:
            connection = self._connections.take(exchange.backend, source)
            try:
                remaining = exchange.deadline - self._clock()
                if remaining <= 0:
                    if connection is not None:
                        connection.close()
                    return RESULT_TIMEOUT
                if connection is None:
                    connection = TcpConnection(exchange.backend, source, remaining)
                    remaining = max(0.001, exchange.deadline - self._clock())
                reply = self._converse(connection, exchange, message, query_id, remaining)
            except TimeoutError:
                if connection is not None:
                    connection.close()
                return RESULT_TIMEOUT
            except OSError as error:
                if connection is not None:
                    connection.close()
                    if connection.reused:
                        # the backend closed an idle connection: not a failure of this query
                        continue
                _log.debug("forward over TCP failed", backend=exchange.backend.label, error=error)
                return RESULT_TCP_ERROR
            if connection.clean:
                self._connections.give(exchange.backend, source, connection)
            else:
                connection.close()
            return ExchangeResult(reply)

    def _converse(
        self,
        connection: TcpConnection,
        exchange: Exchange,
        message: bytes,
        query_id: int,
        remaining: float,
    ) -> bytes:
        connection.send(message, remaining)
        while True:
            reply = connection.receive(exchange.deadline, self._clock)
            if reply_matches(reply, query_id, exchange.question):
                return reply
            _log.debug("reply over TCP ignored", backend=exchange.backend.label)
