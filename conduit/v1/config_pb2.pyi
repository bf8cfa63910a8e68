from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Config(_message.Message):
    __slots__ = ("schema_version", "listeners", "forward", "orchestrator", "events", "rhai", "pools", "control", "rules", "logging", "data_sources", "metrics", "tracing", "dataplane", "shutdown", "data_source_limits", "caches", "lookup", "acls")
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    LISTENERS_FIELD_NUMBER: _ClassVar[int]
    FORWARD_FIELD_NUMBER: _ClassVar[int]
    ORCHESTRATOR_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    RHAI_FIELD_NUMBER: _ClassVar[int]
    POOLS_FIELD_NUMBER: _ClassVar[int]
    CONTROL_FIELD_NUMBER: _ClassVar[int]
    RULES_FIELD_NUMBER: _ClassVar[int]
    LOGGING_FIELD_NUMBER: _ClassVar[int]
    DATA_SOURCES_FIELD_NUMBER: _ClassVar[int]
    METRICS_FIELD_NUMBER: _ClassVar[int]
    TRACING_FIELD_NUMBER: _ClassVar[int]
    DATAPLANE_FIELD_NUMBER: _ClassVar[int]
    SHUTDOWN_FIELD_NUMBER: _ClassVar[int]
    DATA_SOURCE_LIMITS_FIELD_NUMBER: _ClassVar[int]
    CACHES_FIELD_NUMBER: _ClassVar[int]
    LOOKUP_FIELD_NUMBER: _ClassVar[int]
    ACLS_FIELD_NUMBER: _ClassVar[int]
    schema_version: int
    listeners: ListenersConfig
    forward: ForwardConfig
    orchestrator: OrchestratorConfig
    events: EventsConfig
    rhai: RhaiConfig
    pools: _containers.RepeatedCompositeFieldContainer[Pool]
    control: ControlConfig
    rules: RulesConfig
    logging: LoggingConfig
    data_sources: _containers.RepeatedCompositeFieldContainer[DataSource]
    metrics: MetricsConfig
    tracing: TracingConfig
    dataplane: DataplaneConfig
    shutdown: ShutdownConfig
    data_source_limits: DataSourceLimits
    caches: _containers.RepeatedCompositeFieldContainer[CacheInstance]
    lookup: LookupConfig
    acls: AclsConfig
    def __init__(self, schema_version: _Optional[int] = ..., listeners: _Optional[_Union[ListenersConfig, _Mapping]] = ..., forward: _Optional[_Union[ForwardConfig, _Mapping]] = ..., orchestrator: _Optional[_Union[OrchestratorConfig, _Mapping]] = ..., events: _Optional[_Union[EventsConfig, _Mapping]] = ..., rhai: _Optional[_Union[RhaiConfig, _Mapping]] = ..., pools: _Optional[_Iterable[_Union[Pool, _Mapping]]] = ..., control: _Optional[_Union[ControlConfig, _Mapping]] = ..., rules: _Optional[_Union[RulesConfig, _Mapping]] = ..., logging: _Optional[_Union[LoggingConfig, _Mapping]] = ..., data_sources: _Optional[_Iterable[_Union[DataSource, _Mapping]]] = ..., metrics: _Optional[_Union[MetricsConfig, _Mapping]] = ..., tracing: _Optional[_Union[TracingConfig, _Mapping]] = ..., dataplane: _Optional[_Union[DataplaneConfig, _Mapping]] = ..., shutdown: _Optional[_Union[ShutdownConfig, _Mapping]] = ..., data_source_limits: _Optional[_Union[DataSourceLimits, _Mapping]] = ..., caches: _Optional[_Iterable[_Union[CacheInstance, _Mapping]]] = ..., lookup: _Optional[_Union[LookupConfig, _Mapping]] = ..., acls: _Optional[_Union[AclsConfig, _Mapping]] = ...) -> None: ...

class AclsConfig(_message.Message):
    __slots__ = ("default_action", "rules")
    DEFAULT_ACTION_FIELD_NUMBER: _ClassVar[int]
    RULES_FIELD_NUMBER: _ClassVar[int]
    default_action: str
    rules: _containers.RepeatedCompositeFieldContainer[AclRule]
    def __init__(self, default_action: _Optional[str] = ..., rules: _Optional[_Iterable[_Union[AclRule, _Mapping]]] = ...) -> None: ...

class AclRule(_message.Message):
    __slots__ = ("match", "action", "tag")
    MATCH_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    TAG_FIELD_NUMBER: _ClassVar[int]
    match: str
    action: str
    tag: str
    def __init__(self, match: _Optional[str] = ..., action: _Optional[str] = ..., tag: _Optional[str] = ...) -> None: ...

class ShutdownConfig(_message.Message):
    __slots__ = ("drain", "drain_timeout_ms")
    DRAIN_FIELD_NUMBER: _ClassVar[int]
    DRAIN_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    drain: bool
    drain_timeout_ms: int
    def __init__(self, drain: _Optional[bool] = ..., drain_timeout_ms: _Optional[int] = ...) -> None: ...

