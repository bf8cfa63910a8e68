"""`orchestrator` and `rhai`: limits of transactions and of scripts."""

from __future__ import annotations

import click

from conduit.cli.ctl import context
from conduit.cli.ctl.commands import U32, U64, Command, group
from conduit.cli.ctl.errors import CtlError
from conduit.cli.ctl.output import show, show_change

orchestrator = group("orchestrator", "Limits of transactions.")
rhai = group("rhai", "Limits of scripts.")


def at_least_one(**options: object) -> None:
    """Raise CtlError when none of the options is given."""
    if all(value is None for value in options.values()):
        names = ", ".join(f"--{name.replace('_', '-')}" for name in options)
        raise CtlError(f"at least one of {names} is required")


@orchestrator.command("get", cls=Command)
def get_orchestrator() -> None:
    """Show the limits in force."""
    from conduit.v1 import orchestrator_pb2 as pb
    from conduit.v1.orchestrator_pb2_grpc import ConduitOrchestratorStub

    with context.connection() as connection:
        request = pb.GetOrchestratorRequest()
        response = connection.call(ConduitOrchestratorStub, "GetOrchestrator", request)
    if not response.HasField("orchestrator"):
        show(["(no orchestrator config)"], None)
        return
    block = response.orchestrator
    data = {
        "max_attempts": block.max_attempts,
        "max_txn_duration_ms": block.max_txn_duration_ms,
        "txn_table_capacity": block.txn_table_capacity,
    }
    show([" ".join(f"{key}={value}" for key, value in data.items())], data)


@orchestrator.command("set-limits", cls=Command)
@click.option("--max-attempts", type=U32, help="forward attempts a transaction")
@click.option("--max-txn-duration-ms", type=U32, help="milliseconds a transaction may take")
def set_orchestrator(max_attempts: int | None, max_txn_duration_ms: int | None) -> None:
    """Change the limits that are given."""
    at_least_one(max_attempts=max_attempts, max_txn_duration_ms=max_txn_duration_ms)
    from conduit.v1 import orchestrator_pb2 as pb
    from conduit.v1.orchestrator_pb2_grpc import ConduitOrchestratorStub

    request = pb.SetOrchestratorLimitsRequest(
        max_attempts=max_attempts, max_txn_duration_ms=max_txn_duration_ms
    )
    with context.connection() as connection:
        response = connection.call(ConduitOrchestratorStub, "SetOrchestratorLimits", request)
    show_change(response, "set-limits")


@rhai.command("get", cls=Command)
def get_rhai() -> None:
    """Show the limits in force."""
    from conduit.v1 import rhai_pb2 as pb
    from conduit.v1.rhai_pb2_grpc import ConduitRhaiStub

    with context.connection() as connection:
        block = connection.call(ConduitRhaiStub, "GetRhai", pb.GetRhaiRequest()).rhai
    data = {
        "max_operations": block.max_operations,
        "max_call_depth": block.max_call_depth,
        "hook_timeout_ms": block.hook_timeout_ms,
    }
    show([" ".join(f"{key}={value}" for key, value in data.items())], data)


@rhai.command("set-limits", cls=Command)
@click.option("--max-operations", type=U64, help="operations one run may take")
@click.option("--max-call-depth", type=U32, help="depth of calls")
@click.option("--hook-timeout-ms", type=U32, help="milliseconds one run may take")
def set_rhai(
    max_operations: int | None, max_call_depth: int | None, hook_timeout_ms: int | None
) -> None:
    """Change the limits that are given."""
    at_least_one(
        max_operations=max_operations,
        max_call_depth=max_call_depth,
        hook_timeout_ms=hook_timeout_ms,
    )
    from conduit.v1 import rhai_pb2 as pb
    from conduit.v1.rhai_pb2_grpc import ConduitRhaiStub

    request = pb.SetRhaiLimitsRequest(
        max_operations=max_operations,
        max_call_depth=max_call_depth,
        hook_timeout_ms=hook_timeout_ms,
    )
    with context.connection() as connection:
        response = connection.call(ConduitRhaiStub, "SetRhaiLimits", request)
    show_change(response, "set-limits")
