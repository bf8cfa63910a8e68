from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class HealthScopeLevel(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    HEALTH_SCOPE_LEVEL_UNSPECIFIED: _ClassVar[HealthScopeLevel]
    HEALTH_SCOPE_LEVEL_BACKEND: _ClassVar[HealthScopeLevel]
    HEALTH_SCOPE_LEVEL_POOL: _ClassVar[HealthScopeLevel]
    HEALTH_SCOPE_LEVEL_GLOBAL: _ClassVar[HealthScopeLevel]

class HealthScopeState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    HEALTH_SCOPE_STATE_UNSPECIFIED: _ClassVar[HealthScopeState]
    HEALTH_SCOPE_STATE_INHERIT: _ClassVar[HealthScopeState]
    HEALTH_SCOPE_STATE_FROZEN: _ClassVar[HealthScopeState]
    HEALTH_SCOPE_STATE_AUTOMATIC: _ClassVar[HealthScopeState]

class HealthLiveness(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    HEALTH_LIVENESS_UNSPECIFIED: _ClassVar[HealthLiveness]
    HEALTH_LIVENESS_UNKNOWN: _ClassVar[HealthLiveness]
    HEALTH_LIVENESS_UP: _ClassVar[HealthLiveness]
    HEALTH_LIVENESS_DOWN: _ClassVar[HealthLiveness]

class HealthControlAction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    HEALTH_CONTROL_ACTION_UNSPECIFIED: _ClassVar[HealthControlAction]
    HEALTH_CONTROL_ACTION_FREEZE: _ClassVar[HealthControlAction]
    HEALTH_CONTROL_ACTION_SET_UP: _ClassVar[HealthControlAction]
    HEALTH_CONTROL_ACTION_SET_DOWN: _ClassVar[HealthControlAction]
    HEALTH_CONTROL_ACTION_RESUME_AUTOMATIC: _ClassVar[HealthControlAction]
HEALTH_SCOPE_LEVEL_UNSPECIFIED: HealthScopeLevel
HEALTH_SCOPE_LEVEL_BACKEND: HealthScopeLevel
HEALTH_SCOPE_LEVEL_POOL: HealthScopeLevel
HEALTH_SCOPE_LEVEL_GLOBAL: HealthScopeLevel
HEALTH_SCOPE_STATE_UNSPECIFIED: HealthScopeState
HEALTH_SCOPE_STATE_INHERIT: HealthScopeState
HEALTH_SCOPE_STATE_FROZEN: HealthScopeState
HEALTH_SCOPE_STATE_AUTOMATIC: HealthScopeState
HEALTH_LIVENESS_UNSPECIFIED: HealthLiveness
HEALTH_LIVENESS_UNKNOWN: HealthLiveness
HEALTH_LIVENESS_UP: HealthLiveness
HEALTH_LIVENESS_DOWN: HealthLiveness
HEALTH_CONTROL_ACTION_UNSPECIFIED: HealthControlAction
HEALTH_CONTROL_ACTION_FREEZE: HealthControlAction
HEALTH_CONTROL_ACTION_SET_UP: HealthControlAction
HEALTH_CONTROL_ACTION_SET_DOWN: HealthControlAction
HEALTH_CONTROL_ACTION_RESUME_AUTOMATIC: HealthControlAction

class HealthScope(_message.Message):
    __slots__ = ("level", "pool", "backend")
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    BACKEND_FIELD_NUMBER: _ClassVar[int]
    level: HealthScopeLevel
    pool: str
    backend: str
    def __init__(self, level: _Optional[_Union[HealthScopeLevel, str]] = ..., pool: _Optional[str] = ..., backend: _Optional[str] = ...) -> None: ...

class BackendHealthFilter(_message.Message):
    __slots__ = ("pool", "backend")
    POOL_FIELD_NUMBER: _ClassVar[int]
    BACKEND_FIELD_NUMBER: _ClassVar[int]
    pool: str
    backend: str
    def __init__(self, pool: _Optional[str] = ..., backend: _Optional[str] = ...) -> None: ...

class BackendHealthEntry(_message.Message):
    __slots__ = ("pool", "backend", "observed", "applied", "scope_state", "eligible", "latency_ewma_ms", "last_transition_unix_ms")
    POOL_FIELD_NUMBER: _ClassVar[int]
    BACKEND_FIELD_NUMBER: _ClassVar[int]
    OBSERVED_FIELD_NUMBER: _ClassVar[int]
    APPLIED_FIELD_NUMBER: _ClassVar[int]
    SCOPE_STATE_FIELD_NUMBER: _ClassVar[int]
    ELIGIBLE_FIELD_NUMBER: _ClassVar[int]
    LATENCY_EWMA_MS_FIELD_NUMBER: _ClassVar[int]
    LAST_TRANSITION_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    pool: str
    backend: str
    observed: HealthLiveness
    applied: HealthLiveness
    scope_state: HealthScopeState
    eligible: bool
    latency_ewma_ms: float
    last_transition_unix_ms: int
    def __init__(self, pool: _Optional[str] = ..., backend: _Optional[str] = ..., observed: _Optional[_Union[HealthLiveness, str]] = ..., applied: _Optional[_Union[HealthLiveness, str]] = ..., scope_state: _Optional[_Union[HealthScopeState, str]] = ..., eligible: _Optional[bool] = ..., latency_ewma_ms: _Optional[float] = ..., last_transition_unix_ms: _Optional[int] = ...) -> None: ...

class GetBackendHealthRequest(_message.Message):
    __slots__ = ("filter",)
    FILTER_FIELD_NUMBER: _ClassVar[int]
    filter: BackendHealthFilter
    def __init__(self, filter: _Optional[_Union[BackendHealthFilter, _Mapping]] = ...) -> None: ...

class GetBackendHealthResponse(_message.Message):
    __slots__ = ("entries",)
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[BackendHealthEntry]
    def __init__(self, entries: _Optional[_Iterable[_Union[BackendHealthEntry, _Mapping]]] = ...) -> None: ...

class SetHealthControlRequest(_message.Message):
    __slots__ = ("scope", "action")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    scope: HealthScope
    action: HealthControlAction
    def __init__(self, scope: _Optional[_Union[HealthScope, _Mapping]] = ..., action: _Optional[_Union[HealthControlAction, str]] = ...) -> None: ...

class SetHealthControlResult(_message.Message):
    __slots__ = ("scope", "scope_state", "pool", "backend", "applied")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    SCOPE_STATE_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    BACKEND_FIELD_NUMBER: _ClassVar[int]
    APPLIED_FIELD_NUMBER: _ClassVar[int]
    scope: HealthScope
    scope_state: HealthScopeState
    pool: str
    backend: str
    applied: HealthLiveness
    def __init__(self, scope: _Optional[_Union[HealthScope, _Mapping]] = ..., scope_state: _Optional[_Union[HealthScopeState, str]] = ..., pool: _Optional[str] = ..., backend: _Optional[str] = ..., applied: _Optional[_Union[HealthLiveness, str]] = ...) -> None: ...

class SetHealthControlResponse(_message.Message):
    __slots__ = ("results",)
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[SetHealthControlResult]
    def __init__(self, results: _Optional[_Iterable[_Union[SetHealthControlResult, _Mapping]]] = ...) -> None: ...
