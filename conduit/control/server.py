"""The gRPC server of the control plane: listener, TLS, services, life cycle (chapter 60, 1, 2)."""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import tempfile
from collections.abc import Mapping
from concurrent import futures
from typing import Final

import grpc
from grpc_health.v1 import health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from conduit.config import Control, resolve_path
from conduit.config.address import parse_socket_address
from conduit.control.calls import MAX_REQUEST, CallInterceptor, OpenCalls
from conduit.control.configurator import Configurator
from conduit.control.request_watch import RequestWatch
from conduit.control.services.config_service import ControlService
from conduit.control.services.health_service import HealthService
from conduit.control.services.section_services import (
    CachesService,
    DataSourcesService,
    EventsService,
    MetricsService,
    OrchestratorService,
    PoolsService,
    RhaiService,
)
from conduit.control.services.standard_health import StandardHealthService
from conduit.control.tls_front import Client, TlsFront, server_context
from conduit.observe.logging import get_log
from conduit.observe.tracing import TraceStore
from conduit.snapshot import SnapshotRef
from conduit.upstream.health.registry import HealthRegistry
from conduit.v1 import (
    caches_pb2,
    caches_pb2_grpc,
    control_pb2,
    control_pb2_grpc,
    data_sources_pb2,
    data_sources_pb2_grpc,
    events_pb2,
    events_pb2_grpc,
    metrics_control_pb2,
    metrics_control_pb2_grpc,
    orchestrator_pb2,
    orchestrator_pb2_grpc,
    pools_pb2,
    pools_pb2_grpc,
    rhai_pb2,
    rhai_pb2_grpc,
)
from conduit.v1 import health_pb2 as backend_health_pb2
from conduit.v1 import health_pb2_grpc as backend_health_pb2_grpc

_log = get_log("conduit_control")

#: Threads that run calls; changes queue up behind one consumer anyway.
WORKERS: Final = 8
#: Threads that run the streams of reflection.
REFLECTION_WORKERS: Final = 2
_FILES: Final = (
    control_pb2,
    backend_health_pb2,
    pools_pb2,
    orchestrator_pb2,
    data_sources_pb2,
    events_pb2,
    rhai_pb2,
    metrics_control_pb2,
    caches_pb2,
)
#: The full names of our services.
SERVICE_NAMES: Final = tuple(
    service.full_name for file in _FILES for service in file.DESCRIPTOR.services_by_name.values()
)


