"""What needs no server: `validate`, and files loaded and compiled as a start would."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from conduit.cli.ctl.commands import Command
from conduit.cli.ctl.errors import CtlError
from conduit.cli.ctl.output import show

if TYPE_CHECKING:
    from conduit.config import LoadedConfig
    from conduit.snapshot import RuntimeSnapshot


@click.command("validate", cls=Command)
@click.option("--file", "path", required=True, metavar="PATH", help="configuration file")
def validate(path: str) -> None:
    """Load, validate and compile a configuration file as a start would."""
    loaded = load_checked(path)
    for warning in loaded.warnings:
        click.echo(f"warning: {warning}", err=True)
    compile_checked(loaded)
    show(["ok"], {"ok": True, "warnings": [str(warning) for warning in loaded.warnings]})


def load_checked(path: str) -> LoadedConfig:
    """Return the file at `path`, loaded and validated.

    Raises CtlError `validation failed` after a line on stderr for each error.
    """
    from conduit.config import ConfigError, load_file

    try:
        return load_file(path)
    except ConfigError as error:
        for diagnostic in error.diagnostics:
            click.echo(str(diagnostic), err=True)
        raise CtlError("validation failed") from error


def compile_checked(loaded: LoadedConfig) -> RuntimeSnapshot:
    """Return the compiled configuration; raises CtlError `compile failed` after the cause."""
    from conduit.policy.compile import CompileError
    from conduit.snapshot import compile_snapshot

    try:
        return compile_snapshot(loaded.config, 1, loaded.base_dir)
    except CompileError as error:
        click.echo(f"{loaded.path}: {error}", err=True)
        raise CtlError("compile failed") from error