class MetricsConfig(_message.Message):
    __slots__ = ("enabled", "profile", "prometheus", "otel", "user_metrics", "base", "categories", "granularity", "collection", "event_export")
    class CollectionEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: MetricsCollectEmit
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[MetricsCollectEmit, _Mapping]] = ...) -> None: ...
    ENABLED_FIELD_NUMBER: _ClassVar[int]
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    PROMETHEUS_FIELD_NUMBER: _ClassVar[int]
    OTEL_FIELD_NUMBER: _ClassVar[int]
    USER_METRICS_FIELD_NUMBER: _ClassVar[int]
    BASE_FIELD_NUMBER: _ClassVar[int]
    CATEGORIES_FIELD_NUMBER: _ClassVar[int]
    GRANULARITY_FIELD_NUMBER: _ClassVar[int]
    COLLECTION_FIELD_NUMBER: _ClassVar[int]
    EVENT_EXPORT_FIELD_NUMBER: _ClassVar[int]
    enabled: bool
    profile: str
    prometheus: PrometheusMetricsConfig
    otel: OtelMetricsConfig
    user_metrics: _containers.RepeatedCompositeFieldContainer[UserMetricExportConfig]
    base: str
    categories: MetricsCategories
    granularity: MetricsGranularity
    collection: _containers.MessageMap[str, MetricsCollectEmit]
    event_export: MetricsEventExport
    def __init__(self, enabled: _Optional[bool] = ..., profile: _Optional[str] = ..., prometheus: _Optional[_Union[PrometheusMetricsConfig, _Mapping]] = ..., otel: _Optional[_Union[OtelMetricsConfig, _Mapping]] = ..., user_metrics: _Optional[_Iterable[_Union[UserMetricExportConfig, _Mapping]]] = ..., base: _Optional[str] = ..., categories: _Optional[_Union[MetricsCategories, _Mapping]] = ..., granularity: _Optional[_Union[MetricsGranularity, _Mapping]] = ..., collection: _Optional[_Mapping[str, MetricsCollectEmit]] = ..., event_export: _Optional[_Union[MetricsEventExport, _Mapping]] = ...) -> None: ...

class MetricsCategories(_message.Message):
    __slots__ = ("include", "exclude", "include_set", "exclude_set")
    INCLUDE_FIELD_NUMBER: _ClassVar[int]
    EXCLUDE_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_SET_FIELD_NUMBER: _ClassVar[int]
    EXCLUDE_SET_FIELD_NUMBER: _ClassVar[int]
    include: _containers.RepeatedScalarFieldContainer[str]
    exclude: _containers.RepeatedScalarFieldContainer[str]
    include_set: bool
    exclude_set: bool
    def __init__(self, include: _Optional[_Iterable[str]] = ..., exclude: _Optional[_Iterable[str]] = ..., include_set: _Optional[bool] = ..., exclude_set: _Optional[bool] = ...) -> None: ...

class MetricsGranularity(_message.Message):
    __slots__ = ("default", "overrides")
    class OverridesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: MetricsDimensionList
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[MetricsDimensionList, _Mapping]] = ...) -> None: ...
    DEFAULT_FIELD_NUMBER: _ClassVar[int]
    OVERRIDES_FIELD_NUMBER: _ClassVar[int]
    default: str
    overrides: _containers.MessageMap[str, MetricsDimensionList]
    def __init__(self, default: _Optional[str] = ..., overrides: _Optional[_Mapping[str, MetricsDimensionList]] = ...) -> None: ...

class MetricsDimensionList(_message.Message):
    __slots__ = ("dimensions", "rcode", "dimensions_set")
    DIMENSIONS_FIELD_NUMBER: _ClassVar[int]
    RCODE_FIELD_NUMBER: _ClassVar[int]
    DIMENSIONS_SET_FIELD_NUMBER: _ClassVar[int]
    dimensions: _containers.RepeatedScalarFieldContainer[str]
    rcode: str
    dimensions_set: bool
    def __init__(self, dimensions: _Optional[_Iterable[str]] = ..., rcode: _Optional[str] = ..., dimensions_set: _Optional[bool] = ...) -> None: ...

class MetricsCollectEmit(_message.Message):
    __slots__ = ("collect", "emit")
    COLLECT_FIELD_NUMBER: _ClassVar[int]
    EMIT_FIELD_NUMBER: _ClassVar[int]
    collect: bool
    emit: bool
    def __init__(self, collect: _Optional[bool] = ..., emit: _Optional[bool] = ...) -> None: ...

class MetricsEventExport(_message.Message):
    __slots__ = ("collect", "emit")
    COLLECT_FIELD_NUMBER: _ClassVar[int]
    EMIT_FIELD_NUMBER: _ClassVar[int]
    collect: bool
    emit: bool
    def __init__(self, collect: _Optional[bool] = ..., emit: _Optional[bool] = ...) -> None: ...

