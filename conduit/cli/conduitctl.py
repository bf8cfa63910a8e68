"""The `conduitctl` command: what works without a server; the control plane is not there yet.

Imports happen inside the commands, so that the command line itself starts fast (chapter 60, 9).
"""

from __future__ import annotations

import json
import sys
from typing import NoReturn

import click

_CONTEXT = {"help_option_names": ["-h", "--help"]}


def _fail(message: str) -> NoReturn:
    click.echo(f"Error: {message}", err=True)
    sys.exit(1)


@click.group(context_settings=_CONTEXT)
def main() -> None:
    """Work with DNS Conduit from the command line.

    This version knows the commands that need no server: `validate` and `acl check --file`.
    """


@main.command(context_settings=_CONTEXT)
@click.option("--file", "path", required=True, metavar="PATH", help="configuration file")
def validate(path: str) -> None:
    """Load, validate and compile a configuration file as a start would."""
    from conduit.config import ConfigError, load_file
    from conduit.policy.compile import CompileError
    from conduit.snapshot import compile_snapshot

    try:
        loaded = load_file(path)
    except ConfigError as error:
        for diagnostic in error.diagnostics:
            click.echo(str(diagnostic), err=True)
        _fail("validation failed")
    for warning in loaded.warnings:
        click.echo(f"warning: {warning}", err=True)
    try:
        compile_snapshot(loaded.config, 1, loaded.base_dir)
    except CompileError as error:
        click.echo(f"{path}: {error}", err=True)
        _fail("compile failed")
    click.echo("ok")


@main.group(context_settings=_CONTEXT)
def acl() -> None:
    """Client ACLs."""


@acl.command("check", context_settings=_CONTEXT)
@click.argument("ip")
@click.option("--listener", metavar="NAME", help="one listener instead of all of them")
@click.option("--file", "path", required=True, metavar="PATH", help="configuration file")
def acl_check(ip: str, listener: str | None, path: str) -> None:
    """Show what the client ACLs of a file decide for an address."""
    import ipaddress

    from conduit.config import ConfigError, load_file
    from conduit.policy.acl_check import check_acl
    from conduit.policy.compile import CompileError
    from conduit.snapshot import compile_snapshot

    try:
        loaded = load_file(path)
        snapshot = compile_snapshot(loaded.config, 1, loaded.base_dir)
    except ConfigError as error:
        for diagnostic in error.diagnostics:
            click.echo(str(diagnostic), err=True)
        _fail("validation failed")
    except CompileError as error:
        click.echo(f"{path}: {error}", err=True)
        _fail("compile failed")
    try:
        address = str(ipaddress.ip_address(ip))
    except ValueError:
        _fail(f"invalid ip address '{ip}'")
    try:
        results = check_acl(snapshot.policy, snapshot.config.listeners, address, listener)
    except ValueError as error:
        _fail(str(error))
    body = {"ip": address, "source": "file", "results": results}
    click.echo(json.dumps(body, indent=2))


if __name__ == "__main__":
    main()
