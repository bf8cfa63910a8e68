"""`health`: what probes see, and operator controls (chapter 60 sections 7, 9.5 and 13)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from conduit.cli.ctl import context
from conduit.cli.ctl.commands import Command, exclusive, group
from conduit.cli.ctl.errors import CtlError
from conduit.cli.ctl.output import optional, show
from conduit.cli.ctl.rust_text import switch

F = TypeVar("F", bound=Callable[..., Any])

health = group("health", "Backend health and operator controls.")

_LIVENESS = {1: "unknown", 2: "up", 3: "down"}
_SCOPES = {1: "inherit", 2: "frozen", 3: "automatic"}


@health.command("show", cls=Command)
@click.option("--pool", metavar="NAME", help="backends of this pool")
@click.option("--backend", metavar="NAME", help="one backend, by name (with --pool) or address")
def show_health(pool: str | None, backend: str | None) -> None:
    """List backends with their observed and applied health."""
    from conduit.v1 import health_pb2 as pb
    from conduit.v1.health_pb2_grpc import BackendHealthStub

    request = pb.GetBackendHealthRequest()
    if pool is not None or backend is not None:
        request.filter.CopyFrom(pb.BackendHealthFilter(pool=pool, backend=backend))
    with context.connection() as connection:
        response = connection.call(BackendHealthStub, "GetBackendHealth", request)
    show(map(_line, response.entries), list(map(_data, response.entries)))


def _data(entry: Any) -> dict[str, Any]:
    return {
        "pool": entry.pool,
        "backend": entry.backend,
        "observed": _LIVENESS.get(entry.observed, "?"),
        "applied": _LIVENESS.get(entry.applied, "?"),
        "scope": _SCOPES.get(entry.scope_state, "?"),
        "eligible": entry.eligible,
        "ewma_ms": optional(entry, "latency_ewma_ms"),
        "last_transition_ms": optional(entry, "last_transition_unix_ms"),
    }


def _line(entry: Any) -> str:
    data = _data(entry)
    ewma, last = data["ewma_ms"], data["last_transition_ms"]
    return (
        f"{data['pool']} {data['backend']} observed={data['observed']} applied={data['applied']} "
        f"scope={data['scope']} eligible={switch(data['eligible'])} "
        f"ewma_ms={'-' if ewma is None else f'{ewma:.1f}'} "
        f"last_transition_ms={'-' if last is None else last}"
    )


def _scoped(function: F) -> F:
    for option in (
        click.option("--backend", metavar="NAME", help="one backend of --pool"),
        click.option("--pool", metavar="NAME", help="the backends of this pool"),
        click.option("--global", "everywhere", is_flag=True, help="every backend"),
    ):
        function = option(function)
    return function


@health.command("freeze", cls=Command)
@_scoped
@click.pass_context
def freeze(ctx: click.Context, everywhere: bool, pool: str | None, backend: str | None) -> None:
    """Keep the applied health as it is, whatever probes see."""
    _control(ctx, "FREEZE", everywhere, pool, backend)


@health.command("resume", cls=Command)
@_scoped
@click.pass_context
def resume(ctx: click.Context, everywhere: bool, pool: str | None, backend: str | None) -> None:
    """Let probes decide again."""
    _control(ctx, "RESUME_AUTOMATIC", everywhere, pool, backend)


@health.command("set", cls=Command)
@click.argument("state")
@_scoped
@click.pass_context
def set_health(
    ctx: click.Context, state: str, everywhere: bool, pool: str | None, backend: str | None
) -> None:
    """Hold backends `up` or `down` until `resume`."""
    _check_scope(ctx, everywhere, pool, backend)
    if state.lower() not in ("up", "down"):
        raise CtlError(f'state must be up or down, got "{state}"')
    _control(ctx, f"SET_{state.upper()}", everywhere, pool, backend)


def _check_scope(
    ctx: click.Context, everywhere: bool, pool: str | None, backend: str | None
) -> None:
    exclusive(ctx, **{"global": everywhere, "pool": pool})
    exclusive(ctx, **{"global": everywhere, "backend": backend})


def _control(
    ctx: click.Context, action: str, everywhere: bool, pool: str | None, backend: str | None
) -> None:
    _check_scope(ctx, everywhere, pool, backend)
    from conduit.v1 import health_pb2 as pb
    from conduit.v1.health_pb2_grpc import BackendHealthStub

    with context.connection() as connection:
        if not everywhere and pool is None:
            raise CtlError("scope required: --global, or --pool with or without --backend")
        if everywhere:
            level = pb.HEALTH_SCOPE_LEVEL_GLOBAL
        elif backend is None:
            level = pb.HEALTH_SCOPE_LEVEL_POOL
        else:
            level = pb.HEALTH_SCOPE_LEVEL_BACKEND
        request = pb.SetHealthControlRequest(
            scope=pb.HealthScope(level=level, pool=pool, backend=backend),
            action=f"HEALTH_CONTROL_ACTION_{action}",
        )
        response = connection.call(BackendHealthStub, "SetHealthControl", request)
    data = [_result(result) for result in response.results]
    show(
        (f"{d['pool']} {d['backend']} applied={d['applied']} scope={d['scope']}" for d in data),
        data,
    )


def _result(result: Any) -> dict[str, str]:
    return {
        "pool": optional(result, "pool") or "-",
        "backend": optional(result, "backend") or "-",
        "applied": _LIVENESS.get(result.applied, "?"),
        "scope": _SCOPES.get(result.scope_state, "?"),
    }
