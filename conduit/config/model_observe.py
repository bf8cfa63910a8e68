"""Typed blocks of observability: metrics, tracing, event export and logging.

Attribute names are the YAML keys. An optional key that is not set is None; a list is a tuple, a map
a read-only mapping. Source: chapter 10 sections 6.12 to 6.14, chapter 50.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from conduit.config.model_policy import Selector


@dataclass(frozen=True, slots=True)
class SinkFilters:
    """`events.sinks[].filters`: all clauses must hold."""

    tag_required: str | None = None
    selectors: tuple[Selector, ...] = ()
    sample_percent: float = 100.0
    sample_key: str | None = None
    sample_key_from: str | None = None
    pool: str | None = None
    backend: str | None = None

    @property
    def is_empty(self) -> bool:
        """True when no clause is given: such filters count as absent."""
        texts = (self.tag_required, self.sample_key, self.sample_key_from, self.pool, self.backend)
        return not any(texts) and not self.selectors and self.sample_percent == 100.0


@dataclass(frozen=True, slots=True)
class ConnectRetry:
    """`events.sinks[].connect_retry`; times in milliseconds, 0 means the default."""

    initial_ms: int = 1000
    max_ms: int = 30000
    multiplier: float = 2.0
    max_elapsed_ms: int = 0
    jitter: bool = True

    def resolved(self) -> ConnectRetry:
        """Return the settings with zeros replaced by the defaults."""
        return ConnectRetry(
            self.initial_ms or 1000,
            self.max_ms or 30000,
            self.multiplier or 2.0,
            self.max_elapsed_ms,
            self.jitter,
        )


@dataclass(frozen=True, slots=True)
class Sink:
    """One event sink."""

    type: str
    name: str | None = None
    export_id: str | None = None
    destinations: tuple[str, ...] = ()
    emit: tuple[str, ...] = ()
    extra_fields: tuple[str, ...] = ()
    extra_tags: tuple[str, ...] = ()
    filters: SinkFilters | None = None
    connect_retry: ConnectRetry = field(default_factory=ConnectRetry)

    @property
    def canonical_name(self) -> str:
        """The `sink` label: the name, else the export id, else empty (not valid)."""
        return self.name or (self.export_id or "").strip()

    @property
    def identity(self) -> str:
        """The dnstap identity: the export id, else the name."""
        return (self.export_id or "").strip() or (self.name or "")

    @property
    def emitted(self) -> tuple[str, ...]:
        """The exported points, with the default filled in."""
        return self.emit or ("query", "response")


@dataclass(frozen=True, slots=True)
class Events:
    """The `events` block."""

    queue_depth: int = 4096
    drop_policy: str = "drop_oldest"
    sinks: tuple[Sink, ...] = ()


@dataclass(frozen=True, slots=True)
class MetricCategories:
    """`metrics.categories`."""

    include: tuple[str, ...] | None = None
    exclude: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class CollectEmit:
    """`metrics.collection.<category>`: unset means true."""

    collect: bool | None = None
    emit: bool | None = None


@dataclass(frozen=True, slots=True)
class FamilyGranularity:
    """One family of `metrics.granularity`: `dimensions` None keeps the preset."""

    dimensions: tuple[str, ...] | None = None
    rcode: str | None = None


@dataclass(frozen=True, slots=True)
class Granularity:
    """`metrics.granularity`: the preset and the families that override it."""

    default: str | None = None
    families: Mapping[str, FamilyGranularity] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EventExport:
    """`metrics.event_export`."""

    collect: bool = True
    emit: bool = True


@dataclass(frozen=True, slots=True)
class Prometheus:
    """`metrics.prometheus`; an empty address means no scrape listener."""

    listen_address: str = ""
    path: str = "/metrics"

    @property
    def effective_path(self) -> str:
        """The scrape path, `/metrics` when empty."""
        return self.path or "/metrics"


@dataclass(frozen=True, slots=True)
class Otel:
    """`metrics.otel`; an empty endpoint means no push."""

    endpoint: str = ""
    push_interval_ms: int | None = None
    allow_invalid_certs: bool = False
    resource_attributes: Mapping[str, str] = field(default_factory=dict)
    # header values carry credentials
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def effective_push_interval_ms(self) -> int:
        """Push period in milliseconds; unset and 0 mean 15000."""
        return self.push_interval_ms or 15000


@dataclass(frozen=True, slots=True)
class UserMetric:
    """One entry of `metrics.user_metrics`."""

    name: str
    collect: bool | None = None
    emit: bool | None = None
    export: str | None = None
    help: str | None = None


@dataclass(frozen=True, slots=True)
class Metrics:
    """The `metrics` block; an empty `base` means `standard`, or what `profile` says."""

    enabled: bool = False
    base: str = ""
    profile: str | None = None
    categories: MetricCategories | None = None
    collection: Mapping[str, CollectEmit] = field(default_factory=dict)
    granularity: Granularity | None = None
    event_export: EventExport | None = None
    prometheus: Prometheus | None = None
    otel: Otel | None = None
    user_metrics: tuple[UserMetric, ...] = ()


@dataclass(frozen=True, slots=True)
class TracingActivation:
    """`tracing.activation`: which queries are traced."""

    tag: str | None = None
    selectors: tuple[Selector, ...] = ()
    sample_percent: float = 100.0
    sample_key: str | None = None
    sample_key_from: str | None = None


@dataclass(frozen=True, slots=True)
class TracingOutput:
    """`tracing.output`."""

    log_json: bool = False


@dataclass(frozen=True, slots=True)
class Tracing:
    """The `tracing` block."""

    enabled: bool = False
    activation: TracingActivation = field(default_factory=TracingActivation)
    output: TracingOutput = field(default_factory=TracingOutput)


@dataclass(frozen=True, slots=True)
class AclDeniedSample:
    """`logging.query_access.acl_denied_sample`; `rate` in percent."""

    mode: str
    rate: float = 100.0
    nth: int | None = None


@dataclass(frozen=True, slots=True)
class QueryAccess:
    """`logging.query_access`; an unset or empty level means `off`."""

    acl_denied: str | None = None
    acl_denied_sample: AclDeniedSample | None = None


@dataclass(frozen=True, slots=True)
class Logging:
    """The `logging` block; empty values mean the defaults."""

    level: str = "info"
    output: str = "stderr"
    query_access: QueryAccess | None = None
