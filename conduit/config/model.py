"""The whole configuration as one typed, immutable object.

Blocks with defaults are always present; those that the file may leave unset are None then, and the
`..._or_default` methods fill in what applies (chapter 10 section 8).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from conduit.config.model_observe import Events, Logging, Metrics, Tracing
from conduit.config.model_policy import (
    Cache,
    DataSource,
    DataSourceLimits,
    Lookup,
    Rhai,
    Rules,
)
from conduit.config.model_traffic import (
    Acls,
    Control,
    Dataplane,
    Forward,
    Listeners,
    Orchestrator,
    Pool,
    Shutdown,
)


@dataclass(frozen=True, slots=True)
class Config:
    """A configuration; the order of the fields is that of an export (chapter 10 section 13)."""

    schema_version: int
    pools: tuple[Pool, ...]
    listeners: Listeners = field(default_factory=Listeners)
    forward: Forward = field(default_factory=Forward)
    orchestrator: Orchestrator = field(default_factory=Orchestrator)
    events: Events = field(default_factory=Events)
    rhai: Rhai = field(default_factory=Rhai)
    control: Control | None = None
    rules: Rules = field(default_factory=Rules)
    logging: Logging = field(default_factory=Logging)
    data_sources: tuple[DataSource, ...] = ()
    metrics: Metrics | None = None
    tracing: Tracing | None = None
    dataplane: Dataplane | None = None
    shutdown: Shutdown | None = None
    data_source_limits: DataSourceLimits | None = None
    caches: tuple[Cache, ...] = ()
    lookup: Lookup | None = None
    acls: Acls | None = None

    def dataplane_or_default(self) -> Dataplane:
        """Return the `dataplane` block, defaults when it is not set."""
        return self.dataplane or Dataplane()

    def shutdown_or_default(self) -> Shutdown:
        """Return the `shutdown` block, defaults when it is not set."""
        return self.shutdown or Shutdown()

    def data_source_limits_or_default(self) -> DataSourceLimits:
        """Return the table limits in force, built-in ones filled in."""
        return (self.data_source_limits or DataSourceLimits()).resolved()

    def default_pool_name(self) -> str | None:
        """Return the pool used when nothing selects one: `default`, else the first, else None."""
        if any(pool.name == "default" for pool in self.pools):
            return "default"
        return self.pools[0].name if self.pools else None

    def cidr_names(self) -> frozenset[str]:
        """Return the names of the data sources of type `cidr`."""
        return frozenset(source.name for source in self.data_sources if source.type == "cidr")
