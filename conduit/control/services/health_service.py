"""`BackendHealth`: what probes see, and operator controls (chapter 60 section 7)."""

from __future__ import annotations

from typing import Final

import grpc

from conduit.config.address import parse_socket_address
from conduit.control.services.outcome import optional, refuse
from conduit.upstream.health.registry import HealthRegistry
from conduit.upstream.health.scopes import ControlAction, Scope, ScopeError, ScopeLevel
from conduit.upstream.health.state import BackendHealth, Liveness
from conduit.v1 import health_pb2 as pb
from conduit.v1 import health_pb2_grpc

_LIVENESS: Final = {
    Liveness.UNKNOWN: pb.HEALTH_LIVENESS_UNKNOWN,
    Liveness.UP: pb.HEALTH_LIVENESS_UP,
    Liveness.DOWN: pb.HEALTH_LIVENESS_DOWN,
}
_ACTIONS: Final = {
    pb.HEALTH_CONTROL_ACTION_FREEZE: ControlAction.FREEZE,
    pb.HEALTH_CONTROL_ACTION_SET_UP: ControlAction.SET_UP,
    pb.HEALTH_CONTROL_ACTION_SET_DOWN: ControlAction.SET_DOWN,
    pb.HEALTH_CONTROL_ACTION_RESUME_AUTOMATIC: ControlAction.RESUME_AUTOMATIC,
}
_LEVELS: Final = {
    pb.HEALTH_SCOPE_LEVEL_BACKEND: ScopeLevel.BACKEND,
    pb.HEALTH_SCOPE_LEVEL_POOL: ScopeLevel.POOL,
    pb.HEALTH_SCOPE_LEVEL_GLOBAL: ScopeLevel.GLOBAL,
}
_INVALID: Final = grpc.StatusCode.INVALID_ARGUMENT


class HealthService(health_pb2_grpc.BackendHealthServicer):
    """The service `BackendHealth`."""

    def __init__(self, health: HealthRegistry) -> None:
        self._health = health

    def GetBackendHealth(
        self, request: pb.GetBackendHealthRequest, context: grpc.ServicerContext
    ) -> pb.GetBackendHealthResponse:
        entries = self._health.entries()
        if entries and request.HasField("filter"):
            entries = self._filtered(entries, request.filter, context)
        return pb.GetBackendHealthResponse(entries=[_entry(entry) for entry in entries])

    def _filtered(
        self,
        entries: list[BackendHealth],
        wanted: pb.BackendHealthFilter,
        context: grpc.ServicerContext,
    ) -> list[BackendHealth]:
        pool, backend = optional(wanted, "pool") or "", optional(wanted, "backend") or ""
        if not backend:
            return [e for e in entries if not pool or e.backend.pool == pool]
        if pool:
            found = self._health.find(pool, backend) or self._health.find(pool, _canonical(backend))
            if found is None:
                refuse(context, _INVALID, f'unknown backend "{backend}" in pool "{pool}"')
            return [found]
        try:
            address = str(parse_socket_address(backend))
        except ValueError:
            refuse(context, _INVALID, "pool required when filtering by backend name")
        return [e for e in entries if e.backend.key == address]

    def SetHealthControl(
        self, request: pb.SetHealthControlRequest, context: grpc.ServicerContext
    ) -> pb.SetHealthControlResponse:
        action = _ACTIONS.get(request.action)
        if action is None:
            unspecified = request.action == pb.HEALTH_CONTROL_ACTION_UNSPECIFIED
            refuse(context, _INVALID, "action required" if unspecified else "invalid action")
        if not self._health.entries():
            refuse(context, grpc.StatusCode.FAILED_PRECONDITION, "health checking not configured")
        if not request.HasField("scope"):
            refuse(context, _INVALID, "scope required")
        level = _LEVELS.get(request.scope.level)
        if level is None:
            unspecified = request.scope.level == pb.HEALTH_SCOPE_LEVEL_UNSPECIFIED
            message = "scope level required" if unspecified else "invalid scope level"
            refuse(context, _INVALID, message)
        scope = Scope(
            level,
            optional(request.scope, "pool"),
            _canonical(request.scope.backend) if request.scope.backend else None,
        )
        try:
            affected = self._health.control(action, scope)
        except ScopeError as error:
            refuse(context, _INVALID, str(error))
        return pb.SetHealthControlResponse(results=[_result(entry) for entry in affected])


def _canonical(backend: str) -> str:
    """Return an address in the spelling of the registry; a name stays as it is."""
    try:
        return str(parse_socket_address(backend))
    except ValueError:
        return backend


def _scope_state(entry: BackendHealth) -> pb.HealthScopeState:
    if entry.frozen:
        return pb.HEALTH_SCOPE_STATE_FROZEN
    return pb.HEALTH_SCOPE_STATE_AUTOMATIC


def _entry(entry: BackendHealth) -> pb.BackendHealthEntry:
    last = entry.last_transition
    return pb.BackendHealthEntry(
        pool=entry.backend.pool,
        backend=entry.backend.key,
        observed=_LIVENESS[entry.observed],
        applied=_LIVENESS[entry.applied],
        scope_state=_scope_state(entry),
        eligible=entry.applied is Liveness.UP,
        latency_ewma_ms=entry.ewma_ms,
        last_transition_unix_ms=None if last is None else int(last * 1000),
    )


def _result(entry: BackendHealth) -> pb.SetHealthControlResult:
    pool, backend = entry.backend.pool, entry.backend.key
    return pb.SetHealthControlResult(
        scope=pb.HealthScope(level=pb.HEALTH_SCOPE_LEVEL_BACKEND, pool=pool, backend=backend),
        scope_state=_scope_state(entry),
        pool=pool,
        backend=backend,
        applied=_LIVENESS[entry.applied],
    )
