"""The OTLP push against a receiver of our own (chapter 50 section 2.10)."""

from __future__ import annotations

import http.server
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric

from conduit.observe.otlp_encoding import unit_of
from tests.support.daemon import Conduit, configuration
from tests.support.stub_upstream import StubUpstream

Start = Callable[..., Conduit]


class Receiver:
    """Records pushes; answers with the statuses it is given, then 200."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, str], ExportMetricsServiceRequest]] = []
        self.statuses: list[int] = []
        self.hang = threading.Event()
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                request = ExportMetricsServiceRequest.FromString(body)
                receiver.requests.append((self.path, dict(self.headers), request))
                if receiver.hang.is_set():
                    time.sleep(20)
                status = receiver.statuses.pop(0) if receiver.statuses else 200
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}/my/metrics"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def wait_for(self, count: int, seconds: float = 15.0) -> None:
        deadline = time.monotonic() + seconds
        while len(self.requests) < count:
            assert time.monotonic() < deadline, f"{len(self.requests)} pushes of {count}"
            time.sleep(0.02)

    def last(self, name: str) -> Metric:
        (resource,) = self.requests[-1][2].resource_metrics
        (scope,) = resource.scope_metrics
        assert scope.scope.name == "conduit"
        return next(metric for metric in scope.metrics if metric.name == name)

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver()
    yield found
    found.stop()


def with_push(receiver: Receiver, stub: StubUpstream, **otel: Any) -> dict[str, Any]:
    block = {"endpoint": receiver.endpoint, "push_interval_ms": 1000, **otel}
    return configuration(stub.address, metrics={"enabled": True, "otel": block})


def test_what_a_push_carries(receiver: Receiver, stub: StubUpstream, start_conduit: Start) -> None:
    conduit = start_conduit(
        with_push(
            receiver,
            stub,
            headers={"X-Token": "secret", "bad header": "x"},
            resource_attributes={"site": "lab"},
        )
    )
    conduit.wait_for_line("otel metrics push started")
    assert conduit.query("www.example.test.").answer
    receiver.wait_for(2)
    path, headers, request = receiver.requests[-1]
    assert path == "/my/metrics"
    assert headers["Content-Type"] == "application/x-protobuf"
    assert headers["X-Token"] == "secret"
    assert "secret" not in conduit.output
    attributes = {
        a.key: a.value.string_value for a in request.resource_metrics[0].resource.attributes
    }
    assert attributes["service.name"] == "conduit"
    assert attributes["site"] == "lab"
    queries = receiver.last("conduit_queries_total")
    assert queries.unit == "1"
    assert queries.sum.is_monotonic
    (point,) = queries.sum.data_points
    assert point.as_int == 1
    assert {a.key for a in point.attributes} >= {"listener", "protocol", "qtype"}
    generation = receiver.last("conduit_config_generation")
    assert generation.unit == ""
    assert generation.gauge.data_points[0].as_double == 1.0
    (histogram,) = receiver.last("conduit_forward_duration_seconds").histogram.data_points
    assert histogram.count == 1
    assert sum(histogram.bucket_counts) == 1
    assert list(histogram.explicit_bounds) == [0.001, 0.01, 0.05, 0.1, 0.5, 1, 5, 10]
    assert len(histogram.bucket_counts) == 9
    assert conduit.stop() == 0


def test_ch50_example_24_failures_are_logged_and_the_next_push_carries_all(
    receiver: Receiver, stub: StubUpstream, start_conduit: Start
) -> None:
    receiver.statuses = [503, 503, 503]
    conduit = start_conduit(with_push(receiver, stub))
    for _ in range(3):
        assert conduit.query("www.example.test.").answer
    receiver.wait_for(4)
    conduit.wait_for_line("otel metrics push failed", count=3)
    assert receiver.last("conduit_queries_total").sum.data_points[0].as_int == 3
    assert conduit.output.count("otel metrics push failed") == 3


def test_a_receiver_that_hangs_delays_neither_queries_nor_the_stop(
    receiver: Receiver, stub: StubUpstream, start_conduit: Start
) -> None:
    receiver.hang.set()
    conduit = start_conduit(with_push(receiver, stub))
    receiver.wait_for(1)
    started = time.monotonic()
    assert conduit.query("www.example.test.").answer
    assert conduit.stop() == 0
    assert time.monotonic() - started < 3


def test_a_reload_starts_moves_and_stops_the_push(
    receiver: Receiver, stub: StubUpstream, start_conduit: Start
) -> None:
    conduit = start_conduit(configuration(stub.address, metrics={"enabled": True}))
    conduit.write(with_push(receiver, stub))
    conduit.reload()
    receiver.wait_for(1)
    conduit.write(configuration(stub.address, metrics={"enabled": True}))
    conduit.reload()
    time.sleep(0.2)
    count = len(receiver.requests)
    time.sleep(1.5)
    assert len(receiver.requests) == count


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("conduit_backend_health_latency_ewma_ms", "ms"),
        ("conduit_config_generation", ""),
        ("conduit_queries_total", "1"),
        ("conduit_process_cpu_seconds_total", "1"),
        ("conduit_process_resident_bytes", "By"),
        ("conduit_uptime_seconds", "s"),
        ("conduit_build_info", "1"),
    ],
)
def test_ch50_example_25_units(name: str, unit: str) -> None:
    assert unit_of(name) == unit
