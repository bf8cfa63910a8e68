from conduit.v1 import config_pb2 as _config_pb2
from conduit.v1 import control_pb2 as _control_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GetEventsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetEventsResponse(_message.Message):
    __slots__ = ("events",)
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    events: _config_pb2.EventsConfig
    def __init__(self, events: _Optional[_Union[_config_pb2.EventsConfig, _Mapping]] = ...) -> None: ...

class GetEventSinkRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class GetEventSinkResponse(_message.Message):
    __slots__ = ("sink",)
    SINK_FIELD_NUMBER: _ClassVar[int]
    sink: _config_pb2.EventSink
    def __init__(self, sink: _Optional[_Union[_config_pb2.EventSink, _Mapping]] = ...) -> None: ...

class SetEventSinkFiltersRequest(_message.Message):
    __slots__ = ("name", "filters")
    NAME_FIELD_NUMBER: _ClassVar[int]
    FILTERS_FIELD_NUMBER: _ClassVar[int]
    name: str
    filters: _config_pb2.EventSinkFilters
    def __init__(self, name: _Optional[str] = ..., filters: _Optional[_Union[_config_pb2.EventSinkFilters, _Mapping]] = ...) -> None: ...

class SetEventSinkEmitRequest(_message.Message):
    __slots__ = ("name", "emit", "extra_fields", "extra_tags", "extra_fields_set", "extra_tags_set")
    NAME_FIELD_NUMBER: _ClassVar[int]
    EMIT_FIELD_NUMBER: _ClassVar[int]
    EXTRA_FIELDS_FIELD_NUMBER: _ClassVar[int]
    EXTRA_TAGS_FIELD_NUMBER: _ClassVar[int]
    EXTRA_FIELDS_SET_FIELD_NUMBER: _ClassVar[int]
    EXTRA_TAGS_SET_FIELD_NUMBER: _ClassVar[int]
    name: str
    emit: _containers.RepeatedScalarFieldContainer[str]
    extra_fields: _containers.RepeatedScalarFieldContainer[str]
    extra_tags: _containers.RepeatedScalarFieldContainer[str]
    extra_fields_set: bool
    extra_tags_set: bool
    def __init__(self, name: _Optional[str] = ..., emit: _Optional[_Iterable[str]] = ..., extra_fields: _Optional[_Iterable[str]] = ..., extra_tags: _Optional[_Iterable[str]] = ..., extra_fields_set: _Optional[bool] = ..., extra_tags_set: _Optional[bool] = ...) -> None: ...