class UserMetricExportConfig(_message.Message):
    __slots__ = ("name", "export", "collect", "emit", "help")
    NAME_FIELD_NUMBER: _ClassVar[int]
    EXPORT_FIELD_NUMBER: _ClassVar[int]
    COLLECT_FIELD_NUMBER: _ClassVar[int]
    EMIT_FIELD_NUMBER: _ClassVar[int]
    HELP_FIELD_NUMBER: _ClassVar[int]
    name: str
    export: str
    collect: bool
    emit: bool
    help: str
    def __init__(self, name: _Optional[str] = ..., export: _Optional[str] = ..., collect: _Optional[bool] = ..., emit: _Optional[bool] = ..., help: _Optional[str] = ...) -> None: ...

class PrometheusMetricsConfig(_message.Message):
    __slots__ = ("listen_address", "path")
    LISTEN_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    listen_address: str
    path: str
    def __init__(self, listen_address: _Optional[str] = ..., path: _Optional[str] = ...) -> None: ...

class OtelMetricsConfig(_message.Message):
    __slots__ = ("endpoint", "push_interval_ms", "resource_attributes", "allow_invalid_certs", "headers")
    class ResourceAttributesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class HeadersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    PUSH_INTERVAL_MS_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    ALLOW_INVALID_CERTS_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    endpoint: str
    push_interval_ms: int
    resource_attributes: _containers.ScalarMap[str, str]
    allow_invalid_certs: bool
    headers: _containers.ScalarMap[str, str]
    def __init__(self, endpoint: _Optional[str] = ..., push_interval_ms: _Optional[int] = ..., resource_attributes: _Optional[_Mapping[str, str]] = ..., allow_invalid_certs: _Optional[bool] = ..., headers: _Optional[_Mapping[str, str]] = ...) -> None: ...

class TracingConfig(_message.Message):
    __slots__ = ("enabled", "activation", "output")
    ENABLED_FIELD_NUMBER: _ClassVar[int]
    ACTIVATION_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    enabled: bool
    activation: TracingActivation
    output: TracingOutput
    def __init__(self, enabled: _Optional[bool] = ..., activation: _Optional[_Union[TracingActivation, _Mapping]] = ..., output: _Optional[_Union[TracingOutput, _Mapping]] = ...) -> None: ...

class TracingActivation(_message.Message):
    __slots__ = ("tag", "selectors", "sample_percent", "sample_key", "sample_key_from")
    TAG_FIELD_NUMBER: _ClassVar[int]
    SELECTORS_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_PERCENT_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_KEY_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_KEY_FROM_FIELD_NUMBER: _ClassVar[int]
    tag: str
    selectors: _containers.RepeatedCompositeFieldContainer[Selector]
    sample_percent: float
    sample_key: str
    sample_key_from: str
    def __init__(self, tag: _Optional[str] = ..., selectors: _Optional[_Iterable[_Union[Selector, _Mapping]]] = ..., sample_percent: _Optional[float] = ..., sample_key: _Optional[str] = ..., sample_key_from: _Optional[str] = ...) -> None: ...

class TracingOutput(_message.Message):
    __slots__ = ("log_json",)
    LOG_JSON_FIELD_NUMBER: _ClassVar[int]
    log_json: bool
    def __init__(self, log_json: _Optional[bool] = ...) -> None: ...

class DataSource(_message.Message):
    __slots__ = ("name", "type", "path", "key_column", "value_column", "max_file_bytes", "max_entries", "max_key_bytes", "max_value_bytes")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    KEY_COLUMN_FIELD_NUMBER: _ClassVar[int]
    VALUE_COLUMN_FIELD_NUMBER: _ClassVar[int]
    MAX_FILE_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_ENTRIES_FIELD_NUMBER: _ClassVar[int]
    MAX_KEY_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_VALUE_BYTES_FIELD_NUMBER: _ClassVar[int]
    name: str
    type: str
    path: str
    key_column: str
    value_column: str
    max_file_bytes: int
    max_entries: int
    max_key_bytes: int
    max_value_bytes: int
    def __init__(self, name: _Optional[str] = ..., type: _Optional[str] = ..., path: _Optional[str] = ..., key_column: _Optional[str] = ..., value_column: _Optional[str] = ..., max_file_bytes: _Optional[int] = ..., max_entries: _Optional[int] = ..., max_key_bytes: _Optional[int] = ..., max_value_bytes: _Optional[int] = ...) -> None: ...

class DataSourceLimits(_message.Message):
    __slots__ = ("max_file_bytes", "max_entries", "max_key_bytes", "max_value_bytes", "max_tables", "max_total_bytes")
    MAX_FILE_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_ENTRIES_FIELD_NUMBER: _ClassVar[int]
    MAX_KEY_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_VALUE_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_TABLES_FIELD_NUMBER: _ClassVar[int]
    MAX_TOTAL_BYTES_FIELD_NUMBER: _ClassVar[int]
    max_file_bytes: int
    max_entries: int
    max_key_bytes: int
    max_value_bytes: int
    max_tables: int
    max_total_bytes: int
    def __init__(self, max_file_bytes: _Optional[int] = ..., max_entries: _Optional[int] = ..., max_key_bytes: _Optional[int] = ..., max_value_bytes: _Optional[int] = ..., max_tables: _Optional[int] = ..., max_total_bytes: _Optional[int] = ...) -> None: ...

