"""How a command of `conduitctl` fails (chapter 60 section 9.4)."""

from __future__ import annotations

import click


class CtlError(click.ClickException):
    """A failure at run time: stderr starts with `Error: `, the exit code is 1."""

    exit_code = 1
