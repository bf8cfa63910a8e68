"""`conduitctl top`: rates and quantiles of two readings, one-shot, plain and live views."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from conduit.cli.ctl.errors import CtlError
from conduit.cli.ctl.scrape import Interval, fetch, parse
from conduit.cli.ctl.top_view import overview, render
from conduit.v1 import config_pb2 as config
from conduit.v1 import control_pb2 as control
from tests.cli.test_conduitctl_server import Ctl, ctl, failed, server

__all__ = ["ctl", "server"]

ROOT = Path(__file__).parents[2]


def page(
    queries: int, buckets: tuple[int, int, int] = (0, 0, 0), hits: int = 0, misses: int = 0
) -> str:
    """A metrics page after `queries` queries."""
    fast, slow, every = buckets
    histogram = "conduit_response_duration_seconds_bucket"
    lookups = 'conduit_cache_lookups_total{cache="c",profile="default",result='
    return f"""
# TYPE conduit_queries counter
conduit_queries_total{{listener="l",qtype="A"}} {queries}
conduit_queries_total{{listener="l",qtype="AAAA"}} 0
# TYPE conduit_responses counter
conduit_responses_total{{rcode="NOERROR",answer_source="cache"}} {queries}
conduit_responses_total{{rcode="NXDOMAIN",answer_source="forward"}} {queries * 2}
# TYPE conduit_response_duration_seconds histogram
{histogram}{{answer_source="a",le="0.001"}} {fast}
{histogram}{{answer_source="a",le="0.01"}} {slow}
{histogram}{{answer_source="a",le="+Inf"}} {every}
# TYPE conduit_cache_lookups counter
{lookups}"hit"}} {hits}
{lookups}"miss"}} {misses}
# TYPE conduit_config_generation gauge
conduit_config_generation 4
# TYPE conduit_slots_in_use gauge
conduit_slots_in_use 3
# TYPE conduit_slots_capacity gauge
conduit_slots_capacity 1024
# TYPE conduit_uptime_seconds gauge
conduit_uptime_seconds 93784
# TYPE conduit_backend_weight gauge
conduit_backend_weight{{pool="P",backend="a"}} 100
# TYPE conduit_backend_health_applied gauge
conduit_backend_health_applied{{pool="P",backend="a"}} 2
# TYPE conduit_backend_health_probe_automatic gauge
conduit_backend_health_probe_automatic{{pool="P",backend="a"}} 0
# TYPE conduit_forward_attempts counter
conduit_forward_attempts_total{{pool="P",backend="a",outcome="success"}} {queries}
"""


def between(before: str, after: str, seconds: float = 2.0) -> Interval:
    return Interval(parse(before, 10.0), parse(after, 10.0 + seconds))


def test_numbers_of_an_interval() -> None:
    interval = between(page(100), page(300, (50, 90, 100), hits=30, misses=10))
    view = overview(interval)
    assert view.queries == 100.0
    assert dict(view.rcodes) == {"NXDOMAIN": 200.0, "NOERROR": 100.0}
    assert view.cache_hits == 0.75
    assert (view.p50, view.p90) == (pytest.approx(0.001), pytest.approx(0.01))
    # beyond the last bound nothing is known but the bound
    assert view.p99 == 0.01
    assert (view.generation, view.slots, view.uptime) == (4, (3, 1024), 93784.0)
    (backend,) = view.backends
    assert (backend.rate, backend.health, backend.frozen, backend.weight) == (
        100.0,
        "down",
        True,
        100,
    )
    assert backend.errors is None


def test_a_restart_in_between_is_no_negative_rate() -> None:
    view = overview(between(page(5000, (9, 9, 9)), page(20, (1, 2, 2))))
    assert view.queries == 10.0
    assert view.p50 == pytest.approx(0.001)


def test_a_page_of_nothing() -> None:
    view = overview(between("", ""))
    assert (view.queries, view.p50, view.cache_hits, view.slots) == (0.0, None, None, None)
    text = "\n".join(render(view))
    assert "latency p50 -  p90 -  p99 -  cache hits -" in text
    assert "nan" not in text.lower()


def test_lines() -> None:
    view = overview(between(page(100), page(300, (50, 90, 100), 30, 10)))
    lines = render(view)
    assert lines[0] == "generation 4  up 1d02h  cpu -  slots 3/1024"
    assert lines[1].startswith("queries 100/s  responses 300/s  dropped 0.0/s")
    assert lines[2] == "latency p50 1.0ms  p90 10.0ms  p99 10.0ms  cache hits 75.0%"
    assert lines[3] == "rcodes  NXDOMAIN 200/s  NOERROR 100/s"
    assert "cache c  hit 15.0/s  miss 5.0/s  bypass 0.0/s" in lines
    assert lines[-1].split() == ["P", "a", "down", "frozen", "100", "100", "-", "-", "-"]
    assert all(len(line) <= 20 for line in render(view, width=20))


class Pages(HTTPServer):
    """Serves a metrics page whose counters grow by 7 with each request."""

    served = 0

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}/metrics"
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        server = self.server
        assert isinstance(server, Pages)
        found = self.path == "/metrics"
        server.served += found
        body = page(server.served * 7).encode()
        self.send_response(200 if found else 404)
        self.end_headers()
        self.wfile.write(body if found else b"")

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def pages() -> Iterator[Pages]:
    made = Pages()
    yield made
    made.shutdown()
    made.server_close()


def test_once(ctl: Ctl, pages: Pages) -> None:
    result = ctl("top", "--once", "--interval", "0.1", "--metrics", pages.url)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("generation 4  up 1d02h")
    assert "\x1b" not in result.stdout
    assert pages.served == 2
    assert ctl.server.requests == []


def test_once_as_data_and_without_a_scheme(ctl: Ctl, pages: Pages) -> None:
    bare = pages.url.removeprefix("http://")
    result = ctl("top", "--once", "--interval", "0.1", "--metrics", bare, "--output", "json")
    data = json.loads(result.stdout)
    # seven queries in a tenth of a second or more
    assert 0 < data["queries"] <= 71
    assert data["backends"][0]["backend"] == "a"


def test_the_service_says_where_the_page_is(ctl: Ctl, pages: Pages) -> None:
    def effective(address: str) -> None:
        metrics = config.MetricsConfig(
            prometheus=config.PrometheusMetricsConfig(listen_address=address)
        )
        ctl.server.answers["GetConfig"] = control.GetConfigResponse(
            effective=config.Config(metrics=metrics)
        )

    # a page on every address is asked at the host of the control plane
    effective(f"0.0.0.0:{pages.server_port}")
    assert ctl("top", "--once", "--interval", "0.1").exit_code == 0
    effective("")
    failed(ctl("top", "--once"), "the service has no metrics page")


def test_pages_that_cannot_be_read(ctl: Ctl, pages: Pages) -> None:
    failed(ctl("top", "--once", "--metrics", f"{pages.url}/no"), "reading metrics")
    failed(ctl("top", "--once", "--metrics", "file:///etc/passwd"), "http")
    with pytest.raises(CtlError, match="cannot be read"):
        parse("# nonsense {{{\nx{ 5\n", 0.0)
    assert fetch(pages.url).total("conduit_config_generation") == 4


def _start(url: str, stdout: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "conduit.cli.conduitctl", "top", "--metrics", url]
    return subprocess.Popen(
        [*command, "--interval", "0.1"],
        stdout=stdout,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "100", "LINES": "20"},
    )


def _wait(pages: Pages, count: int) -> None:
    end = time.monotonic() + 60
    while pages.served < count:
        assert time.monotonic() < end
        time.sleep(0.02)


def test_plain_blocks_where_there_is_no_terminal(pages: Pages) -> None:
    child = _start(pages.url, subprocess.PIPE)
    _wait(pages, 4)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=30)
    assert (child.returncode, err) == (0, b"")
    assert out.count(b"generation 4") >= 2
    assert b"\x1b" not in out


def test_live_view_leaves_the_terminal_as_it_was(pages: Pages) -> None:
    ours, theirs = pty.openpty()
    child = _start(pages.url, theirs)
    os.close(theirs)
    _wait(pages, 4)
    child.send_signal(signal.SIGINT)
    out = b""
    try:
        while chunk := os.read(ours, 65536):
            out += chunk
    except OSError:
        # the other end is closed
        pass
    os.close(ours)
    _, err = child.communicate(timeout=30)
    assert (child.returncode, err) == (0, b"")
    assert b"\x1b[?1049h" in out
    assert out.rstrip().endswith(b"\x1b[?25h\x1b[?1049l")
    assert b"generation 4" in out
