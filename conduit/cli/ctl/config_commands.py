"""Commands on the whole configuration: `apply`, `export`, `reload`, `trace`."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import click

from conduit.cli.ctl import context
from conduit.cli.ctl.commands import Command, exclusive
from conduit.cli.ctl.errors import CtlError
from conduit.cli.ctl.output import optional, show, show_change
from conduit.cli.ctl.rust_text import option

if TYPE_CHECKING:
    from conduit.cli.ctl.tree_diff import Change
    from conduit.v1 import config_pb2


@click.command("apply", cls=Command)
@click.option("--file", "path", metavar="PATH", help="sparse YAML: only what shall change")
@click.option("--merge", is_flag=True, help="merge into the overlay in force (default)")
@click.option("--replace", is_flag=True, help="make the patch the whole overlay")
@click.option("--clear", is_flag=True, help="drop the overlay: back to the loaded file")
@click.pass_context
def apply(ctx: click.Context, path: str | None, merge: bool, replace: bool, clear: bool) -> None:
    """Change the running configuration by a patch, without touching the file."""
    exclusive(ctx, merge=merge, replace=replace, clear=clear)
    exclusive(ctx, clear=clear, file=path)
    if path is None and not clear:
        raise CtlError("--file is required unless --clear is set")
    from conduit.v1 import control_pb2 as pb
    from conduit.v1.control_pb2_grpc import ConduitControlStub

    request = pb.ApplyConfigRequest(mode=pb.OVERLAY_APPLY_MODE_MERGE)
    if clear:
        request.mode = pb.OVERLAY_APPLY_MODE_CLEAR
    elif replace:
        request.mode = pb.OVERLAY_APPLY_MODE_REPLACE
    if path is not None:
        request.overlay.CopyFrom(_patch_message(path))
    with context.connection() as connection:
        response = connection.call(ConduitControlStub, "ApplyConfig", request)
    show_change(response, "apply")


def _patch_message(path: str) -> config_pb2.Config:
    """Return the patch in a file as a message; raises CtlError."""
    from conduit.config import ConfigError
    from conduit.config.sparse import load_patch
    from conduit.control.merge import MergeError, check_patch
    from conduit.control.messages import fill
    from conduit.v1 import config_pb2

    warnings: list[Any] = []
    try:
        patch = load_patch(path, warnings)
        check_patch(patch)
    except ConfigError as error:
        raise CtlError("; ".join(str(d) for d in error.diagnostics)) from error
    except MergeError as error:
        raise CtlError(f"{path}: {error}") from error
    for warning in warnings:
        click.echo(f"warning: {warning}", err=True)
    message = config_pb2.Config()
    # what has no field stays behind, and is found below where it matters
    list(fill(message, _wire_sizes(patch)))
    for change in _lost(patch, message):
        taken = "unset" if change.after is None else json.dumps(change.after)
        click.echo(
            f"warning: {change.path}: is not carried by the control plane, which takes it as "
            f"{taken}; change it by file and reload",
            err=True,
        )
    return message


def _lost(patch: dict[str, Any], message: config_pb2.Config) -> list[Change]:
    """Return the differences between a patch and what the service will read of its message."""
    from conduit.cli.ctl.tree_diff import differences
    from conduit.config.construction import build_config
    from conduit.config.sparse import completed
    from conduit.control.messages import tree_of

    meant, read = (
        build_config(completed({"pools": [], **tree})) for tree in (patch, tree_of(message))
    )
    return differences(meant, read)


def _wire_sizes(patch: dict[str, Any]) -> dict[str, Any]:
    """Return the patch with `map_size` in octets, as the wire has it."""
    from conduit.config.quantities import parse_byte_size

    caches = []
    for cache in patch.get("caches") or []:
        lmdb = cache.get("lmdb")
        if lmdb and isinstance(lmdb.get("map_size"), str):
            cache = {**cache, "lmdb": {**lmdb, "map_size": parse_byte_size(lmdb["map_size"])}}
        caches.append(cache)
    return {**patch, "caches": caches} if caches else patch


@click.command("export", cls=Command, own_output=True)
@click.option(
    "--output", "path", metavar="PATH", default="-", show_default=True, help="`-` is stdout"
)
def export(path: str) -> None:
    """Write the effective configuration as YAML; API keys and headers stand in it in clear."""
    from conduit.v1 import control_pb2 as pb
    from conduit.v1.control_pb2_grpc import ConduitControlStub

    with context.connection() as connection:
        request = pb.ExportConfigRequest(format="yaml")
        body = connection.call(ConduitControlStub, "ExportConfig", request).body
    if path == "-":
        click.echo(body, nl=False)
        return
    try:
        # it may hold secrets: a new file is the operator's alone
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(body)
    except OSError as error:
        raise CtlError(f'writing "{path}": {error.strerror or error}') from error


@click.command("reload", cls=Command)
def reload() -> None:
    """Read the configuration file of the service again; drops the overlay."""
    from conduit.v1 import control_pb2 as pb
    from conduit.v1.control_pb2_grpc import ConduitControlStub

    with context.connection() as connection:
        request = pb.ReloadFromFileRequest()
        response = connection.call(ConduitControlStub, "ReloadFromFile", request)
    show_change(response, "reload")


@click.command("trace", cls=Command)
@click.argument("txn_id")
def trace(txn_id: str) -> None:
    """Show the recorded steps of one transaction."""
    from conduit.v1 import control_pb2 as pb
    from conduit.v1.control_pb2_grpc import ConduitControlStub

    with context.connection() as connection:
        request = pb.GetTraceRequest(txn_id=txn_id)
        response = connection.call(ConduitControlStub, "GetTrace", request)
    if not response.found:
        raise CtlError("trace not found")
    show(map(_trace_line, response.events), list(map(_trace_data, response.events)))


def _trace_line(event: Any) -> str:
    places = " ".join(
        f"{name}={option(optional(event, name))}" for name in ("pool", "backend", "cache")
    )
    # the blank before an empty message stays
    return f"{event.phase} +{event.elapsed_us}us {places} {event.message}"


def _trace_data(event: Any) -> dict[str, Any]:
    given = {name: optional(event, name) for name in ("pool", "backend", "cache", "message")}
    return {
        "phase": event.phase,
        "elapsed_us": event.elapsed_us,
        **{name: value for name, value in given.items() if value is not None},
    }
