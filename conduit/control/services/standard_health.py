"""`grpc.health.v1.Health`, for probes that know nothing else: calls of one answer only."""

from __future__ import annotations

from collections.abc import Collection

import grpc
from grpc_health.v1 import health_pb2 as pb
from grpc_health.v1 import health_pb2_grpc

from conduit.control.services.outcome import refuse


class StandardHealthService(health_pb2_grpc.HealthServicer):  # type: ignore[misc]
    """Says SERVING for the server and each service; `Watch` would hold a thread: UNIMPLEMENTED."""

    def __init__(self, services: Collection[str]) -> None:
        """`services` are full names."""
        self._services = frozenset(("", *services))

    def Check(
        self, request: pb.HealthCheckRequest, context: grpc.ServicerContext
    ) -> pb.HealthCheckResponse:
        if request.service not in self._services:
            refuse(context, grpc.StatusCode.NOT_FOUND, f"unknown service '{request.service}'")
        return pb.HealthCheckResponse(status=pb.HealthCheckResponse.SERVING)
