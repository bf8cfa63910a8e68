"""The connection to the control plane: channel, credentials, errors (chapter 60 section 9.3)."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Final

import grpc

from conduit.cli.ctl.errors import CtlError
from conduit.cli.ctl.settings import Settings

_OPTIONS: Final = (
    # a proxy of the environment is for the web, not for a control plane
    ("grpc.enable_http_proxy", 0),
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
)


class Connection:
    """An open connection; `call` makes one unary call. Use it in a `with` statement."""

    def __init__(self, settings: Settings) -> None:
        """Connect; raises CtlError when the control plane cannot be reached."""
        self._metadata = _credentials(settings)
        self._close: list[Callable[[], object]] = []
        target = settings.target
        options: tuple[tuple[str, Any], ...] = _OPTIONS
        try:
            if target.tls:
                from conduit.cli.ctl.tls_tunnel import TlsTunnel, client_context

                tunnel = TlsTunnel(target, client_context(settings))
                self._close.append(tunnel.close)
                address = tunnel.address
                options = (*options, ("grpc.default_authority", target.authority))
            else:
                # the reason of a failure is plain here, and gRPC would try again for seconds
                socket.create_connection((target.host, target.port)).close()
                address = target.authority
        except OSError as error:
            raise CtlError(
                f"connect to control plane {settings.endpoint}: {_reason(error)}"
            ) from error
        self._endpoint = settings.endpoint
        self._channel = grpc.insecure_channel(address, options=options)
        self._close.insert(0, self._channel.close)

    def call(self, stub: Callable[[grpc.Channel], Any], method: str, request: Any) -> Any:
        """Return the response to `request` of `method` of the service whose stub class is `stub`.

        Raises CtlError with the status and the message of a call that fails.
        """
        try:
            return getattr(stub(self._channel), method)(request, metadata=self._metadata)
        except grpc.RpcError as error:
            raise CtlError(self._text(error)) from error

    def _text(self, error: grpc.RpcError) -> str:
        code, details = error.code(), error.details() or ""
        name = "".join(part.capitalize() for part in code.name.split("_"))
        text = f"{details} ({name})" if details else name
        if code is grpc.StatusCode.UNAVAILABLE:
            return f"connect to control plane {self._endpoint}: {text}"
        return text

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for close in self._close:
            close()


@contextmanager
def connect(settings: Settings) -> Iterator[Connection]:
    """Open a connection for the length of a `with` block; raises CtlError."""
    with Connection(settings) as connection:
        yield connection


def _reason(error: OSError) -> str:
    verdict = getattr(error, "verify_message", None)
    if verdict:
        return f"the server's certificate is not trusted: {verdict}"
    return error.strerror or str(error)


def _credentials(settings: Settings) -> tuple[tuple[str, str], ...]:
    if settings.api_key is None:
        return ()
    if not (settings.api_key.isascii() and settings.api_key.isprintable()):
        raise CtlError("the API key holds characters that are not visible ASCII")
    return (("authorization", f"Bearer {settings.api_key}"),)