class LoggingConfig(_message.Message):
    __slots__ = ("level", "output", "query_access")
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    QUERY_ACCESS_FIELD_NUMBER: _ClassVar[int]
    level: str
    output: str
    query_access: QueryAccessLogging
    def __init__(self, level: _Optional[str] = ..., output: _Optional[str] = ..., query_access: _Optional[_Union[QueryAccessLogging, _Mapping]] = ...) -> None: ...

class QueryAccessLogging(_message.Message):
    __slots__ = ("acl_denied", "acl_denied_sample")
    ACL_DENIED_FIELD_NUMBER: _ClassVar[int]
    ACL_DENIED_SAMPLE_FIELD_NUMBER: _ClassVar[int]
    acl_denied: str
    acl_denied_sample: AclDeniedSample
    def __init__(self, acl_denied: _Optional[str] = ..., acl_denied_sample: _Optional[_Union[AclDeniedSample, _Mapping]] = ...) -> None: ...

class AclDeniedSample(_message.Message):
    __slots__ = ("mode", "rate", "nth")
    MODE_FIELD_NUMBER: _ClassVar[int]
    RATE_FIELD_NUMBER: _ClassVar[int]
    NTH_FIELD_NUMBER: _ClassVar[int]
    mode: str
    rate: float
    nth: int
    def __init__(self, mode: _Optional[str] = ..., rate: _Optional[float] = ..., nth: _Optional[int] = ...) -> None: ...

class RulesConfig(_message.Message):
    __slots__ = ("match_mode", "rules")
    MATCH_MODE_FIELD_NUMBER: _ClassVar[int]
    RULES_FIELD_NUMBER: _ClassVar[int]
    match_mode: str
    rules: _containers.RepeatedCompositeFieldContainer[Rule]
    def __init__(self, match_mode: _Optional[str] = ..., rules: _Optional[_Iterable[_Union[Rule, _Mapping]]] = ...) -> None: ...

class Rule(_message.Message):
    __slots__ = ("name", "hook", "selectors", "actions")
    NAME_FIELD_NUMBER: _ClassVar[int]
    HOOK_FIELD_NUMBER: _ClassVar[int]
    SELECTORS_FIELD_NUMBER: _ClassVar[int]
    ACTIONS_FIELD_NUMBER: _ClassVar[int]
    name: str
    hook: str
    selectors: _containers.RepeatedCompositeFieldContainer[Selector]
    actions: _containers.RepeatedCompositeFieldContainer[Action]
    def __init__(self, name: _Optional[str] = ..., hook: _Optional[str] = ..., selectors: _Optional[_Iterable[_Union[Selector, _Mapping]]] = ..., actions: _Optional[_Iterable[_Union[Action, _Mapping]]] = ...) -> None: ...

class Selector(_message.Message):
    __slots__ = ("type", "value", "key", "key_from")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    KEY_FROM_FIELD_NUMBER: _ClassVar[int]
    type: str
    value: str
    key: str
    key_from: str
    def __init__(self, type: _Optional[str] = ..., value: _Optional[str] = ..., key: _Optional[str] = ..., key_from: _Optional[str] = ...) -> None: ...

