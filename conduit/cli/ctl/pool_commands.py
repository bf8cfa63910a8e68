"""`pool` and `backend`: pools as they are in force, weights and removals."""

from __future__ import annotations

from typing import Any

import click

from conduit.cli.ctl import context
from conduit.cli.ctl.commands import U32, Command, group
from conduit.cli.ctl.output import optional, show, show_change

pool = group("pool", "Upstream pools.")
backend = group("backend", "Backends of a pool.")


@pool.command("list", cls=Command)
def list_pools() -> None:
    """List the pools in the order of the configuration."""
    from conduit.v1 import pools_pb2 as pb
    from conduit.v1.pools_pb2_grpc import ConduitPoolsStub

    with context.connection() as connection:
        pools = connection.call(ConduitPoolsStub, "ListPools", pb.ListPoolsRequest()).pools
    show(
        (f"{p.name} backends={p.backend_count}" for p in pools),
        [{"name": p.name, "backends": p.backend_count} for p in pools],
    )


@pool.command("get", cls=Command)
@click.argument("name")
def get_pool(name: str) -> None:
    """Show one pool with its backends."""
    from conduit.v1 import pools_pb2 as pb
    from conduit.v1.pools_pb2_grpc import ConduitPoolsStub

    with context.connection() as connection:
        request = pb.GetPoolRequest(name=name)
        found = connection.call(ConduitPoolsStub, "GetPool", request).pool
    from conduit.control.messages import tree_of

    show([f"pool {found.name}", *map(_backend_line, found.backends)], tree_of(found))


def _backend_line(entry: Any) -> str:
    weight = optional(entry, "weight")
    return (
        f"  backend name={optional(entry, 'name') or '-'} address={entry.address} "
        f"weight={'-' if weight is None else weight}"
    )


@backend.command("set-weight", cls=Command)
@click.option("--pool", "pool_name", required=True, metavar="NAME")
@click.option("--backend", "name", required=True, metavar="NAME", help="name or address")
@click.option("--weight", required=True, type=U32, help="share of the pool's load, from 1")
def set_weight(pool_name: str, name: str, weight: int) -> None:
    """Change the weight of a backend."""
    from conduit.v1 import pools_pb2 as pb
    from conduit.v1.pools_pb2_grpc import ConduitPoolsStub

    request = pb.SetBackendWeightRequest(pool=pool_name, backend=name, weight=weight)
    with context.connection() as connection:
        response = connection.call(ConduitPoolsStub, "SetBackendWeight", request)
    show_change(response, "set-weight")


@backend.command("remove", cls=Command)
@click.option("--pool", "pool_name", required=True, metavar="NAME")
@click.option("--backend", "name", required=True, metavar="NAME", help="name or address")
def remove(pool_name: str, name: str) -> None:
    """Remove a backend from its pool."""
    from conduit.v1 import pools_pb2 as pb
    from conduit.v1.pools_pb2_grpc import ConduitPoolsStub

    request = pb.RemoveBackendRequest(pool=pool_name, backend=name)
    with context.connection() as connection:
        response = connection.call(ConduitPoolsStub, "RemoveBackend", request)
    show_change(response, "remove")
