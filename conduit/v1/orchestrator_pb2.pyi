from conduit.v1 import config_pb2 as _config_pb2
from conduit.v1 import control_pb2 as _control_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GetOrchestratorRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetOrchestratorResponse(_message.Message):
    __slots__ = ("orchestrator",)
    ORCHESTRATOR_FIELD_NUMBER: _ClassVar[int]
    orchestrator: _config_pb2.OrchestratorConfig
    def __init__(self, orchestrator: _Optional[_Union[_config_pb2.OrchestratorConfig, _Mapping]] = ...) -> None: ...

class SetOrchestratorLimitsRequest(_message.Message):
    __slots__ = ("max_attempts", "max_txn_duration_ms")
    MAX_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    MAX_TXN_DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    max_attempts: int
    max_txn_duration_ms: int
    def __init__(self, max_attempts: _Optional[int] = ..., max_txn_duration_ms: _Optional[int] = ...) -> None: ...