class Action(_message.Message):
    __slots__ = ("type", "value")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    type: str
    value: str
    def __init__(self, type: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class ListenersConfig(_message.Message):
    __slots__ = ("threads", "reuse_port", "rcvbuf", "sndbuf", "listeners")
    THREADS_FIELD_NUMBER: _ClassVar[int]
    REUSE_PORT_FIELD_NUMBER: _ClassVar[int]
    RCVBUF_FIELD_NUMBER: _ClassVar[int]
    SNDBUF_FIELD_NUMBER: _ClassVar[int]
    LISTENERS_FIELD_NUMBER: _ClassVar[int]
    threads: int
    reuse_port: bool
    rcvbuf: int
    sndbuf: int
    listeners: _containers.RepeatedCompositeFieldContainer[Listener]
    def __init__(self, threads: _Optional[int] = ..., reuse_port: _Optional[bool] = ..., rcvbuf: _Optional[int] = ..., sndbuf: _Optional[int] = ..., listeners: _Optional[_Iterable[_Union[Listener, _Mapping]]] = ...) -> None: ...

class Listener(_message.Message):
    __slots__ = ("address", "protocol", "threads", "reuse_port", "name", "rcvbuf", "acls")
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    THREADS_FIELD_NUMBER: _ClassVar[int]
    REUSE_PORT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    RCVBUF_FIELD_NUMBER: _ClassVar[int]
    ACLS_FIELD_NUMBER: _ClassVar[int]
    address: str
    protocol: str
    threads: int
    reuse_port: bool
    name: str
    rcvbuf: int
    acls: AclsConfig
    def __init__(self, address: _Optional[str] = ..., protocol: _Optional[str] = ..., threads: _Optional[int] = ..., reuse_port: _Optional[bool] = ..., name: _Optional[str] = ..., rcvbuf: _Optional[int] = ..., acls: _Optional[_Union[AclsConfig, _Mapping]] = ...) -> None: ...

class DataplaneConfig(_message.Message):
    __slots__ = ("runtime", "policy_workers", "io_workers", "slot_chunk_size")
    RUNTIME_FIELD_NUMBER: _ClassVar[int]
    POLICY_WORKERS_FIELD_NUMBER: _ClassVar[int]
    IO_WORKERS_FIELD_NUMBER: _ClassVar[int]
    SLOT_CHUNK_SIZE_FIELD_NUMBER: _ClassVar[int]
    runtime: str
    policy_workers: int
    io_workers: int
    slot_chunk_size: int
    def __init__(self, runtime: _Optional[str] = ..., policy_workers: _Optional[int] = ..., io_workers: _Optional[int] = ..., slot_chunk_size: _Optional[int] = ...) -> None: ...

class ForwardConfig(_message.Message):
    __slots__ = ("outstanding_per_backend", "timeout_ms", "sources_v4", "source_selection", "sources_v6", "upstream_transport", "client_tcp_uses_upstream_tcp")
    OUTSTANDING_PER_BACKEND_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    SOURCES_V4_FIELD_NUMBER: _ClassVar[int]
    SOURCE_SELECTION_FIELD_NUMBER: _ClassVar[int]
    SOURCES_V6_FIELD_NUMBER: _ClassVar[int]
    UPSTREAM_TRANSPORT_FIELD_NUMBER: _ClassVar[int]
    CLIENT_TCP_USES_UPSTREAM_TCP_FIELD_NUMBER: _ClassVar[int]
    outstanding_per_backend: int
    timeout_ms: int
    sources_v4: _containers.RepeatedScalarFieldContainer[str]
    source_selection: str
    sources_v6: _containers.RepeatedScalarFieldContainer[str]
    upstream_transport: str
    client_tcp_uses_upstream_tcp: bool
    def __init__(self, outstanding_per_backend: _Optional[int] = ..., timeout_ms: _Optional[int] = ..., sources_v4: _Optional[_Iterable[str]] = ..., source_selection: _Optional[str] = ..., sources_v6: _Optional[_Iterable[str]] = ..., upstream_transport: _Optional[str] = ..., client_tcp_uses_upstream_tcp: _Optional[bool] = ...) -> None: ...

class OrchestratorConfig(_message.Message):
    __slots__ = ("max_attempts", "max_txn_duration_ms", "txn_table_capacity")
    MAX_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    MAX_TXN_DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    TXN_TABLE_CAPACITY_FIELD_NUMBER: _ClassVar[int]
    max_attempts: int
    max_txn_duration_ms: int
    txn_table_capacity: int
    def __init__(self, max_attempts: _Optional[int] = ..., max_txn_duration_ms: _Optional[int] = ..., txn_table_capacity: _Optional[int] = ...) -> None: ...

class EventsConfig(_message.Message):
    __slots__ = ("queue_depth", "drop_policy", "sinks")
    QUEUE_DEPTH_FIELD_NUMBER: _ClassVar[int]
    DROP_POLICY_FIELD_NUMBER: _ClassVar[int]
    SINKS_FIELD_NUMBER: _ClassVar[int]
    queue_depth: int
    drop_policy: str
    sinks: _containers.RepeatedCompositeFieldContainer[EventSink]
    def __init__(self, queue_depth: _Optional[int] = ..., drop_policy: _Optional[str] = ..., sinks: _Optional[_Iterable[_Union[EventSink, _Mapping]]] = ...) -> None: ...

class EventSinkFilters(_message.Message):
    __slots__ = ("tag_required", "selectors", "sample_percent", "pool", "backend", "sample_key", "sample_key_from")
    TAG_REQUIRED_FIELD_NUMBER: _ClassVar[int]
    SELECTORS_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_PERCENT_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    BACKEND_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_KEY_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_KEY_FROM_FIELD_NUMBER: _ClassVar[int]
    tag_required: str
    selectors: _containers.RepeatedCompositeFieldContainer[Selector]
    sample_percent: float
    pool: str
    backend: str
    sample_key: str
    sample_key_from: str
    def __init__(self, tag_required: _Optional[str] = ..., selectors: _Optional[_Iterable[_Union[Selector, _Mapping]]] = ..., sample_percent: _Optional[float] = ..., pool: _Optional[str] = ..., backend: _Optional[str] = ..., sample_key: _Optional[str] = ..., sample_key_from: _Optional[str] = ...) -> None: ...

class ConnectRetry(_message.Message):
    __slots__ = ("initial_ms", "max_ms", "multiplier", "max_elapsed_ms", "jitter")
    INITIAL_MS_FIELD_NUMBER: _ClassVar[int]
    MAX_MS_FIELD_NUMBER: _ClassVar[int]
    MULTIPLIER_FIELD_NUMBER: _ClassVar[int]
    MAX_ELAPSED_MS_FIELD_NUMBER: _ClassVar[int]
    JITTER_FIELD_NUMBER: _ClassVar[int]
    initial_ms: int
    max_ms: int
    multiplier: float
    max_elapsed_ms: int
    jitter: bool
    def __init__(self, initial_ms: _Optional[int] = ..., max_ms: _Optional[int] = ..., multiplier: _Optional[float] = ..., max_elapsed_ms: _Optional[int] = ..., jitter: _Optional[bool] = ...) -> None: ...

class EventSink(_message.Message):
    __slots__ = ("type", "export_id", "destinations", "emit", "filters", "extra_fields", "extra_tags", "name", "connect_retry")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    EXPORT_ID_FIELD_NUMBER: _ClassVar[int]
    DESTINATIONS_FIELD_NUMBER: _ClassVar[int]
    EMIT_FIELD_NUMBER: _ClassVar[int]
    FILTERS_FIELD_NUMBER: _ClassVar[int]
    EXTRA_FIELDS_FIELD_NUMBER: _ClassVar[int]
    EXTRA_TAGS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    CONNECT_RETRY_FIELD_NUMBER: _ClassVar[int]
    type: str
    export_id: str
    destinations: _containers.RepeatedScalarFieldContainer[str]
    emit: _containers.RepeatedScalarFieldContainer[str]
    filters: EventSinkFilters
    extra_fields: _containers.RepeatedScalarFieldContainer[str]
    extra_tags: _containers.RepeatedScalarFieldContainer[str]
    name: str
    connect_retry: ConnectRetry
    def __init__(self, type: _Optional[str] = ..., export_id: _Optional[str] = ..., destinations: _Optional[_Iterable[str]] = ..., emit: _Optional[_Iterable[str]] = ..., filters: _Optional[_Union[EventSinkFilters, _Mapping]] = ..., extra_fields: _Optional[_Iterable[str]] = ..., extra_tags: _Optional[_Iterable[str]] = ..., name: _Optional[str] = ..., connect_retry: _Optional[_Union[ConnectRetry, _Mapping]] = ...) -> None: ...

class RhaiConfig(_message.Message):
    __slots__ = ("max_operations", "max_call_depth", "hook_timeout_ms")
    MAX_OPERATIONS_FIELD_NUMBER: _ClassVar[int]
    MAX_CALL_DEPTH_FIELD_NUMBER: _ClassVar[int]
    HOOK_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    max_operations: int
    max_call_depth: int
    hook_timeout_ms: int
    def __init__(self, max_operations: _Optional[int] = ..., max_call_depth: _Optional[int] = ..., hook_timeout_ms: _Optional[int] = ...) -> None: ...

class Pool(_message.Message):
    __slots__ = ("name", "backends", "sources_v4", "sources_v6", "max_inflight", "health", "remove")
    NAME_FIELD_NUMBER: _ClassVar[int]
    BACKENDS_FIELD_NUMBER: _ClassVar[int]
    SOURCES_V4_FIELD_NUMBER: _ClassVar[int]
    SOURCES_V6_FIELD_NUMBER: _ClassVar[int]
    MAX_INFLIGHT_FIELD_NUMBER: _ClassVar[int]
    HEALTH_FIELD_NUMBER: _ClassVar[int]
    REMOVE_FIELD_NUMBER: _ClassVar[int]
    name: str
    backends: _containers.RepeatedCompositeFieldContainer[Backend]
    sources_v4: _containers.RepeatedScalarFieldContainer[str]
    sources_v6: _containers.RepeatedScalarFieldContainer[str]
    max_inflight: int
    health: HealthCheck
    remove: bool
    def __init__(self, name: _Optional[str] = ..., backends: _Optional[_Iterable[_Union[Backend, _Mapping]]] = ..., sources_v4: _Optional[_Iterable[str]] = ..., sources_v6: _Optional[_Iterable[str]] = ..., max_inflight: _Optional[int] = ..., health: _Optional[_Union[HealthCheck, _Mapping]] = ..., remove: _Optional[bool] = ...) -> None: ...

class HealthCheck(_message.Message):
    __slots__ = ("enabled", "interval_ms", "timeout_ms", "rise", "fall", "probe_qname", "probe_qtype", "acceptable_rcodes", "initial_state", "latency_weighting", "min_eligible", "passive_fast_trip", "passive_fall")
    ENABLED_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_MS_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    RISE_FIELD_NUMBER: _ClassVar[int]
    FALL_FIELD_NUMBER: _ClassVar[int]
    PROBE_QNAME_FIELD_NUMBER: _ClassVar[int]
    PROBE_QTYPE_FIELD_NUMBER: _ClassVar[int]
    ACCEPTABLE_RCODES_FIELD_NUMBER: _ClassVar[int]
    INITIAL_STATE_FIELD_NUMBER: _ClassVar[int]
    LATENCY_WEIGHTING_FIELD_NUMBER: _ClassVar[int]
    MIN_ELIGIBLE_FIELD_NUMBER: _ClassVar[int]
    PASSIVE_FAST_TRIP_FIELD_NUMBER: _ClassVar[int]
    PASSIVE_FALL_FIELD_NUMBER: _ClassVar[int]
    enabled: bool
    interval_ms: int
    timeout_ms: int
    rise: int
    fall: int
    probe_qname: str
    probe_qtype: str
    acceptable_rcodes: _containers.RepeatedScalarFieldContainer[str]
    initial_state: str
    latency_weighting: bool
    min_eligible: int
    passive_fast_trip: bool
    passive_fall: int
    def __init__(self, enabled: _Optional[bool] = ..., interval_ms: _Optional[int] = ..., timeout_ms: _Optional[int] = ..., rise: _Optional[int] = ..., fall: _Optional[int] = ..., probe_qname: _Optional[str] = ..., probe_qtype: _Optional[str] = ..., acceptable_rcodes: _Optional[_Iterable[str]] = ..., initial_state: _Optional[str] = ..., latency_weighting: _Optional[bool] = ..., min_eligible: _Optional[int] = ..., passive_fast_trip: _Optional[bool] = ..., passive_fall: _Optional[int] = ...) -> None: ...

class Backend(_message.Message):
    __slots__ = ("address", "weight", "name", "probe_qname", "probe_qtype", "probe_source", "transport", "remove")
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PROBE_QNAME_FIELD_NUMBER: _ClassVar[int]
    PROBE_QTYPE_FIELD_NUMBER: _ClassVar[int]
    PROBE_SOURCE_FIELD_NUMBER: _ClassVar[int]
    TRANSPORT_FIELD_NUMBER: _ClassVar[int]
    REMOVE_FIELD_NUMBER: _ClassVar[int]
    address: str
    weight: int
    name: str
    probe_qname: str
    probe_qtype: str
    probe_source: str
    transport: str
    remove: bool
    def __init__(self, address: _Optional[str] = ..., weight: _Optional[int] = ..., name: _Optional[str] = ..., probe_qname: _Optional[str] = ..., probe_qtype: _Optional[str] = ..., probe_source: _Optional[str] = ..., transport: _Optional[str] = ..., remove: _Optional[bool] = ...) -> None: ...

class ControlTlsConfig(_message.Message):
    __slots__ = ("cert_path", "key_path", "client_ca_path")
    CERT_PATH_FIELD_NUMBER: _ClassVar[int]
    KEY_PATH_FIELD_NUMBER: _ClassVar[int]
    CLIENT_CA_PATH_FIELD_NUMBER: _ClassVar[int]
    cert_path: str
    key_path: str
    client_ca_path: str
    def __init__(self, cert_path: _Optional[str] = ..., key_path: _Optional[str] = ..., client_ca_path: _Optional[str] = ...) -> None: ...

class ControlConfig(_message.Message):
    __slots__ = ("listen_address", "reflection_enabled", "api_keys", "tls")
    LISTEN_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    REFLECTION_ENABLED_FIELD_NUMBER: _ClassVar[int]
    API_KEYS_FIELD_NUMBER: _ClassVar[int]
    TLS_FIELD_NUMBER: _ClassVar[int]
    listen_address: str
    reflection_enabled: bool
    api_keys: _containers.RepeatedScalarFieldContainer[str]
    tls: ControlTlsConfig
    def __init__(self, listen_address: _Optional[str] = ..., reflection_enabled: _Optional[bool] = ..., api_keys: _Optional[_Iterable[str]] = ..., tls: _Optional[_Union[ControlTlsConfig, _Mapping]] = ...) -> None: ...

class LookupConfig(_message.Message):
    __slots__ = ("profiles",)
    class ProfilesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: LookupProfile
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[LookupProfile, _Mapping]] = ...) -> None: ...
    PROFILES_FIELD_NUMBER: _ClassVar[int]
    profiles: _containers.MessageMap[str, LookupProfile]
    def __init__(self, profiles: _Optional[_Mapping[str, LookupProfile]] = ...) -> None: ...

