"""`events`: event sinks, their filters and what they emit."""

from __future__ import annotations

import click

from conduit.cli.ctl import context
from conduit.cli.ctl.commands import Command, group
from conduit.cli.ctl.output import optional, show, show_change
from conduit.cli.ctl.rust_text import listed, option

events = group("events", "Event sinks.")


@events.command("get", cls=Command)
def get_events() -> None:
    """Show the queue and the sinks."""
    from conduit.v1 import events_pb2 as pb
    from conduit.v1.events_pb2_grpc import ConduitEventsStub

    with context.connection() as connection:
        block = connection.call(ConduitEventsStub, "GetEvents", pb.GetEventsRequest()).events
    sinks = [{"name": s.name or s.export_id, "type": s.type} for s in block.sinks]
    head = (
        f"queue_depth={block.queue_depth} drop_policy={block.drop_policy} sinks={len(block.sinks)}"
    )
    show(
        [head, *(f"  sink {s['name']} type={s['type']}" for s in sinks)],
        {"queue_depth": block.queue_depth, "drop_policy": block.drop_policy, "sinks": sinks},
    )


@events.command("get-sink", cls=Command)
@click.option("--name", required=True, metavar="NAME")
def get_sink(name: str) -> None:
    """Show one sink."""
    from conduit.control.messages import tree_of
    from conduit.v1 import events_pb2 as pb
    from conduit.v1.events_pb2_grpc import ConduitEventsStub

    with context.connection() as connection:
        request = pb.GetEventSinkRequest(name=name)
        sink = connection.call(ConduitEventsStub, "GetEventSink", request).sink
    lines = [f"type={sink.type}", f"export_id={sink.export_id}", f"emit={listed(sink.emit)}"]
    if sink.HasField("filters"):
        percent = optional(sink.filters, "sample_percent")
        lines.append(f"filters.sample_percent={option(percent)}")
    show(lines, tree_of(sink))


@events.command("set-filters", cls=Command)
@click.option("--name", required=True, metavar="NAME")
@click.option("--sample-percent", type=float, metavar="PERCENT", help="0 to 100")
@click.option("--tag-required", metavar="TAG")
@click.option("--pool", metavar="NAME")
@click.option("--backend", metavar="NAME")
def set_filters(
    name: str,
    sample_percent: float | None,
    tag_required: str | None,
    pool: str | None,
    backend: str | None,
) -> None:
    """Replace all filters of a sink: selectors and what is not given are erased."""
    from conduit.v1 import config_pb2
    from conduit.v1 import events_pb2 as pb
    from conduit.v1.events_pb2_grpc import ConduitEventsStub

    filters = config_pb2.EventSinkFilters(
        sample_percent=sample_percent, tag_required=tag_required, pool=pool, backend=backend
    )
    with context.connection() as connection:
        request = pb.SetEventSinkFiltersRequest(name=name, filters=filters)
        response = connection.call(ConduitEventsStub, "SetEventSinkFilters", request)
    show_change(response, "set-filters")


@events.command("set-emit", cls=Command)
@click.option("--name", required=True, metavar="NAME")
@click.option("--emit", multiple=True, metavar="A,B", help="query, response, retry; repeatable")
def set_emit(name: str, emit: tuple[str, ...]) -> None:
    """Replace what a sink emits; without --emit it is the default."""
    from conduit.v1 import events_pb2 as pb
    from conduit.v1.events_pb2_grpc import ConduitEventsStub

    kinds = [kind for given in emit for kind in given.split(",")]
    with context.connection() as connection:
        request = pb.SetEventSinkEmitRequest(name=name, emit=kinds)
        response = connection.call(ConduitEventsStub, "SetEventSinkEmit", request)
    show_change(response, "set-emit")
