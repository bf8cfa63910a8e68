"""What a command prints: the text of the reference, or the same as JSON or YAML."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import click

from conduit.cli.ctl.context import output_format
from conduit.cli.ctl.errors import CtlError


def show(lines: Iterable[str], data: Any) -> None:
    """Print `lines`, or `data` in the format that `--output` asks for."""
    wanted = output_format()
    if wanted in (None, "text"):
        for line in lines:
            click.echo(line)
    else:
        click.echo(encoded(data, wanted), nl=False)


def encoded(data: Any, wanted: str | None) -> str:
    """Return plain data as `json` (two-space indent) or YAML, with a newline at the end."""
    if wanted == "json":
        return json.dumps(data, indent=2, ensure_ascii=False) + "\n"
    import yaml

    text: str = yaml.safe_dump(data, sort_keys=False, allow_unicode=True)
    return text


def show_change(response: Any, what: str) -> None:
    """Print the outcome of a change; raises CtlError `<what> failed: ...` when it was rejected."""
    if not response.ok:
        raise CtlError(f"{what} failed: {'; '.join(response.errors)}")
    notes = [{"kind": note.kind, "message": note.message} for note in response.notes]
    for note in notes:
        click.echo(f"note: {note['kind']}: {note['message']}", err=True)
    data = {"ok": True, "generation": response.generation, "notes": notes}
    show([f"ok generation={response.generation}"], data)


def optional(message: Any, field: str) -> Any:
    """Return a field with presence, or None when it is absent."""
    return getattr(message, field) if message.HasField(field) else None
