from conduit.v1 import config_pb2 as _config_pb2
from conduit.v1 import control_pb2 as _control_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ListCachesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListCachesResponse(_message.Message):
    __slots__ = ("caches",)
    CACHES_FIELD_NUMBER: _ClassVar[int]
    caches: _containers.RepeatedCompositeFieldContainer[CacheSummary]
    def __init__(self, caches: _Optional[_Iterable[_Union[CacheSummary, _Mapping]]] = ...) -> None: ...

class CacheSummary(_message.Message):
    __slots__ = ("name", "type", "max_entries")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    MAX_ENTRIES_FIELD_NUMBER: _ClassVar[int]
    name: str
    type: str
    max_entries: int
    def __init__(self, name: _Optional[str] = ..., type: _Optional[str] = ..., max_entries: _Optional[int] = ...) -> None: ...

class GetCacheRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class GetCacheResponse(_message.Message):
    __slots__ = ("cache",)
    CACHE_FIELD_NUMBER: _ClassVar[int]
    cache: _config_pb2.CacheInstance
    def __init__(self, cache: _Optional[_Union[_config_pb2.CacheInstance, _Mapping]] = ...) -> None: ...

class SetCacheMaxEntriesRequest(_message.Message):
    __slots__ = ("name", "max_entries")
    NAME_FIELD_NUMBER: _ClassVar[int]
    MAX_ENTRIES_FIELD_NUMBER: _ClassVar[int]
    name: str
    max_entries: int
    def __init__(self, name: _Optional[str] = ..., max_entries: _Optional[int] = ...) -> None: ...

class SetCacheLmdbHotRequest(_message.Message):
    __slots__ = ("name", "when_full", "sample_size", "sync", "sync_interval", "map_size_bytes")
    NAME_FIELD_NUMBER: _ClassVar[int]
    WHEN_FULL_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_SIZE_FIELD_NUMBER: _ClassVar[int]
    SYNC_FIELD_NUMBER: _ClassVar[int]
    SYNC_INTERVAL_FIELD_NUMBER: _ClassVar[int]
    MAP_SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    name: str
    when_full: str
    sample_size: int
    sync: str
    sync_interval: str
    map_size_bytes: int
    def __init__(self, name: _Optional[str] = ..., when_full: _Optional[str] = ..., sample_size: _Optional[int] = ..., sync: _Optional[str] = ..., sync_interval: _Optional[str] = ..., map_size_bytes: _Optional[int] = ...) -> None: ...

class SetCachePolicyHotRequest(_message.Message):
    __slots__ = ("name", "negative_cache", "on_hit", "truncated_udp", "rotate_rrset_on_serve")
    NAME_FIELD_NUMBER: _ClassVar[int]
    NEGATIVE_CACHE_FIELD_NUMBER: _ClassVar[int]
    ON_HIT_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_UDP_FIELD_NUMBER: _ClassVar[int]
    ROTATE_RRSET_ON_SERVE_FIELD_NUMBER: _ClassVar[int]
    name: str
    negative_cache: _config_pb2.CacheNegativeConfig
    on_hit: _config_pb2.CacheOnHitConfig
    truncated_udp: _config_pb2.CacheTruncatedUdpConfig
    rotate_rrset_on_serve: bool
    def __init__(self, name: _Optional[str] = ..., negative_cache: _Optional[_Union[_config_pb2.CacheNegativeConfig, _Mapping]] = ..., on_hit: _Optional[_Union[_config_pb2.CacheOnHitConfig, _Mapping]] = ..., truncated_udp: _Optional[_Union[_config_pb2.CacheTruncatedUdpConfig, _Mapping]] = ..., rotate_rrset_on_serve: _Optional[bool] = ...) -> None: ...
