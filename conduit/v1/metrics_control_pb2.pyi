from conduit.v1 import config_pb2 as _config_pb2
from conduit.v1 import control_pb2 as _control_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GetMetricsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetMetricsResponse(_message.Message):
    __slots__ = ("metrics",)
    METRICS_FIELD_NUMBER: _ClassVar[int]
    metrics: _config_pb2.MetricsConfig
    def __init__(self, metrics: _Optional[_Union[_config_pb2.MetricsConfig, _Mapping]] = ...) -> None: ...

class PatchMetricsRequest(_message.Message):
    __slots__ = ("metrics",)
    METRICS_FIELD_NUMBER: _ClassVar[int]
    metrics: _config_pb2.MetricsConfig
    def __init__(self, metrics: _Optional[_Union[_config_pb2.MetricsConfig, _Mapping]] = ...) -> None: ...
