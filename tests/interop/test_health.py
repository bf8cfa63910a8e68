"""Backend health end to end: the HEALTH cases of chapter 70, recovery, probes over UDP and TCP."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dns.exception
import dns.rcode
import pytest

from tests.support.client import ask
from tests.support.daemon import Conduit, configuration, with_metrics
from tests.support.ports import free_port
from tests.support.servers import Server, start_nsd
from tests.support.silent_server import SilentServer
from tests.support.stub_upstream import StubUpstream

Start = Callable[..., Conduit]
NAME = "www.example.test."


def config_of(
    backends: list[dict[str, Any]], health: dict[str, Any], **blocks: Any
) -> dict[str, Any]:
    config = configuration(metrics=with_metrics(free_port()), **blocks)
    config["pools"] = [
        {
            "name": "default",
            "health": {"enabled": True, "rise": 1, "min_eligible": 1, **health},
            "backends": backends,
        }
    ]
    return config


def applied(conduit: Conduit, backend: str) -> float:
    return conduit.metric("conduit_backend_health_applied", backend=backend)


def wait_for(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the state did not come"
        time.sleep(0.02)


@pytest.mark.parametrize("transport", ["udp_only", "tcp_only"])
def test_health_1_live_is_preferred_to_dead(
    stub: StubUpstream, start_conduit: Start, transport: str
) -> None:
    with SilentServer() as dead:
        conduit = start_conduit(
            config_of(
                [
                    {"name": "live", "address": stub.address},
                    {"name": "dead", "address": dead.address},
                ],
                {"interval_ms": 100, "timeout_ms": 100, "fall": 1, "passive_fast_trip": False},
                forward={"timeout_ms": 500, "upstream_transport": transport},
            )
        )
        wait_for(lambda: applied(conduit, "dead") == 2)
        for _ in range(20):
            assert conduit.query(NAME).answer
        attempts = "conduit_forward_attempts_total"
        assert conduit.metric(attempts, backend="live", outcome="success") == 20
        assert conduit.metric(attempts, backend="dead") == 0
        assert conduit.metric("conduit_probe_results_total", backend="dead", outcome="timeout") > 0
        assert conduit.metric("conduit_probe_results_total", backend="live", outcome="success") > 0
        assert conduit.metric("conduit_pool_backends_active", pool="default") == 1
        assert conduit.metric("conduit_pool_backends_configured", pool="default") == 2
        assert conduit.metric("conduit_backend_health_effective_weight", backend="dead") == 0
        assert conduit.metric("conduit_backend_health_effective_weight", backend="live") == 100
        assert 0 < conduit.metric("conduit_backend_health_latency_ewma_ms", backend="live") < 100


def test_health_2_all_down_fails_open(start_conduit: Start) -> None:
    with SilentServer() as one, SilentServer() as two:
        conduit = start_conduit(
            config_of(
                [
                    {"name": "dead-a", "address": one.address},
                    {"name": "dead-b", "address": two.address},
                ],
                {"interval_ms": 100, "timeout_ms": 100, "fall": 1, "passive_fast_trip": False},
                forward={"timeout_ms": 400},
                orchestrator={"max_attempts": 1},
            )
        )
        wait_for(lambda: applied(conduit, "dead-a") == applied(conduit, "dead-b") == 2)
        started = time.monotonic()
        assert conduit.query(NAME).rcode() == dns.rcode.SERVFAIL
        assert 0.39 <= time.monotonic() - started < 1.5
        assert conduit.metric("conduit_forward_attempts_total", outcome="error") == 1
        assert conduit.metric("conduit_forward_errors_total", reason="timeout") == 1
        assert conduit.metric("conduit_forward_errors_total", reason="no_backend") == 0


def test_health_3_passive_fast_trip(stub: StubUpstream, start_conduit: Start) -> None:
    with SilentServer() as dead:
        conduit = start_conduit(
            config_of(
                [
                    {"name": "live", "address": stub.address, "weight": 1},
                    {"name": "dead", "address": dead.address, "weight": 10000},
                ],
                {
                    "interval_ms": 2000,
                    "timeout_ms": 500,
                    "fall": 50,
                    "passive_fast_trip": True,
                    "passive_fall": 1,
                },
                forward={"timeout_ms": 400},
                orchestrator={"max_attempts": 1},
            )
        )
        # ids count from 1 and live has one pick in 10,001: the first query goes to dead
        assert conduit.query(NAME).rcode() == dns.rcode.SERVFAIL
        assert conduit.query(NAME).rcode() == dns.rcode.NOERROR
        attempts = "conduit_forward_attempts_total"
        assert conduit.metric(attempts, backend="dead", outcome="error") == 1
        assert conduit.metric(attempts, backend="live", outcome="success") == 1
        line = conduit.wait_for_line("passive fast-trip: backend marked down")
        for field in (f"backend={dead.address}", "reason=timeout", f"qname={NAME}", "qtype=1"):
            assert field in line


def test_stopped_backend_is_left_and_comes_back(
    tmp_path: Path, nsd: Server, start_conduit: Start
) -> None:
    """NSD stops during load with a second one up, and starts again."""
    folder = tmp_path / "second"
    second = start_nsd(folder)
    config = config_of(
        [
            {"name": "steady", "address": nsd.address},
            {"name": "flaky", "address": second.address},
        ],
        {"interval_ms": 100, "timeout_ms": 200, "fall": 2, "rise": 2},
        forward={"timeout_ms": 250},
    )
    conduit = start_conduit(config)
    wait_for(lambda: conduit.metric("conduit_backend_health_observed", backend="flaky") == 1)
    host, port = conduit.listener()
    stop = threading.Event()
    results: list[tuple[float, bool]] = []

    def client() -> None:
        while not stop.is_set():
            at = time.monotonic()
            try:
                ok = ask(host, port, NAME, timeout=2).rcode() == dns.rcode.NOERROR
            except dns.exception.Timeout:
                ok = False
            results.append((at, ok))

    threads = [threading.Thread(target=client) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        time.sleep(0.5)
        second.stop()
        wait_for(lambda: applied(conduit, "flaky") == 2)
        down_at = time.monotonic()
        time.sleep(1.5)
        up_at = time.monotonic()
        after = [ok for at, ok in results if down_at + 0.3 < at < up_at]
        assert len(after) > 50
        # once it is marked down nothing more fails
        assert after.count(False) <= len(after) // 100
        before = conduit.metric("conduit_forward_attempts_total", backend="flaky")
        second = start_nsd(folder, port=second.port)
        wait_for(lambda: applied(conduit, "flaky") == 1)
        wait_for(lambda: conduit.metric("conduit_forward_attempts_total", backend="flaky") > before)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        second.stop()


def test_health_state_survives_a_reload(stub: StubUpstream, start_conduit: Start) -> None:
    with SilentServer() as dead:
        backends = [
            {"name": "live", "address": stub.address},
            {"name": "dead", "address": dead.address},
        ]
        health = {"interval_ms": 100, "timeout_ms": 100, "fall": 1}
        config = config_of(backends, health)
        conduit = start_conduit(config)
        wait_for(lambda: applied(conduit, "dead") == 2)
        changed = config_of([{**b, "weight": 7} for b in backends], health)
        changed["metrics"] = config["metrics"]
        conduit.write(changed)
        conduit.reload()
        assert applied(conduit, "dead") == 2
        assert conduit.metric("conduit_backend_health_effective_weight", backend="live") == 7


def test_many_backends_cost_little(start_conduit: Start) -> None:
    """200 backends probed each second: the probe loop leaves the processor alone."""
    with StubUpstream() as stub:
        names = [
            {"name": f"b{n}", "address": f"127.0.{n // 200 + 1}.{n % 200 + 1}:{stub.port}"}
            for n in range(200)
        ]
        conduit = start_conduit(config_of(names, {"interval_ms": 1000, "timeout_ms": 500}))
        time.sleep(1.0)
        with open(f"/proc/{conduit.process.pid}/stat") as stat:
            before = sum(map(int, stat.read().split()[13:15]))
        time.sleep(2.0)
        with open(f"/proc/{conduit.process.pid}/stat") as stat:
            used = sum(map(int, stat.read().split()[13:15])) - before
        # ticks of 10 ms over two seconds: 200 ticks would be a whole core
        assert used < 40
