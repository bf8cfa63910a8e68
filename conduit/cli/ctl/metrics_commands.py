"""`metrics`: the metrics block in force, and patches of it."""

from __future__ import annotations

from typing import Any

import click

from conduit.cli.ctl import context
from conduit.cli.ctl.commands import BOOL, Command, group
from conduit.cli.ctl.errors import CtlError
from conduit.cli.ctl.output import encoded, show_change

metrics = group("metrics", "The metrics block.")


@metrics.command("get", cls=Command)
def get_metrics() -> None:
    """Show the metrics block as YAML."""
    from conduit.control.messages import tree_of
    from conduit.v1 import metrics_control_pb2 as pb
    from conduit.v1.metrics_control_pb2_grpc import ConduitMetricsStub

    with context.connection() as connection:
        request = pb.GetMetricsRequest()
        block = connection.call(ConduitMetricsStub, "GetMetrics", request).metrics
    # YAML is the text of this command
    wanted = "json" if context.output_format() == "json" else "yaml"
    click.echo(encoded(tree_of(block), wanted), nl=False)


@metrics.command("patch", cls=Command)
@click.option(
    "--file", "path", metavar="PATH", help="YAML: a metrics block, bare or below metrics:"
)
@click.option("--enabled", type=BOOL)
@click.option("--base", metavar="NAME", help="none, minimal or standard")
def patch(path: str | None, enabled: str | None, base: str | None) -> None:
    """Merge a sparse patch into the metrics block; flags win over the file."""
    tree: dict[str, Any] = {} if path is None else _read(path)
    if enabled is not None:
        tree["enabled"] = enabled == "true"
    if base is not None:
        tree["base"] = base
    from conduit.control.messages import fill
    from conduit.v1 import metrics_control_pb2 as pb
    from conduit.v1.metrics_control_pb2_grpc import ConduitMetricsStub

    request = pb.PatchMetricsRequest()
    request.metrics.SetInParent()
    for key in fill(request.metrics, tree):
        click.echo(f"warning: metrics.{key}: is not carried by the control plane", err=True)
    if not request.metrics.ListFields():
        raise CtlError("nothing to patch: give --file with settings, --enabled or --base")
    with context.connection() as connection:
        response = connection.call(ConduitMetricsStub, "PatchMetrics", request)
    show_change(response, "patch")


def _read(path: str) -> dict[str, Any]:
    from conduit.config import ConfigError
    from conduit.config.sparse import load_metrics_patch

    warnings: list[Any] = []
    try:
        tree = load_metrics_patch(path, warnings)
    except ConfigError as error:
        raise CtlError("; ".join(str(d) for d in error.diagnostics)) from error
    for warning in warnings:
        click.echo(f"warning: {warning}", err=True)
    return tree
