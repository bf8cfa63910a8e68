"""The global options of one call, wherever they stand on the command line (chapter 60, 9.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from conduit.cli.ctl.connection import Connection
    from conduit.cli.ctl.settings import Settings

FORMATS: Final = ("text", "json", "yaml")
_KEY: Final = "conduit.cli.ctl.options"


def _keep(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    # only what is given: an option behind the command wins over the same one before it
    if value is not None and value is not False:
        assert parameter.name is not None
        context.find_root().meta.setdefault(_KEY, {})[parameter.name] = value


def _option(*names: str, **rest: Any) -> click.Option:
    return click.Option(names, expose_value=False, callback=_keep, **rest)


def global_options(*, hidden: bool, output: bool) -> list[click.Option]:
    """Return fresh options for one command; `output`: with the global `--output` among them."""
    made = [
        _option("--config", metavar="PATH", hidden=hidden, help="client configuration file"),
        _option(
            "--endpoint",
            metavar="URL",
            hidden=hidden,
            help="control plane, http://host:port or https://host:port [env: CONDUIT_CONTROL]",
        ),
        _option("--api-key", metavar="KEY", hidden=hidden, help="API key [env: CONDUIT_API_KEY]"),
        _option(
            "--api-key-file",
            metavar="PATH",
            hidden=hidden,
            help="file with the API key [env: CONDUIT_API_KEY_FILE]",
        ),
        _option(
            "--tls-ca",
            metavar="PATH",
            hidden=hidden,
            help="only trust the authorities in this PEM file [env: CONDUIT_TLS_CA]",
        ),
        _option(
            "--tls-cert",
            metavar="PATH",
            hidden=hidden,
            help="client certificate [env: CONDUIT_TLS_CERT]",
        ),
        _option(
            "--tls-key",
            metavar="PATH",
            hidden=hidden,
            help="key of the client certificate [env: CONDUIT_TLS_KEY]",
        ),
        _option(
            "--tls-insecure",
            is_flag=True,
            hidden=hidden,
            help="check neither the server's certificate nor its name [env: CONDUIT_TLS_INSECURE]",
        ),
    ]
    if output:
        made.append(
            _option(
                "--output",
                type=click.Choice(FORMATS),
                hidden=hidden,
                help="format of the result (default: text)",
            )
        )
    return made


def given_options() -> dict[str, Any]:
    """Return the global options of the running command."""
    options: dict[str, Any] = click.get_current_context().find_root().meta.get(_KEY, {})
    return options


def output_format() -> str | None:
    """Return what `--output` says, None when it is not given."""
    wanted: str | None = given_options().get("output")
    return wanted


def settings() -> Settings:
    """Return the settings of the running command; raises CtlError."""
    from conduit.cli.ctl.settings import resolve

    return resolve(given_options())


def connection() -> Connection:
    """Connect as the global options say; raises CtlError."""
    # gRPC takes a good part of a second to import: only commands that call do so
    from conduit.cli.ctl.connection import Connection

    return Connection(settings())
