"""Command classes of `conduitctl`: global options at every level, commands imported when used."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import click

from conduit.cli.ctl.context import global_options

CONTEXT_SETTINGS: Final = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
_GLOBAL_NOTE: Final = "Global options (see `conduitctl --help`) may stand here too."


class Command(click.Command):
    """A command; `own_output` is for one whose `--output` means something else."""

    def __init__(self, *args: Any, own_output: bool = False, **rest: Any) -> None:
        rest.setdefault("context_settings", CONTEXT_SETTINGS)
        rest.setdefault("epilog", _GLOBAL_NOTE)
        super().__init__(*args, **rest)
        self.params += global_options(hidden=True, output=not own_output)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        with _usage_of(ctx):
            return super().parse_args(ctx, args)


class Group(click.Group):
    """A group; commands that `lazy` names (`module:attribute`) are imported when they are used."""

    command_class = Command

    def __init__(
        self,
        *args: Any,
        lazy: Mapping[str, str] | None = None,
        root: bool = False,
        **rest: Any,
    ) -> None:
        rest.setdefault("context_settings", CONTEXT_SETTINGS)
        rest.setdefault("no_args_is_help", False)
        super().__init__(*args, **rest)
        self._lazy = dict(lazy or {})
        self.params += global_options(hidden=not root, output=True)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*self._lazy, *super().list_commands(ctx)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._lazy:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = self._lazy[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            # a call without a command is an error, and the help says what there is
            click.echo(ctx.get_help(), err=True)
            ctx.exit(2)
        with _usage_of(ctx):
            return super().parse_args(ctx, args)


@contextmanager
def _usage_of(ctx: click.Context) -> Iterator[None]:
    """Let every usage error show the usage: the parser's own ones do not know their command."""
    try:
        yield
    except click.UsageError as error:
        error.ctx = error.ctx or ctx
        raise


def group(name: str, text: str) -> Group:
    """Return a group of commands."""
    return Group(name, help=text)


#: Options with values of the wire's types.
U32: Final = click.IntRange(0, 2**32 - 1)
U64: Final = click.IntRange(0, 2**64 - 1)
BOOL: Final = click.Choice(["true", "false"])


def exclusive(context: click.Context, **options: object) -> None:
    """Raise a usage error (exit 2) when more than one of the options is given."""
    given = [f"--{name.replace('_', '-')}" for name, value in options.items() if value]
    if len(given) > 1:
        raise click.UsageError(f"{' and '.join(given)} cannot be used together", context)
