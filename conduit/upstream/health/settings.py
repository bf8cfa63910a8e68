"""What health needs to know of one backend, resolved from its pool and its own overrides."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass

from conduit.config import Backend as BackendConfig
from conduit.config import Config, Health, Pool
from conduit.upstream.backend import Backend, compile_backend
from conduit.wire import name_from_text, parse_rcode, parse_record_type

OPTIMISTIC = "optimistic"
REQUIRE_1_GOOD = "require_1_good"
REQUIRE_FULL_RISE = "require_full_rise"


@dataclass(frozen=True, slots=True)
class ProbeIdentity:
    """What a probe asks, and how: a change of it makes a backend's health start afresh."""

    qname: bytes
    qtype: int
    source: str | None
    tcp: bool


@dataclass(frozen=True, slots=True)
class HealthSettings:
    """Thresholds and timing of one backend; times are seconds."""

    interval: float
    timeout: float
    rise: int
    fall: int
    #: Failures of live traffic that mark a backend down, or 0 when passive health is off.
    passive_fall: int
    #: RCODEs that count as success; empty means any.
    acceptable_rcodes: frozenset[int]
    initial_state: str
    latency_weighting: bool
    probe: ProbeIdentity


@dataclass(frozen=True, slots=True)
class HealthTarget:
    """One backend of a pool with health enabled."""

    backend: Backend
    settings: HealthSettings

    @property
    def key(self) -> tuple[str, str]:
        """Pool and canonical address: the identity of health state."""
        return (self.backend.pool, self.backend.key)


def health_targets(config: Config) -> list[HealthTarget]:
    """Return the targets of a validated configuration, in its order."""
    tcp = config.forward.transport == "tcp_only"
    return [
        HealthTarget(
            compile_backend(pool.name, backend), _settings(pool, pool.health, backend, tcp)
        )
        for pool in config.pools
        if pool.health is not None and pool.health.enabled
        for backend in pool.backends
    ]


def _settings(pool: Pool, health: Health, backend: BackendConfig, tcp: bool) -> HealthSettings:
    qname = (backend.probe_qname or "").strip() or health.probe_qname
    qtype = (backend.probe_qtype or "").strip() or health.probe_qtype
    return HealthSettings(
        interval=health.interval_ms / 1000,
        timeout=health.effective_timeout_ms / 1000,
        rise=health.rise,
        fall=health.fall,
        passive_fall=health.passive_fall if health.passive_fast_trip else 0,
        acceptable_rcodes=_rcodes(health.acceptable_rcodes),
        initial_state=health.initial_state.strip() or OPTIMISTIC,
        latency_weighting=health.latency_weighting,
        probe=ProbeIdentity(
            name_from_text(qname).lower(), parse_record_type(qtype), backend.probe_source, tcp
        ),
    )


def _rcodes(names: Sequence[str]) -> frozenset[int]:
    return frozenset(parse_rcode(name) for name in names)


def source_family(source: str) -> int:
    """Return the address family of a `probe_source`."""
    return socket.AF_INET6 if ":" in source else socket.AF_INET
