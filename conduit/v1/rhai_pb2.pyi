from conduit.v1 import config_pb2 as _config_pb2
from conduit.v1 import control_pb2 as _control_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GetRhaiRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetRhaiResponse(_message.Message):
    __slots__ = ("rhai",)
    RHAI_FIELD_NUMBER: _ClassVar[int]
    rhai: _config_pb2.RhaiConfig
    def __init__(self, rhai: _Optional[_Union[_config_pb2.RhaiConfig, _Mapping]] = ...) -> None: ...

class SetRhaiLimitsRequest(_message.Message):
    __slots__ = ("max_operations", "max_call_depth", "hook_timeout_ms")
    MAX_OPERATIONS_FIELD_NUMBER: _ClassVar[int]
    MAX_CALL_DEPTH_FIELD_NUMBER: _ClassVar[int]
    HOOK_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    max_operations: int
    max_call_depth: int
    hook_timeout_ms: int
    def __init__(self, max_operations: _Optional[int] = ..., max_call_depth: _Optional[int] = ..., hook_timeout_ms: _Optional[int] = ...) -> None: ...
