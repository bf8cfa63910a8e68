"""The scrape listener: plain HTTP/1.1, GET on one path (chapter 50 section 2.9)."""

from __future__ import annotations

import http.server
import socket
import threading
from collections.abc import Callable
from http import HTTPStatus
from typing import Final

from conduit.config.address import parse_socket_address
from conduit.observe.logging import get_log

_log = get_log("conduit_metrics")

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_MAX_CONNECTIONS: Final = 32
_CONNECTION_SECONDS: Final = 30.0


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = _CONNECTION_SECONDS
    server: _Server

    def do_GET(self) -> None:
        if self.path.partition("?")[0] != self.server.scrape_path:
            self._answer(HTTPStatus.NOT_FOUND)
            return
        try:
            page = self.server.page()
        except Exception:
            _log.exception("metrics page failed")
            self._answer(HTTPStatus.INTERNAL_SERVER_ERROR)
            return
        self._answer(HTTPStatus.OK, page)

    def _refuse(self) -> None:
        # a body that we do not read would be taken for the next request
        self.close_connection = True
        self._answer(HTTPStatus.METHOD_NOT_ALLOWED)

    do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_TRACE = _refuse

    def _answer(self, status: HTTPStatus, body: bytes = b"") -> None:
        self.send_response(status)
        if status == HTTPStatus.OK:
            self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """No access log (chapter 50 section 2.9)."""

    def version_string(self) -> str:
        return "conduit"


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, address: str, path: str, page: Callable[[], bytes]) -> None:
        parsed = parse_socket_address(address)
        self.address_family = parsed.family
        self.scrape_path = path
        self.page = page
        self._slots = threading.BoundedSemaphore(_MAX_CONNECTIONS)
        super().__init__(parsed.sockaddr, _Handler)

    def server_bind(self) -> None:
        # HTTPServer.server_bind looks its own name up, which may wait for a resolver
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_name, self.server_port = "conduit", self.socket.getsockname()[1]

    def process_request(self, request: object, client_address: object) -> None:
        if not self._slots.acquire(blocking=False):
            self.shutdown_request(request)  # type: ignore[arg-type]
            return
        super().process_request(request, client_address)  # type: ignore[arg-type]

    def process_request_thread(self, request: object, client_address: object) -> None:
        try:
            super().process_request_thread(request, client_address)  # type: ignore[arg-type]
        finally:
            self._slots.release()

    def handle_error(self, request: object, client_address: object) -> None:
        """A scraper that goes away is no event."""


class PrometheusServer:
    """One bound scrape listener; `start` serves it, `close` ends it."""

    def __init__(self, address: str, path: str, page: Callable[[], bytes]) -> None:
        """Bind `address` (`ip:port`); raises OSError or ValueError when that fails."""
        self.address = address
        self.path = path or "/metrics"
        self._server = _Server(address, self.path, page)
        self._thread = threading.Thread(
            target=self._server.serve_forever,
            kwargs={"poll_interval": 0.5},
            name="conduit-metrics",
            daemon=True,
        )

    @property
    def port(self) -> int:
        """The bound port."""
        return self._server.server_port

    def set_path(self, path: str) -> None:
        """Serve `path` from the next request on."""
        self.path = self._server.scrape_path = path or "/metrics"

    def start(self) -> None:
        """Serve in a thread of its own."""
        self._thread.start()

    def close(self) -> None:
        """Stop serving and close the socket."""
        if self._thread.is_alive():
            self._server.shutdown()
        self._server.server_close()
