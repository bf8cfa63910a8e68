"""TLS to the control plane by Python's `ssl`, as a private socket that gRPC connects to.

gRPC itself can neither skip verification nor use the trust store of the system, and its messages
about handshakes say little. One connection is made and checked first; then its octets are passed
on to and from a socket in a folder that only this user can enter.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import socket
import ssl
import tempfile
import threading
from collections.abc import Callable
from typing import Final

from conduit.cli.ctl.errors import CtlError
from conduit.cli.ctl.settings import Settings, Target

_CHUNK: Final = 64 * 1024


def client_context(settings: Settings) -> ssl.SSLContext:
    """Return what TLS is checked with; raises CtlError for files that cannot be used."""
    if bool(settings.tls_cert) != bool(settings.tls_key):
        raise CtlError("client TLS identity requires both cert and key (--tls-cert and --tls-key)")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if settings.tls_insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif settings.tls_ca:
        _use(settings.tls_ca, lambda: context.load_verify_locations(settings.tls_ca), "TLS CA")
    else:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    if settings.tls_cert and settings.tls_key:
        cert, key = settings.tls_cert, settings.tls_key
        # no prompt on the terminal for a key with a passphrase
        _use(
            f"{cert}, {key}",
            lambda: context.load_cert_chain(cert, key, password=""),
            "TLS identity",
        )
    context.set_alpn_protocols(["h2"])
    return context


def _use(path: str, load: Callable[[], object], what: str) -> None:
    try:
        load()
    except (OSError, ssl.SSLError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise CtlError(f"reading {what} ({path}): {reason}") from error


class TlsTunnel:
    """One verified TLS connection to `target`, reached at the socket `address`."""

    def __init__(self, target: Target, context: ssl.SSLContext) -> None:
        """Raises OSError (also ssl.SSLError) when the connection or its checks fail."""
        raw = socket.create_connection((target.host, target.port))
        try:
            self._outer = context.wrap_socket(raw, server_hostname=target.host)
        except BaseException:
            raw.close()
            raise
        self._folder = tempfile.mkdtemp(prefix="conduitctl-")
        path = os.path.join(self._folder, "control.sock")
        self.address = f"unix:{path}"
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(path)
        self._listener.listen(1)
        self._inner: socket.socket | None = None
        self._thread = threading.Thread(target=self._serve, name="conduitctl-tls", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        try:
            self._inner, _ = self._listener.accept()
        except OSError:
            return
        # the connection is used once: a second one would start in the middle of a session
        self._listener.close()
        self._outer.setblocking(False)
        try:
            _relay(self._inner, self._outer)
        except OSError:
            pass
        finally:
            for end in (self._inner, self._outer):
                with contextlib.suppress(OSError):
                    end.close()

    def close(self) -> None:
        """Close both ends and remove the folder."""
        ends = [end for end in (self._inner, self._outer, self._listener) if end is not None]
        for end in ends:
            # wakes the thread up, which still uses the sockets
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        self._thread.join(1.0)
        for end in ends:
            with contextlib.suppress(OSError):
                end.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def _relay(inner: socket.socket, outer: ssl.SSLSocket) -> None:
    """Pass octets both ways until one side ends; raises OSError when it ends badly."""
    inner.setblocking(False)
    to_outer, to_inner = b"", b""
    while True:
        # one buffer a way: a side is read only when what it sent last has gone on
        readable: list[socket.socket] = []
        if not to_inner:
            readable.append(outer)
        if not to_outer:
            readable.append(inner)
        writable: list[socket.socket] = []
        if to_outer:
            writable.append(outer)
        if to_inner:
            writable.append(inner)
        # decrypted octets may wait inside the TLS object, where select does not see them
        waiting = not to_inner and outer.pending() > 0
        ready, _, _ = select.select(readable, writable, [], 0 if waiting else None)
        if outer in ready or waiting:
            with contextlib.suppress(ssl.SSLWantReadError, ssl.SSLWantWriteError):
                to_inner = outer.recv(_CHUNK)
                if not to_inner:
                    return
        if inner in ready:
            to_outer = inner.recv(_CHUNK)
            if not to_outer:
                return
        if to_outer:
            with contextlib.suppress(ssl.SSLWantReadError, ssl.SSLWantWriteError):
                to_outer = to_outer[outer.send(to_outer) :]
        if to_inner:
            with contextlib.suppress(BlockingIOError):
                to_inner = to_inner[inner.send(to_inner) :]
