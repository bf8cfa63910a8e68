"""`cache`: cache instances and what of them changes while they serve."""

from __future__ import annotations

import click

from conduit.cli.ctl import context
from conduit.cli.ctl.commands import BOOL, U32, U64, Command, group
from conduit.cli.ctl.limits_commands import at_least_one
from conduit.cli.ctl.output import optional, show, show_change
from conduit.cli.ctl.rust_text import option

cache = group("cache", "Answer caches.")


@cache.command("list", cls=Command)
def list_caches() -> None:
    """List the cache instances."""
    from conduit.v1 import caches_pb2 as pb
    from conduit.v1.caches_pb2_grpc import ConduitCachesStub

    with context.connection() as connection:
        caches = connection.call(ConduitCachesStub, "ListCaches", pb.ListCachesRequest()).caches
    data = [
        {"name": c.name, "type": c.type, "max_entries": optional(c, "max_entries")} for c in caches
    ]
    show(
        (
            f"{c['name']} type={c['type']} "
            f"max_entries={'-' if c['max_entries'] is None else c['max_entries']}"
            for c in data
        ),
        data,
    )


@cache.command("get", cls=Command)
@click.argument("name")
def get_cache(name: str) -> None:
    """Show one cache instance."""
    from conduit.control.messages import tree_of
    from conduit.v1 import caches_pb2 as pb
    from conduit.v1.caches_pb2_grpc import ConduitCachesStub

    with context.connection() as connection:
        request = pb.GetCacheRequest(name=name)
        found = connection.call(ConduitCachesStub, "GetCache", request).cache
    entries = option(optional(found, "max_entries"))
    show([f"name={found.name}", f"type={found.type}", f"max_entries={entries}"], tree_of(found))


@cache.command("set-max-entries", cls=Command)
@click.option("--name", required=True, metavar="NAME")
@click.option("--max-entries", required=True, type=U64, help="0 is no cap")
def set_max_entries(name: str, max_entries: int) -> None:
    """Change the cap of a cache; a lower one evicts at once."""
    from conduit.v1 import caches_pb2 as pb
    from conduit.v1.caches_pb2_grpc import ConduitCachesStub

    with context.connection() as connection:
        request = pb.SetCacheMaxEntriesRequest(name=name, max_entries=max_entries)
        response = connection.call(ConduitCachesStub, "SetCacheMaxEntries", request)
    show_change(response, "set-max-entries")


@cache.command("set-lmdb-hot", cls=Command)
@click.option("--name", required=True, metavar="NAME")
@click.option("--when-full", metavar="POLICY", help="refuse, evict_one or sample")
@click.option("--sample-size", type=U32)
@click.option("--sync", metavar="MODE", help="full, no_meta, periodic or none")
@click.option("--sync-interval", metavar="DURATION", help="for --sync periodic, as 250ms or 1s")
@click.option("--map-size-bytes", type=U64)
def set_lmdb_hot(
    name: str,
    when_full: str | None,
    sample_size: int | None,
    sync: str | None,
    sync_interval: str | None,
    map_size_bytes: int | None,
) -> None:
    """Change settings of an LMDB store while it serves."""
    at_least_one(
        when_full=when_full,
        sample_size=sample_size,
        sync=sync,
        sync_interval=sync_interval,
        map_size_bytes=map_size_bytes,
    )
    from conduit.v1 import caches_pb2 as pb
    from conduit.v1.caches_pb2_grpc import ConduitCachesStub

    request = pb.SetCacheLmdbHotRequest(
        name=name,
        when_full=when_full,
        sample_size=sample_size,
        sync=sync,
        sync_interval=sync_interval,
        map_size_bytes=map_size_bytes,
    )
    with context.connection() as connection:
        response = connection.call(ConduitCachesStub, "SetCacheLmdbHot", request)
    show_change(response, "set-lmdb-hot")


@cache.command("set-policy-hot", cls=Command)
@click.option("--name", required=True, metavar="NAME")
@click.option("--rotate-rrset-on-serve", "rotate", type=BOOL)
def set_policy_hot(name: str, rotate: str | None) -> None:
    """Change how a cache serves."""
    at_least_one(rotate_rrset_on_serve=rotate)
    from conduit.v1 import caches_pb2 as pb
    from conduit.v1.caches_pb2_grpc import ConduitCachesStub

    request = pb.SetCachePolicyHotRequest(name=name, rotate_rrset_on_serve=rotate == "true")
    with context.connection() as connection:
        response = connection.call(ConduitCachesStub, "SetCachePolicyHot", request)
    show_change(response, "set-policy-hot")
