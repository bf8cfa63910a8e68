"""Fixtures for end-to-end tests: the daemon, a stub upstream and real servers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemon import Conduit
from tests.support.servers import Server, start_dnsmasq, start_nsd, start_unbound
from tests.support.stub_upstream import StubUpstream

# a fork while the library's threads run would abort the child now and then; read at its import
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")


@pytest.fixture
def stub() -> Iterator[StubUpstream]:
    with StubUpstream() as server:
        yield server


@pytest.fixture(params=["sync", "split_io"])
def runtime(request: pytest.FixtureRequest) -> str:
    """Every end-to-end test runs under both runtimes."""
    return str(request.param)


@pytest.fixture
def start_conduit(tmp_path: Path, runtime: str) -> Iterator[Callable[..., Conduit]]:
    """Start daemons that end with the test."""
    started: list[Conduit] = []

    def start(config: Mapping[str, Any], **options: Any) -> Conduit:
        daemon = Conduit(tmp_path / f"conduit{len(started)}", config, runtime=runtime, **options)
        started.append(daemon)
        return daemon

    yield start
    for daemon in started:
        daemon.stop()


@pytest.fixture(scope="session")
def nsd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = start_nsd(tmp_path_factory.mktemp("nsd"))
    yield server
    server.stop()


@pytest.fixture(scope="session")
def unbound(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = start_unbound(tmp_path_factory.mktemp("unbound"))
    yield server
    server.stop()


@pytest.fixture(scope="session")
def dnsmasq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = start_dnsmasq(tmp_path_factory.mktemp("dnsmasq"))
    yield server
    server.stop()