class LookupProfile(_message.Message):
    __slots__ = ("providers",)
    PROVIDERS_FIELD_NUMBER: _ClassVar[int]
    providers: _containers.RepeatedCompositeFieldContainer[LookupProvider]
    def __init__(self, providers: _Optional[_Iterable[_Union[LookupProvider, _Mapping]]] = ...) -> None: ...

class LookupProvider(_message.Message):
    __slots__ = ("type", "cache")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    CACHE_FIELD_NUMBER: _ClassVar[int]
    type: str
    cache: str
    def __init__(self, type: _Optional[str] = ..., cache: _Optional[str] = ...) -> None: ...

class CacheInstance(_message.Message):
    __slots__ = ("name", "type", "negative_cache", "on_hit", "rotate_rrset_on_serve", "memory", "key", "max_entries", "truncated_udp", "lmdb")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    NEGATIVE_CACHE_FIELD_NUMBER: _ClassVar[int]
    ON_HIT_FIELD_NUMBER: _ClassVar[int]
    ROTATE_RRSET_ON_SERVE_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    MAX_ENTRIES_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_UDP_FIELD_NUMBER: _ClassVar[int]
    LMDB_FIELD_NUMBER: _ClassVar[int]
    name: str
    type: str
    negative_cache: CacheNegativeConfig
    on_hit: CacheOnHitConfig
    rotate_rrset_on_serve: bool
    memory: CacheMemoryConfig
    key: CacheKeyConfig
    max_entries: int
    truncated_udp: CacheTruncatedUdpConfig
    lmdb: CacheLmdbConfig
    def __init__(self, name: _Optional[str] = ..., type: _Optional[str] = ..., negative_cache: _Optional[_Union[CacheNegativeConfig, _Mapping]] = ..., on_hit: _Optional[_Union[CacheOnHitConfig, _Mapping]] = ..., rotate_rrset_on_serve: _Optional[bool] = ..., memory: _Optional[_Union[CacheMemoryConfig, _Mapping]] = ..., key: _Optional[_Union[CacheKeyConfig, _Mapping]] = ..., max_entries: _Optional[int] = ..., truncated_udp: _Optional[_Union[CacheTruncatedUdpConfig, _Mapping]] = ..., lmdb: _Optional[_Union[CacheLmdbConfig, _Mapping]] = ...) -> None: ...

