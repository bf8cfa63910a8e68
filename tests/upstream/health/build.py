"""Health registries for tests: pool P with backends A and B, and a wall clock that stands."""

from __future__ import annotations

from conduit.config import load_text
from conduit.upstream.health.registry import HealthRegistry
from conduit.upstream.health.scopes import Scope, ScopeLevel
from conduit.upstream.health.settings import HealthTarget, health_targets
from conduit.upstream.health.state import BackendHealth
from tests.support.scripted import make_query

QUERY = make_query()


def targets(health: str = "", backends: str = "", more: str = "") -> list[HealthTarget]:
    """Targets of pool P; `health` and `backends` are more YAML."""
    members = backends or "{name: a, address: '10.0.0.1:53'}, {name: b, address: '10.0.0.2:53'}"
    extra = f", {health}" if health else ""
    yaml = (
        "schema_version: 1\npools:\n"
        f"  - {{name: P, health: {{enabled: true{extra}}}, backends: [{members}]}}\n{more}"
    )
    return health_targets(load_text(yaml, "test.yaml").config)


def registry(health: str = "", backends: str = "") -> HealthRegistry:
    found = HealthRegistry(wall_clock=lambda: 1000.0)
    found.reconcile(targets(health, backends))
    return found


def entry(health: HealthRegistry, backend: str = "a") -> BackendHealth:
    found = health.find("P", backend)
    assert found is not None
    return found


def fail_forward(health: HealthRegistry, backend: str = "a", reason: str = "timeout") -> None:
    health.forward_failed(entry(health, backend).backend, reason, QUERY, "192.0.2.9")


def state(health: HealthRegistry, backend: str = "a") -> tuple[str, str]:
    found = entry(health, backend)
    return found.observed.text, found.applied.text


GLOBAL = Scope(ScopeLevel.GLOBAL)
POOL = Scope(ScopeLevel.POOL, "P")
A = Scope(ScopeLevel.BACKEND, "P", "a")
B = Scope(ScopeLevel.BACKEND, "P", "10.0.0.2:53")
