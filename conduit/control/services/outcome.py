"""What every changing call shares: making the change, the log line, the response."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import grpc

from conduit.control.configurator import ChangeResult, Configurator
from conduit.control.primitives import InvalidChange, Primitive
from conduit.observe.logging import get_log
from conduit.v1 import control_pb2 as pb

_log = get_log("conduit_control")


def refuse(context: grpc.ServicerContext, code: grpc.StatusCode, message: str) -> NoReturn:
    """End the call with a status."""
    context.abort(code, message)
    raise AssertionError("abort raises")


def log_outcome(rpc: str, errors: tuple[str, ...]) -> None:
    """Write the line about a verdict (chapter 60 section 4)."""
    _log.info(
        "control rpc outcome",
        rpc=rpc,
        outcome="rejected" if errors else "ok",
        error_count=len(errors),
        errors="; ".join(errors),
    )


def response(result: ChangeResult) -> pb.ApplyConfigResponse:
    """Return a result as a message."""
    return pb.ApplyConfigResponse(ok=result.ok, errors=result.errors, generation=result.generation)


class ChangingService:
    """Base of the services that make typed changes."""

    def __init__(self, configurator: Configurator) -> None:
        self.configurator = configurator

    def change(
        self, context: grpc.ServicerContext, rpc: str, make: Callable[[], Primitive]
    ) -> pb.ApplyConfigResponse:
        """Make the change that `make` returns; an incomplete request is INVALID_ARGUMENT."""
        try:
            primitive = make()
        except InvalidChange as error:
            refuse(context, grpc.StatusCode.INVALID_ARGUMENT, str(error))
        result = self.configurator.change(primitive)
        log_outcome(rpc, result.errors)
        return response(result)


def optional(message: Any, field: str) -> Any:
    """Return a field with presence, or None when it is absent."""
    return getattr(message, field) if message.HasField(field) else None