class CacheLmdbConfig(_message.Message):
    __slots__ = ("path", "map_size_bytes", "when_full", "sample_size", "sync", "sync_interval", "shard_count")
    PATH_FIELD_NUMBER: _ClassVar[int]
    MAP_SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    WHEN_FULL_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_SIZE_FIELD_NUMBER: _ClassVar[int]
    SYNC_FIELD_NUMBER: _ClassVar[int]
    SYNC_INTERVAL_FIELD_NUMBER: _ClassVar[int]
    SHARD_COUNT_FIELD_NUMBER: _ClassVar[int]
    path: str
    map_size_bytes: int
    when_full: str
    sample_size: int
    sync: str
    sync_interval: str
    shard_count: int
    def __init__(self, path: _Optional[str] = ..., map_size_bytes: _Optional[int] = ..., when_full: _Optional[str] = ..., sample_size: _Optional[int] = ..., sync: _Optional[str] = ..., sync_interval: _Optional[str] = ..., shard_count: _Optional[int] = ...) -> None: ...

class CacheTruncatedUdpConfig(_message.Message):
    __slots__ = ("enabled", "ttl_secs")
    ENABLED_FIELD_NUMBER: _ClassVar[int]
    TTL_SECS_FIELD_NUMBER: _ClassVar[int]
    enabled: bool
    ttl_secs: int
    def __init__(self, enabled: _Optional[bool] = ..., ttl_secs: _Optional[int] = ...) -> None: ...

