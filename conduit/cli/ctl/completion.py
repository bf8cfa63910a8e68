"""`completion`: the script that teaches a shell the commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from conduit.cli.ctl.commands import Command

_VARIABLE = "_CONDUITCTL_COMPLETE"


@click.command("completion", cls=Command)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script for a shell: `source <(conduitctl completion bash)`."""
    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(ctx.find_root().command, {}, "conduitctl", _VARIABLE).source())
