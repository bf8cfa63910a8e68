from conduit.v1 import config_pb2 as _config_pb2
from conduit.v1 import control_pb2 as _control_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ListDataSourcesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListDataSourcesResponse(_message.Message):
    __slots__ = ("sources",)
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    sources: _containers.RepeatedCompositeFieldContainer[DataSourceSummary]
    def __init__(self, sources: _Optional[_Iterable[_Union[DataSourceSummary, _Mapping]]] = ...) -> None: ...

class DataSourceSummary(_message.Message):
    __slots__ = ("name", "type", "path")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    name: str
    type: str
    path: str
    def __init__(self, name: _Optional[str] = ..., type: _Optional[str] = ..., path: _Optional[str] = ...) -> None: ...

class GetDataSourceRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class GetDataSourceResponse(_message.Message):
    __slots__ = ("source",)
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    source: _config_pb2.DataSource
    def __init__(self, source: _Optional[_Union[_config_pb2.DataSource, _Mapping]] = ...) -> None: ...

class UpsertDataSourceRequest(_message.Message):
    __slots__ = ("source",)
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    source: _config_pb2.DataSource
    def __init__(self, source: _Optional[_Union[_config_pb2.DataSource, _Mapping]] = ...) -> None: ...

class RemoveDataSourceRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class GetDataSourceLimitsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetDataSourceLimitsResponse(_message.Message):
    __slots__ = ("limits",)
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    limits: _config_pb2.DataSourceLimits
    def __init__(self, limits: _Optional[_Union[_config_pb2.DataSourceLimits, _Mapping]] = ...) -> None: ...

class SetDataSourceLimitsRequest(_message.Message):
    __slots__ = ("limits",)
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    limits: _config_pb2.DataSourceLimits
    def __init__(self, limits: _Optional[_Union[_config_pb2.DataSourceLimits, _Mapping]] = ...) -> None: ...
