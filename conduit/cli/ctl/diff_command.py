"""`diff`: what a configuration file would change, of the running service or of another file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import click

from conduit.cli.ctl import context
from conduit.cli.ctl.commands import Command
from conduit.cli.ctl.errors import CtlError
from conduit.cli.ctl.output import show

if TYPE_CHECKING:
    from conduit.cli.ctl.tree_diff import Change
    from conduit.config import Config

#: Exit code of `--exit-code` when there are differences; 1 and 2 are failures.
DIFFERENT: Final = 3
_MARKS: Final = {"added": "+", "removed": "-", "changed": "~", "moved": "~"}


@click.command("diff", cls=Command)
@click.option("--file", "path", required=True, metavar="PATH", help="the candidate")
@click.option("--against", metavar="PATH", help="another file instead of the running service")
@click.option("--exit-code", is_flag=True, help=f"exit with {DIFFERENT} when there are differences")
@click.pass_context
def diff(ctx: click.Context, path: str, against: str | None, exit_code: bool) -> None:
    """List what a candidate file changes; `(restart)` marks what waits for one.

    The candidate is read, not validated: `conduitctl validate` does that. Keys and headers are
    compared but not shown.
    """
    from conduit.cli.ctl.tree_diff import differences

    candidate = _of_file(path)
    before = _running() if against is None else _of_file(against)
    changes = differences(before, candidate)
    lines = [_line(change) for change in changes] or ["no differences"]
    restarts = sum(change.restart for change in changes)
    if changes:
        lines.append(f"{len(changes)} changes, {restarts} need a restart")
    show(lines, {"changes": [_data(change) for change in changes], "restarts": restarts})
    if exit_code and changes:
        ctx.exit(DIFFERENT)


def _of_file(path: str) -> Config:
    from conduit.config import ConfigError
    from conduit.config.loader import read_text

    try:
        return _parsed(read_text(path), path)
    except ConfigError as error:
        raise CtlError("; ".join(str(d) for d in error.diagnostics)) from error


def _running() -> Config:
    """Return the effective configuration of the service, with all that an export carries."""
    from conduit.config import ConfigError
    from conduit.v1 import control_pb2 as pb
    from conduit.v1.control_pb2_grpc import ConduitControlStub

    with context.connection() as connection:
        request = pb.ExportConfigRequest(format="yaml")
        body = connection.call(ConduitControlStub, "ExportConfig", request).body
    try:
        return _parsed(body, "(running)")
    except ConfigError as error:
        details = "; ".join(str(d) for d in error.diagnostics)
        raise CtlError(f"the service's export cannot be read: {details}") from error


def _parsed(text: str, path: str) -> Config:
    from conduit.config.sparse import read_config

    return read_config(text, path)


def _line(change: Change) -> str:
    if change.kind == "added":
        what = _value(change.after)
    elif change.kind == "removed":
        what = f"(was {_value(change.before)})"
    elif change.kind == "moved":
        what = f"order: {', '.join(change.before)} -> {', '.join(change.after)}"
    else:
        what = f"{_value(change.before)} -> {_value(change.after)}"
    mark = "  (restart)" if change.restart else ""
    return f"{_MARKS[change.kind]} {change.path}: {what}{mark}"


def _value(value: Any) -> str:
    return value if value == "(not shown)" else json.dumps(value, ensure_ascii=False)


def _data(change: Change) -> dict[str, Any]:
    return {
        "change": change.kind,
        "path": change.path,
        "before": change.before,
        "after": change.after,
        "restart": change.restart,
    }
