"""The elastic worker pool: it grows while workers block and shrinks when load has gone."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from conduit.runtime import worker_pool
from conduit.runtime.worker_pool import WorkerPool
from tests.support.client import ask
from tests.support.in_process import InProcess
from tests.support.stub_upstream import StubUpstream, answer


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_growth_and_shrinking(monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    import dns.message

    monkeypatch.setattr(worker_pool, "_IDLE_SECONDS", 0.3)
    monkeypatch.setattr(worker_pool, "_SHRINK_SECONDS", 0.001)
    with (
        StubUpstream(default=answer(delay=0.2)) as stub,
        InProcess(
            {
                "schema_version": 1,
                "forward": {"outstanding_per_backend": 1000},
                "pools": [{"name": "default", "backends": [{"address": stub.address}]}],
            }
        ) as plane,
    ):
        pool = plane.dataplane.workers
        assert isinstance(pool, WorkerPool)
        assert pool.size == worker_pool.INITIAL_WORKERS
        query = dns.message.make_query("www.example.test.", "A").to_wire()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.settimeout(5)
            for number in range(60):
                client.sendto(number.to_bytes(2, "big") + query[2:], ("127.0.0.1", plane.port))
            largest = 0
            for _ in range(60):
                client.recv(4096)
                largest = max(largest, pool.size)
        assert largest > 20
        stub.default = answer()

        def shrunk() -> bool:
            ask("127.0.0.1", plane.port, "www.example.test.")
            return pool.size == worker_pool.INITIAL_WORKERS

        wait_for(shrunk)
        assert ask("127.0.0.1", plane.port, "www.example.test.").answer
