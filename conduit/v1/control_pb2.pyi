from conduit.v1 import config_pb2 as _config_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class OverlayApplyMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OVERLAY_APPLY_MODE_UNSPECIFIED: _ClassVar[OverlayApplyMode]
    OVERLAY_APPLY_MODE_MERGE: _ClassVar[OverlayApplyMode]
    OVERLAY_APPLY_MODE_REPLACE: _ClassVar[OverlayApplyMode]
    OVERLAY_APPLY_MODE_CLEAR: _ClassVar[OverlayApplyMode]
OVERLAY_APPLY_MODE_UNSPECIFIED: OverlayApplyMode
OVERLAY_APPLY_MODE_MERGE: OverlayApplyMode
OVERLAY_APPLY_MODE_REPLACE: OverlayApplyMode
OVERLAY_APPLY_MODE_CLEAR: OverlayApplyMode

class GetConfigRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetConfigResponse(_message.Message):
    __slots__ = ("effective",)
    EFFECTIVE_FIELD_NUMBER: _ClassVar[int]
    effective: _config_pb2.Config
    def __init__(self, effective: _Optional[_Union[_config_pb2.Config, _Mapping]] = ...) -> None: ...

class ValidateConfigRequest(_message.Message):
    __slots__ = ("config",)
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    config: _config_pb2.Config
    def __init__(self, config: _Optional[_Union[_config_pb2.Config, _Mapping]] = ...) -> None: ...

class ValidateConfigResponse(_message.Message):
    __slots__ = ("ok", "errors")
    OK_FIELD_NUMBER: _ClassVar[int]
    ERRORS_FIELD_NUMBER: _ClassVar[int]
    ok: bool
    errors: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, ok: _Optional[bool] = ..., errors: _Optional[_Iterable[str]] = ...) -> None: ...

class ApplyConfigRequest(_message.Message):
    __slots__ = ("overlay", "mode")
    OVERLAY_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    overlay: _config_pb2.Config
    mode: OverlayApplyMode
    def __init__(self, overlay: _Optional[_Union[_config_pb2.Config, _Mapping]] = ..., mode: _Optional[_Union[OverlayApplyMode, str]] = ...) -> None: ...

class ApplyConfigResponse(_message.Message):
    __slots__ = ("ok", "errors", "generation", "notes")
    OK_FIELD_NUMBER: _ClassVar[int]
    ERRORS_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    ok: bool
    errors: _containers.RepeatedScalarFieldContainer[str]
    generation: int
    notes: _containers.RepeatedCompositeFieldContainer[ConfigApplyStatusNote]
    def __init__(self, ok: _Optional[bool] = ..., errors: _Optional[_Iterable[str]] = ..., generation: _Optional[int] = ..., notes: _Optional[_Iterable[_Union[ConfigApplyStatusNote, _Mapping]]] = ...) -> None: ...

class ConfigApplyStatusNote(_message.Message):
    __slots__ = ("kind", "message")
    KIND_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    kind: str
    message: str
    def __init__(self, kind: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...

class ExportConfigRequest(_message.Message):
    __slots__ = ("format",)
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    format: str
    def __init__(self, format: _Optional[str] = ...) -> None: ...

class ExportConfigResponse(_message.Message):
    __slots__ = ("body",)
    BODY_FIELD_NUMBER: _ClassVar[int]
    body: str
    def __init__(self, body: _Optional[str] = ...) -> None: ...

class ReloadFromFileRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ReloadFromFileResponse(_message.Message):
    __slots__ = ("ok", "errors", "generation", "notes")
    OK_FIELD_NUMBER: _ClassVar[int]
    ERRORS_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    ok: bool
    errors: _containers.RepeatedScalarFieldContainer[str]
    generation: int
    notes: _containers.RepeatedCompositeFieldContainer[ConfigApplyStatusNote]
    def __init__(self, ok: _Optional[bool] = ..., errors: _Optional[_Iterable[str]] = ..., generation: _Optional[int] = ..., notes: _Optional[_Iterable[_Union[ConfigApplyStatusNote, _Mapping]]] = ...) -> None: ...

class HealthRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class HealthResponse(_message.Message):
    __slots__ = ("status",)
    STATUS_FIELD_NUMBER: _ClassVar[int]
    status: str
    def __init__(self, status: _Optional[str] = ...) -> None: ...

class GetTraceRequest(_message.Message):
    __slots__ = ("txn_id",)
    TXN_ID_FIELD_NUMBER: _ClassVar[int]
    txn_id: str
    def __init__(self, txn_id: _Optional[str] = ...) -> None: ...

class TraceEvent(_message.Message):
    __slots__ = ("phase", "elapsed_us", "message", "pool", "backend", "cache")
    PHASE_FIELD_NUMBER: _ClassVar[int]
    ELAPSED_US_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    BACKEND_FIELD_NUMBER: _ClassVar[int]
    CACHE_FIELD_NUMBER: _ClassVar[int]
    phase: str
    elapsed_us: int
    message: str
    pool: str
    backend: str
    cache: str
    def __init__(self, phase: _Optional[str] = ..., elapsed_us: _Optional[int] = ..., message: _Optional[str] = ..., pool: _Optional[str] = ..., backend: _Optional[str] = ..., cache: _Optional[str] = ...) -> None: ...

class GetTraceResponse(_message.Message):
    __slots__ = ("found", "events")
    FOUND_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    found: bool
    events: _containers.RepeatedCompositeFieldContainer[TraceEvent]
    def __init__(self, found: _Optional[bool] = ..., events: _Optional[_Iterable[_Union[TraceEvent, _Mapping]]] = ...) -> None: ...

class CheckAclRequest(_message.Message):
    __slots__ = ("ip", "listener")
    IP_FIELD_NUMBER: _ClassVar[int]
    LISTENER_FIELD_NUMBER: _ClassVar[int]
    ip: str
    listener: str
    def __init__(self, ip: _Optional[str] = ..., listener: _Optional[str] = ...) -> None: ...

class AclCheckResult(_message.Message):
    __slots__ = ("listener", "decision", "tag", "matched", "action")
    LISTENER_FIELD_NUMBER: _ClassVar[int]
    DECISION_FIELD_NUMBER: _ClassVar[int]
    TAG_FIELD_NUMBER: _ClassVar[int]
    MATCHED_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    listener: str
    decision: str
    tag: str
    matched: str
    action: str
    def __init__(self, listener: _Optional[str] = ..., decision: _Optional[str] = ..., tag: _Optional[str] = ..., matched: _Optional[str] = ..., action: _Optional[str] = ...) -> None: ...

class CheckAclResponse(_message.Message):
    __slots__ = ("ip", "results")
    IP_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    ip: str
    results: _containers.RepeatedCompositeFieldContainer[AclCheckResult]
    def __init__(self, ip: _Optional[str] = ..., results: _Optional[_Iterable[_Union[AclCheckResult, _Mapping]]] = ...) -> None: ...
