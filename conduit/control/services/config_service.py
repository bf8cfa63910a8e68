"""`ConduitControl`: the whole configuration, traces, the ACL dry run (chapter 60 section 6)."""

from __future__ import annotations

import ipaddress
from typing import Any, Final

import grpc
import yaml

from conduit.control.configurator import Configurator
from conduit.control.messages import config_message, tree_of
from conduit.control.overlay import ApplyMode
from conduit.control.services.outcome import log_outcome, refuse, response
from conduit.observe.tracing import TraceStore
from conduit.policy.acl_check import check_acl
from conduit.snapshot import SnapshotRef
from conduit.v1 import control_pb2 as pb
from conduit.v1 import control_pb2_grpc

_MODES: Final = {2: ApplyMode.REPLACE, 3: ApplyMode.CLEAR}


class ControlService(control_pb2_grpc.ConduitControlServicer):
    """The service `ConduitControl`."""

    def __init__(
        self, configurator: Configurator, snapshots: SnapshotRef, traces: TraceStore
    ) -> None:
        self._configurator = configurator
        self._snapshots = snapshots
        self._traces = traces

    def GetConfig(self, request: Any, context: grpc.ServicerContext) -> pb.GetConfigResponse:
        return pb.GetConfigResponse(effective=config_message(self._configurator.effective()))

    def ValidateConfig(
        self, request: pb.ValidateConfigRequest, context: grpc.ServicerContext
    ) -> pb.ValidateConfigResponse:
        if not request.HasField("config"):
            refuse(context, grpc.StatusCode.INVALID_ARGUMENT, "missing config")
        errors = self._configurator.validate({"pools": [], **tree_of(request.config)})
        log_outcome("ValidateConfig", errors)
        return pb.ValidateConfigResponse(ok=not errors, errors=errors)

    def ApplyConfig(
        self, request: pb.ApplyConfigRequest, context: grpc.ServicerContext
    ) -> pb.ApplyConfigResponse:
        # unspecified and unknown numbers are a merge
        mode = _MODES.get(request.mode, ApplyMode.MERGE)
        if mode is not ApplyMode.CLEAR and not request.HasField("overlay"):
            refuse(context, grpc.StatusCode.INVALID_ARGUMENT, "missing overlay")
        result = self._configurator.apply(tree_of(request.overlay), mode)
        log_outcome("ApplyConfig", result.errors)
        return response(result)

    def ExportConfig(
        self, request: pb.ExportConfigRequest, context: grpc.ServicerContext
    ) -> pb.ExportConfigResponse:
        if request.format not in ("", "yaml"):
            refuse(context, grpc.StatusCode.INVALID_ARGUMENT, 'only format "yaml" is supported')
        try:
            return pb.ExportConfigResponse(body=self._configurator.export())
        except yaml.YAMLError as error:
            refuse(context, grpc.StatusCode.INTERNAL, f"export failed: {error}")

    def ReloadFromFile(
        self, request: Any, context: grpc.ServicerContext
    ) -> pb.ReloadFromFileResponse:
        result = self._configurator.reload("file")
        log_outcome("ReloadFromFile", result.errors)
        return pb.ReloadFromFileResponse(
            ok=result.ok, errors=result.errors, generation=result.generation
        )

    def Health(self, request: Any, context: grpc.ServicerContext) -> pb.HealthResponse:
        return pb.HealthResponse(status="serving")

    def GetTrace(
        self, request: pb.GetTraceRequest, context: grpc.ServicerContext
    ) -> pb.GetTraceResponse:
        events = self._traces.get(request.txn_id)
        if events is None:
            return pb.GetTraceResponse(found=False)
        return pb.GetTraceResponse(
            found=True,
            events=[
                pb.TraceEvent(
                    phase=event.phase,
                    elapsed_us=event.elapsed_us,
                    message=event.message,
                    pool=event.pool,
                    backend=event.backend,
                    cache=event.cache,
                )
                for event in events
            ],
        )

    def CheckAcl(
        self, request: pb.CheckAclRequest, context: grpc.ServicerContext
    ) -> pb.CheckAclResponse:
        try:
            address = str(ipaddress.ip_address(request.ip))
        except ValueError:
            message = f"invalid ip address '{request.ip}'"
            refuse(context, grpc.StatusCode.INVALID_ARGUMENT, message)
        snapshot = self._snapshots.current
        block = snapshot.config.listeners
        if not block.listeners:
            refuse(context, grpc.StatusCode.FAILED_PRECONDITION, "no listeners configured")
        listener = request.listener.strip() or None
        try:
            results = check_acl(snapshot.policy, block, address, listener)
        except ValueError as error:
            refuse(context, grpc.StatusCode.INVALID_ARGUMENT, str(error))
        return pb.CheckAclResponse(
            ip=address, results=[pb.AclCheckResult(**result) for result in results]
        )