class CacheNegativeConfig(_message.Message):
    __slots__ = ("enabled", "nxdomain_covers_descendants", "servfail_ttl_secs")
    ENABLED_FIELD_NUMBER: _ClassVar[int]
    NXDOMAIN_COVERS_DESCENDANTS_FIELD_NUMBER: _ClassVar[int]
    SERVFAIL_TTL_SECS_FIELD_NUMBER: _ClassVar[int]
    enabled: bool
    nxdomain_covers_descendants: bool
    servfail_ttl_secs: int
    def __init__(self, enabled: _Optional[bool] = ..., nxdomain_covers_descendants: _Optional[bool] = ..., servfail_ttl_secs: _Optional[int] = ...) -> None: ...

class CacheOnHitConfig(_message.Message):
    __slots__ = ("response_rules",)
    RESPONSE_RULES_FIELD_NUMBER: _ClassVar[int]
    response_rules: str
    def __init__(self, response_rules: _Optional[str] = ...) -> None: ...

class CacheMemoryConfig(_message.Message):
    __slots__ = ("shard_count", "eviction")
    SHARD_COUNT_FIELD_NUMBER: _ClassVar[int]
    EVICTION_FIELD_NUMBER: _ClassVar[int]
    shard_count: int
    eviction: str
    def __init__(self, shard_count: _Optional[int] = ..., eviction: _Optional[str] = ...) -> None: ...

class CacheKeyConfig(_message.Message):
    __slots__ = ("augment",)
    AUGMENT_FIELD_NUMBER: _ClassVar[int]
    augment: CacheKeyAugmentConfig
    def __init__(self, augment: _Optional[_Union[CacheKeyAugmentConfig, _Mapping]] = ...) -> None: ...

class CacheKeyAugmentConfig(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
