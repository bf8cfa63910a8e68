from conduit.v1 import config_pb2 as _config_pb2
from conduit.v1 import control_pb2 as _control_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ListPoolsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListPoolsResponse(_message.Message):
    __slots__ = ("pools",)
    POOLS_FIELD_NUMBER: _ClassVar[int]
    pools: _containers.RepeatedCompositeFieldContainer[PoolSummary]
    def __init__(self, pools: _Optional[_Iterable[_Union[PoolSummary, _Mapping]]] = ...) -> None: ...

class PoolSummary(_message.Message):
    __slots__ = ("name", "backend_count")
    NAME_FIELD_NUMBER: _ClassVar[int]
    BACKEND_COUNT_FIELD_NUMBER: _ClassVar[int]
    name: str
    backend_count: int
    def __init__(self, name: _Optional[str] = ..., backend_count: _Optional[int] = ...) -> None: ...

class GetPoolRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class GetPoolResponse(_message.Message):
    __slots__ = ("pool",)
    POOL_FIELD_NUMBER: _ClassVar[int]
    pool: _config_pb2.Pool
    def __init__(self, pool: _Optional[_Union[_config_pb2.Pool, _Mapping]] = ...) -> None: ...

class SetBackendWeightRequest(_message.Message):
    __slots__ = ("pool", "backend", "weight")
    POOL_FIELD_NUMBER: _ClassVar[int]
    BACKEND_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    pool: str
    backend: str
    weight: int
    def __init__(self, pool: _Optional[str] = ..., backend: _Optional[str] = ..., weight: _Optional[int] = ...) -> None: ...

class AddBackendRequest(_message.Message):
    __slots__ = ("pool", "backend")
    POOL_FIELD_NUMBER: _ClassVar[int]
    BACKEND_FIELD_NUMBER: _ClassVar[int]
    pool: str
    backend: _config_pb2.Backend
    def __init__(self, pool: _Optional[str] = ..., backend: _Optional[_Union[_config_pb2.Backend, _Mapping]] = ...) -> None: ...

class RemoveBackendRequest(_message.Message):
    __slots__ = ("pool", "backend")
    POOL_FIELD_NUMBER: _ClassVar[int]
    BACKEND_FIELD_NUMBER: _ClassVar[int]
    pool: str
    backend: str
    def __init__(self, pool: _Optional[str] = ..., backend: _Optional[str] = ...) -> None: ...
