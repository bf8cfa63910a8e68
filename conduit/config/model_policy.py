"""Typed blocks of policy: rules, scripts, tables, lookup profiles and caches.

Attribute names are the YAML keys. An optional key that is not set is None; a list is a tuple, a map
a read-only mapping. Source: chapter 10 sections 6.9 to 6.11, chapter 30, chapter 40.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from conduit.config.quantities import parse_byte_size, parse_duration_ms


@dataclass(frozen=True, slots=True)
class Selector:
    """A condition of a rule, an event filter or the trace activation."""

    type: str
    value: str
    key: str | None = None
    key_from: str | None = None


@dataclass(frozen=True, slots=True)
class Action:
    """One action of a rule."""

    type: str
    value: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: every selector must match, then the actions run in order."""

    name: str
    hook: str
    selectors: tuple[Selector, ...]
    actions: tuple[Action, ...]


@dataclass(frozen=True, slots=True)
class Rules:
    """The `rules` block."""

    match_mode: str = "first_match"
    rules: tuple[Rule, ...] = ()


@dataclass(frozen=True, slots=True)
class Rhai:
    """The `rhai` block."""

    max_operations: int = 10000
    max_call_depth: int = 32
    hook_timeout_ms: int = 50

    @property
    def effective_hook_timeout_ms(self) -> int:
        """Time limit of one hook run in milliseconds; 0 means 50, never unlimited."""
        return self.hook_timeout_ms or 50


@dataclass(frozen=True, slots=True)
class DataSource:
    """One table; a limit that is unset or 0 is inherited from `data_source_limits`."""

    name: str
    type: str
    path: str
    key_column: str = ""
    value_column: str = ""
    max_file_bytes: int | None = None
    max_entries: int | None = None
    max_key_bytes: int | None = None
    max_value_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class DataSourceLimits:
    """The `data_source_limits` block as written: 0 means the built-in limit."""

    max_file_bytes: int = 0
    max_entries: int = 0
    max_key_bytes: int = 0
    max_value_bytes: int = 0
    max_tables: int = 0
    max_total_bytes: int = 0

    def resolved(self) -> DataSourceLimits:
        """Return the limits in force, built-in ones filled in (chapter 30 section 10.2)."""
        return DataSourceLimits(
            max_file_bytes=self.max_file_bytes or 16_777_216,
            max_entries=self.max_entries or 1_000_000,
            max_key_bytes=self.max_key_bytes or 1024,
            max_value_bytes=self.max_value_bytes or 4096,
            max_tables=self.max_tables or 64,
            max_total_bytes=self.max_total_bytes or 67_108_864,
        )


@dataclass(frozen=True, slots=True)
class LookupProvider:
    """One step of a lookup profile."""

    type: str
    cache: str | None = None


@dataclass(frozen=True, slots=True)
class LookupProfile:
    """Providers in the order in which they are asked."""

    providers: tuple[LookupProvider, ...]


@dataclass(frozen=True, slots=True)
class Lookup:
    """The `lookup` block."""

    profiles: Mapping[str, LookupProfile]


@dataclass(frozen=True, slots=True)
class NegativeCache:
    """`caches[].negative_cache`; the lifetime is in seconds, 0 stores no SERVFAIL."""

    enabled: bool = True
    nxdomain_covers_descendants: bool = True
    servfail_ttl_secs: int = 10


@dataclass(frozen=True, slots=True)
class OnHit:
    """`caches[].on_hit`; an empty value means `run`."""

    response_rules: str


@dataclass(frozen=True, slots=True)
class TruncatedUdp:
    """`caches[].truncated_udp`; `ttl_secs` (seconds) is required when enabled."""

    enabled: bool = False
    ttl_secs: int | None = None


@dataclass(frozen=True, slots=True)
class MemoryStore:
    """`caches[].memory`; an empty `eviction` means `passive`."""

    shard_count: int = 16
    eviction: str = "passive"


@dataclass(frozen=True, slots=True)
class LmdbStore:
    """`caches[].lmdb`; `map_size` in bytes, `path` as written."""

    path: str
    map_size: int = field(metadata={"convert": parse_byte_size})
    when_full: str = "evict_one"
    sample_size: int = 16
    shard_count: int | None = None
    sync: str = "full"
    sync_interval: str | None = None

    @property
    def policy_when_full(self) -> str:
        """`when_full` with its default filled in."""
        return self.when_full or "evict_one"

    @property
    def sync_interval_ms(self) -> int:
        """Flush period in milliseconds for `sync: periodic`, one second when unset."""
        return 1000 if self.sync_interval is None else parse_duration_ms(self.sync_interval)


@dataclass(frozen=True, slots=True)
class CacheKey:
    """`caches[].key`: reserved, without effect."""

    augment: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class Cache:
    """One cache instance; `max_entries` 0 means unlimited."""

    name: str
    type: str
    max_entries: int = 0
    rotate_rrset_on_serve: bool = False
    negative_cache: NegativeCache = field(default_factory=NegativeCache)
    on_hit: OnHit | None = None
    truncated_udp: TruncatedUdp | None = None
    memory: MemoryStore | None = None
    lmdb: LmdbStore | None = None
    key: CacheKey | None = None

    @property
    def runs_response_rules(self) -> bool:
        """True when a hit runs the response rules."""
        return self.on_hit is None or self.on_hit.response_rules != "skip"

    def memory_or_default(self) -> MemoryStore:
        """Return the memory settings, defaults when the block is not set."""
        return self.memory or MemoryStore()

    def truncated_udp_or_default(self) -> TruncatedUdp:
        """Return the settings for truncated answers, defaults when the block is not set."""
        return self.truncated_udp or TruncatedUdp()
