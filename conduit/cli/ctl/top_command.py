"""`top`: a live view of the service's metrics page; plain blocks where there is no terminal."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import click

from conduit.cli.ctl import context
from conduit.cli.ctl.commands import Command
from conduit.cli.ctl.errors import CtlError
from conduit.cli.ctl.output import encoded

if TYPE_CHECKING:
    from conduit.cli.ctl.scrape import Reading
    from conduit.cli.ctl.top_view import Overview

_ALTERNATE, _MAIN = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
#: Moves home; each line clears its rest, the end clears what stands below.
_HOME, _CLEAR_LINE, _CLEAR_BELOW = "\x1b[H", "\x1b[K", "\x1b[J"
#: What a listener on every address is reached at on the host of the control plane.
_EVERYWHERE: Final = frozenset({"0.0.0.0", "::"})


@click.command("top", cls=Command)
@click.option("--metrics", "url", metavar="URL", help="metrics page; default: ask the service")
@click.option(
    "--interval",
    type=click.FloatRange(0.1, 3600.0),
    default=2.0,
    show_default=True,
    help="seconds between readings",
)
@click.option("--once", is_flag=True, help="show one interval and end")
def top(url: str | None, interval: float, once: bool) -> None:
    """Show query rate, latency, rcodes, caches and backends, again and again."""
    page = url or _url_of_service()
    if "://" not in page:
        page = f"http://{page}"
    views = _views(page, interval)
    wanted = context.output_format()
    try:
        if wanted in ("json", "yaml"):
            _data(views, wanted, once)
        elif once or not sys.stdout.isatty():
            _plain(views, once)
        else:
            _live(views, page)
    except KeyboardInterrupt:
        # that is how one ends it
        pass


def _views(url: str, seconds: float) -> Iterator[Overview]:
    """Yield the numbers of one interval after the other; raises CtlError."""
    from conduit.cli.ctl.scrape import Interval, fetch
    from conduit.cli.ctl.top_view import overview

    before: Reading = fetch(url)
    while True:
        time.sleep(seconds)
        after = fetch(url)
        yield overview(Interval(before, after))
        before = after


def _data(views: Iterator[Overview], wanted: str, once: bool) -> None:
    for view in views:
        if wanted == "yaml" and not once:
            click.echo("---")
        click.echo(encoded(view.data(), wanted), nl=False)
        if once:
            return


def _plain(views: Iterator[Overview], once: bool) -> None:
    from conduit.cli.ctl.top_view import render

    for view in views:
        for line in render(view, width=1000):
            click.echo(line)
        if once:
            return
        click.echo("")
        sys.stdout.flush()


def _live(views: Iterator[Overview], page: str) -> None:
    from conduit.cli.ctl.top_view import render

    sys.stdout.write(f"{_ALTERNATE}{_HOME}reading {page} ...{_CLEAR_BELOW}")
    sys.stdout.flush()
    try:
        for view in views:
            width, height = shutil.get_terminal_size()
            head = f"conduit {page}  {time.strftime('%H:%M:%S')}  Ctrl-C ends"
            lines = [head[:width], *render(view, width)][: height - 1]
            body = "".join(f"{line}{_CLEAR_LINE}\n" for line in lines)
            sys.stdout.write(f"{_HOME}{body}{_CLEAR_BELOW}")
            sys.stdout.flush()
    finally:
        sys.stdout.write(_MAIN)
        sys.stdout.flush()


def _url_of_service() -> str:
    """Return where the service says that its metrics page is; raises CtlError."""
    from conduit.v1 import control_pb2 as pb
    from conduit.v1.control_pb2_grpc import ConduitControlStub

    target = context.settings().target
    with context.connection() as connection:
        request = pb.GetConfigRequest()
        effective = connection.call(ConduitControlStub, "GetConfig", request).effective
    prometheus = effective.metrics.prometheus
    if not prometheus.listen_address:
        raise CtlError(
            "the service has no metrics page (metrics.prometheus); give one with --metrics URL"
        )
    host, _, port = prometheus.listen_address.rpartition(":")
    host = host.strip("[]")
    if host in _EVERYWHERE:
        host = target.host
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}{prometheus.path or '/metrics'}"
