"""Metrics follow an apply: chapter 50, examples 21 and 22, over the running service."""

from __future__ import annotations

import socket
from collections.abc import Callable

from tests.control.conftest import Controlled
from tests.support.daemon import with_metrics
from tests.support.ports import free_port

Control = Callable[..., Controlled]
TIMED = "conduit_phase_duration_seconds_count"


def test_ch50_example_21_counts_survive_being_switched_off(control: Control) -> None:
    made = control(metrics=with_metrics(free_port()))
    conduit, api = made.conduit, made.api()
    conduit.query("www.example.test.")
    before = conduit.metric(TIMED, phase="send")
    assert before == 1
    off = api.message("MetricsConfig")
    off.categories.exclude.append("timing")
    off.categories.exclude_set = True
    assert api("ConduitMetrics/PatchMetrics", metrics=off).ok
    assert TIMED not in conduit.page()
    conduit.query("www.example.test.")
    again = api.message("MetricsConfig")
    again.categories.exclude_set = True
    assert api("ConduitMetrics/PatchMetrics", metrics=again).ok
    assert conduit.metric(TIMED, phase="send") == before
    assert conduit.metric("conduit_config_generation") == 3
    assert conduit.metric("conduit_queries_total") == 2


def test_ch50_example_22_a_taken_port_rejects_the_apply(control: Control) -> None:
    made = control(metrics=with_metrics(free_port()))
    api = made.api()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        patch = api.message("MetricsConfig")
        patch.prometheus.listen_address = f"127.0.0.1:{taken.getsockname()[1]}"
        result = api("ConduitMetrics/PatchMetrics", metrics=patch)
    assert (result.ok, result.generation) == (False, 0)
    assert "cannot bind" in result.errors[0]
    assert made.conduit.metric("conduit_config_generation") == 1
    moved = api.message("MetricsConfig")
    moved.prometheus.listen_address = f"127.0.0.1:{free_port()}"
    assert api("ConduitMetrics/PatchMetrics", metrics=moved).ok
    made.conduit.wait_for_line("prometheus metrics rebound to new address")
