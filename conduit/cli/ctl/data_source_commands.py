"""`data-source` and `data-source-limits`: lookup tables and what they may take."""

from __future__ import annotations

from typing import Final

import click

from conduit.cli.ctl import context
from conduit.cli.ctl.commands import U32, U64, Command, group
from conduit.cli.ctl.output import show, show_change

data_source = group("data-source", "Lookup tables.")
data_source_limits = group("data-source-limits", "Limits of lookup tables.")

_LIMITS: Final = (
    "max_file_bytes",
    "max_entries",
    "max_key_bytes",
    "max_value_bytes",
    "max_tables",
    "max_total_bytes",
)


@data_source.command("list", cls=Command)
def list_sources() -> None:
    """List the data sources."""
    from conduit.v1 import data_sources_pb2 as pb
    from conduit.v1.data_sources_pb2_grpc import ConduitDataSourcesStub

    with context.connection() as connection:
        request = pb.ListDataSourcesRequest()
        sources = connection.call(ConduitDataSourcesStub, "ListDataSources", request).sources
    show(
        (f"{s.name} type={s.type} path={s.path}" for s in sources),
        [{"name": s.name, "type": s.type, "path": s.path} for s in sources],
    )


@data_source.command("get", cls=Command)
@click.argument("name")
def get_source(name: str) -> None:
    """Show one data source."""
    from conduit.control.messages import tree_of
    from conduit.v1 import data_sources_pb2 as pb
    from conduit.v1.data_sources_pb2_grpc import ConduitDataSourcesStub

    with context.connection() as connection:
        request = pb.GetDataSourceRequest(name=name)
        source = connection.call(ConduitDataSourcesStub, "GetDataSource", request).source
    keys = ("name", "type", "path", "key_column", "value_column")
    show((f"{key}={getattr(source, key)}" for key in keys), tree_of(source))


@data_source.command("upsert", cls=Command)
@click.option("--name", required=True, metavar="NAME")
@click.option("--type", "kind", required=True, metavar="TYPE", help="csv or cidr")
@click.option("--path", required=True, metavar="PATH", help="as the service sees it")
@click.option("--key-column", default="", metavar="NAME")
@click.option("--value-column", default="", metavar="NAME")
def upsert(name: str, kind: str, path: str, key_column: str, value_column: str) -> None:
    """Add a data source or replace the whole entry, its own limits included."""
    from conduit.v1 import config_pb2
    from conduit.v1 import data_sources_pb2 as pb
    from conduit.v1.data_sources_pb2_grpc import ConduitDataSourcesStub

    source = config_pb2.DataSource(
        name=name, type=kind, path=path, key_column=key_column, value_column=value_column
    )
    with context.connection() as connection:
        request = pb.UpsertDataSourceRequest(source=source)
        response = connection.call(ConduitDataSourcesStub, "UpsertDataSource", request)
    show_change(response, "upsert")


@data_source.command("remove", cls=Command)
@click.argument("name")
def remove(name: str) -> None:
    """Remove a data source."""
    from conduit.v1 import data_sources_pb2 as pb
    from conduit.v1.data_sources_pb2_grpc import ConduitDataSourcesStub

    with context.connection() as connection:
        request = pb.RemoveDataSourceRequest(name=name)
        response = connection.call(ConduitDataSourcesStub, "RemoveDataSource", request)
    show_change(response, "remove")


@data_source_limits.command("get", cls=Command)
def get_limits() -> None:
    """Show the limits; 0 is the built-in one."""
    from conduit.v1 import data_sources_pb2 as pb
    from conduit.v1.data_sources_pb2_grpc import ConduitDataSourcesStub

    with context.connection() as connection:
        request = pb.GetDataSourceLimitsRequest()
        limits = connection.call(ConduitDataSourcesStub, "GetDataSourceLimits", request).limits
    data = {key: getattr(limits, key) for key in _LIMITS}
    show([" ".join(f"{key}={value}" for key, value in data.items())], data)


@data_source_limits.command("set", cls=Command)
@click.option("--max-file-bytes", type=U64, default=0)
@click.option("--max-entries", type=U64, default=0)
@click.option("--max-key-bytes", type=U32, default=0)
@click.option("--max-value-bytes", type=U32, default=0)
@click.option("--max-tables", type=U32, default=0)
def set_limits(**limits: int) -> None:
    """Replace all limits: what is not given goes back to the built-in one."""
    from conduit.v1 import config_pb2
    from conduit.v1 import data_sources_pb2 as pb
    from conduit.v1.data_sources_pb2_grpc import ConduitDataSourcesStub

    with context.connection() as connection:
        request = pb.SetDataSourceLimitsRequest(limits=config_pb2.DataSourceLimits(**limits))
        response = connection.call(ConduitDataSourcesStub, "SetDataSourceLimits", request)
    show_change(response, "set-limits")
