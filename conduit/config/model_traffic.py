"""Typed blocks of the packet path: listeners, pools, forwarding, limits, runtime and shutdown.

Attribute names are the YAML keys. An optional key that is not set is None; a list is a tuple. All
`_ms` values are milliseconds, `_bytes` and buffer sizes are bytes. Source: chapter 10 sections 6.2
to 6.8, chapter 20 section 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field

DEFAULT_WEIGHT = 100


@dataclass(frozen=True, slots=True)
class AclRule:
    """One entry of `acls.rules`."""

    match: str
    action: str
    tag: str | None = None


@dataclass(frozen=True, slots=True)
class Acls:
    """A client access list; an empty `default_action` means `allow` (chapter 30 section 11.1)."""

    default_action: str = "allow"
    rules: tuple[AclRule, ...] = ()


@dataclass(frozen=True, slots=True)
class Listener:
    """One entry of `listeners.listeners`; unset values come from the block."""

    address: str
    protocol: str
    threads: int | None = None
    reuse_port: bool | None = None
    rcvbuf: int | None = None
    name: str | None = None
    acls: Acls | None = None

    @property
    def is_tcp(self) -> bool:
        """True for `tcp` in any case; every other protocol value is UDP."""
        return self.protocol.lower() == "tcp"

    @property
    def label(self) -> str:
        """Metric, event and log label: the name, else the address exactly as written."""
        return self.name or self.address

    @property
    def ingress_name(self) -> str:
        """Resolved ingress name: the name, else `<protocol>:<address>`."""
        return self.name or f"{self.protocol.lower()}:{self.address}"

    def resolved_threads(self, block: Listeners) -> int:
        """Workers for this entry."""
        return block.threads if self.threads is None else self.threads

    def resolved_reuse_port(self, block: Listeners) -> bool:
        """Whether SO_REUSEPORT is wanted."""
        return block.reuse_port if self.reuse_port is None else self.reuse_port

    def resolved_rcvbuf(self, block: Listeners) -> int:
        """Receive buffer in bytes; 0 leaves it to the system."""
        return block.rcvbuf if self.rcvbuf is None else self.rcvbuf


@dataclass(frozen=True, slots=True)
class Listeners:
    """The `listeners` block."""

    threads: int = 1
    reuse_port: bool = False
    rcvbuf: int = 0
    sndbuf: int = 0
    listeners: tuple[Listener, ...] = ()


@dataclass(frozen=True, slots=True)
class Health:
    """`pools[].health`."""

    enabled: bool = False
    interval_ms: int = 1000
    timeout_ms: int | None = None
    rise: int = 3
    fall: int = 2
    probe_qname: str = "."
    probe_qtype: str = "NS"
    acceptable_rcodes: tuple[str, ...] = ()
    initial_state: str = "optimistic"
    latency_weighting: bool = False
    min_eligible: int = 0
    passive_fast_trip: bool = True
    passive_fall: int = 2

    @property
    def effective_timeout_ms(self) -> int:
        """Probe reply timeout in milliseconds: the interval when unset."""
        return self.interval_ms if self.timeout_ms is None else self.timeout_ms


@dataclass(frozen=True, slots=True)
class Backend:
    """One entry of `pools[].backends`."""

    address: str = ""
    name: str | None = None
    weight: int | None = None
    probe_qname: str | None = None
    probe_qtype: str | None = None
    probe_source: str | None = None
    transport: str | None = None
    remove: bool | None = None

    @property
    def label(self) -> str:
        """Metric, event and log label and overlay identity: the name, else the address."""
        return self.name or self.address

    @property
    def effective_weight(self) -> int:
        """Load-balancing weight, 100 when unset."""
        return DEFAULT_WEIGHT if self.weight is None else self.weight


@dataclass(frozen=True, slots=True)
class Pool:
    """One entry of `pools`."""

    name: str
    sources_v4: tuple[str, ...] = ()
    sources_v6: tuple[str, ...] = ()
    max_inflight: int | None = None
    remove: bool | None = None
    health: Health | None = None
    backends: tuple[Backend, ...] = ()


@dataclass(frozen=True, slots=True)
class Forward:
    """The `forward` block."""

    outstanding_per_backend: int = 100
    timeout_ms: int = 2000
    sources_v4: tuple[str, ...] = ()
    sources_v6: tuple[str, ...] = ()
    source_selection: str = "round_robin"
    upstream_transport: str = "udp_only"
    client_tcp_uses_upstream_tcp: bool = False

    @property
    def transport(self) -> str:
        """The upstream transport with spaces trimmed, `udp_only` for an empty value."""
        return self.upstream_transport.strip() or "udp_only"


@dataclass(frozen=True, slots=True)
class Orchestrator:
    """The `orchestrator` block."""

    max_attempts: int = 3
    max_txn_duration_ms: int = 5000
    txn_table_capacity: int = 1024
    route_failure_policy: str = "no_answer"


@dataclass(frozen=True, slots=True)
class Dataplane:
    """The `dataplane` block; `workers_max` is a key of this implementation (None: automatic)."""

    runtime: str = "sync"
    policy_workers: int = 1
    io_workers: int = 1
    slot_chunk_size: int | None = None
    workers_max: int | None = None

    @property
    def resolved_runtime(self) -> str:
        """The runtime that serves: `sync`, or `split_io` (also for the value `tokio`)."""
        return {"": "sync", "tokio": "split_io"}.get(self.runtime, self.runtime)


@dataclass(frozen=True, slots=True)
class Shutdown:
    """The `shutdown` block."""

    drain: bool = True
    drain_timeout_ms: int = 5000


@dataclass(frozen=True, slots=True)
class ControlTls:
    """`control.tls`; a non-empty `client_ca_path` asks for client certificates."""

    cert_path: str
    key_path: str
    client_ca_path: str | None = None


@dataclass(frozen=True, slots=True)
class Control:
    """The `control` block: its presence turns the control plane on."""

    listen_address: str = "127.0.0.1:5199"
    reflection_enabled: bool = False
    # keys are secrets: they stay out of representations and so out of logs
    api_keys: tuple[str, ...] = field(default=(), repr=False)
    tls: ControlTls | None = None