class ControlServer:
    """One control listener; its settings are those of the start until the process ends."""

    def __init__(
        self,
        control: Control,
        base_dir: str,
        configurator: Configurator,
        snapshots: SnapshotRef,
        health_registry: HealthRegistry,
        traces: TraceStore,
    ) -> None:
        """`control` is the validated block; relative paths are taken from `base_dir`."""
        self._control = control
        self._base_dir = base_dir
        self._configurator = configurator
        self._snapshots = snapshots
        self._health = health_registry
        self._traces = traces
        self._server: grpc.Server | None = None
        self._front: TlsFront | None = None
        self._folder: str | None = None
        self._watches: list[RequestWatch] = []

    def start(self) -> bool:
        """Bind and serve; False after an error line when that cannot be done."""
        address = self._control.listen_address
        try:
            if self._control.tls is None:
                self._start_plain(address)
            else:
                self._start_tls(address)
        except (OSError, RuntimeError, ValueError) as error:
            _log.error("control plane failed", error=error)
            self._clean_up()
            return False
        _log.info("control plane listening", addr=address, tls=self._control.tls is not None)
        return True

    def stop(self, grace: float = 2.0) -> None:
        """Take no new calls, let running ones end within `grace` seconds, then close."""
        if self._front is not None:
            self._front.stop_accepting()
        if self._server is not None:
            self._server.stop(grace).wait(grace + 1.0)
            self._server = None
        self._clean_up()

    def _clean_up(self) -> None:
        for watch in self._watches:
            watch.stop()
        self._watches.clear()
        if self._front is not None:
            self._front.stop()
            self._front = None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _start_plain(self, address: str) -> None:
        server = self._new_server(None)
        # raises RuntimeError when the port is taken
        if not server.add_insecure_port(str(parse_socket_address(address))):
            raise RuntimeError(f"cannot bind {address}")
        server.start()
        self._server = server

    def _start_tls(self, address: str) -> None:
        tls = self._control.tls
        assert tls is not None
        if not tls.cert_path or not tls.key_path:
            raise ValueError("control.tls requires cert_path and key_path")
        paths = [
            resolve_path(self._base_dir, path) if path else ""
            for path in (tls.cert_path, tls.key_path, tls.client_ca_path or "")
        ]
        try:
            context = server_context(*paths)
        except ssl.SSLError as error:
            raise ValueError(f"control.tls: {', '.join(filter(None, paths))}: {error}") from error
        parsed = parse_socket_address(address)
        listener = socket.socket(parsed.family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(parsed.sockaddr)
            listener.listen(128)
            # only this user may reach the server behind the front, and it asks who comes
            self._folder = tempfile.mkdtemp(prefix="conduit-control-")
            path = os.path.join(self._folder, "grpc.sock")
            front = self._front = TlsFront(listener, context, path)
        except BaseException:
            listener.close()
            raise
        server = self._new_server(front.clients)
        server.add_insecure_port(f"unix:{path}")
        server.start()
        front.start()
        self._server = server

    def _keys(self) -> tuple[str, ...]:
        """The keys in force: those of the active snapshot, without a block those of the start."""
        control = self._snapshots.current.config.control
        return (self._control if control is None else control).api_keys

    def _interceptor(self, clients: Mapping[str, Client] | None) -> CallInterceptor:
        watch = RequestWatch(WORKERS)
        reflection_watch = RequestWatch(REFLECTION_WORKERS, short_patience=1.0)
        self._watches = [watch, reflection_watch]
        for thread in self._watches:
            thread.start()
        pool = futures.ThreadPoolExecutor(REFLECTION_WORKERS, "conduit-grpc-reflection")
        return CallInterceptor(self._keys, clients, watch, OpenCalls(pool, reflection_watch))

    def _new_server(self, clients: Mapping[str, Client] | None) -> grpc.Server:
        """Return a server with all services; `clients` are those of the TLS front, if any."""
        server = grpc.server(
            futures.ThreadPoolExecutor(WORKERS, thread_name_prefix="conduit-grpc"),
            interceptors=[self._interceptor(clients)],
            options=[
                ("grpc.so_reuseport", 0),
                # beyond this the library cuts the call without a word to the access log
                ("grpc.max_receive_message_length", 2 * MAX_REQUEST),
                ("grpc.max_send_message_length", -1),
            ],
        )
        configurator = self._configurator
        control_pb2_grpc.add_ConduitControlServicer_to_server(
            ControlService(configurator, self._snapshots, self._traces), server
        )
        backend_health_pb2_grpc.add_BackendHealthServicer_to_server(
            HealthService(self._health), server
        )
        for add, service in (
            (pools_pb2_grpc.add_ConduitPoolsServicer_to_server, PoolsService),
            (
                orchestrator_pb2_grpc.add_ConduitOrchestratorServicer_to_server,
                OrchestratorService,
            ),
            (
                data_sources_pb2_grpc.add_ConduitDataSourcesServicer_to_server,
                DataSourcesService,
            ),
            (events_pb2_grpc.add_ConduitEventsServicer_to_server, EventsService),
            (rhai_pb2_grpc.add_ConduitRhaiServicer_to_server, RhaiService),
            (metrics_control_pb2_grpc.add_ConduitMetricsServicer_to_server, MetricsService),
            (caches_pb2_grpc.add_ConduitCachesServicer_to_server, CachesService),
        ):
            add(service(configurator), server)
        health_pb2_grpc.add_HealthServicer_to_server(StandardHealthService(SERVICE_NAMES), server)
        if self._control.reflection_enabled:
            # the nine and itself, as the specification lists them
            reflection.enable_server_reflection((*SERVICE_NAMES, reflection.SERVICE_NAME), server)
        return server
