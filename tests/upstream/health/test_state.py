"""Every transition of chapter 60 sections 12 to 14, with its acceptance examples."""

from __future__ import annotations

import logging

import pytest

from conduit.observe.logging import get_log
from conduit.upstream.health.registry import HealthRegistry
from conduit.upstream.health.scopes import ControlAction, Scope, ScopeError, ScopeLevel
from conduit.upstream.health.state import Liveness
from conduit.upstream.pool import Pool, first_attempt_weights
from tests.upstream.health.build import (
    GLOBAL,
    POOL,
    A,
    B,
    entry,
    fail_forward,
    registry,
    state,
    targets,
)


def succeed(health: HealthRegistry, times: int = 1, backend: str = "a", rtt: float = 10.0) -> None:
    for _ in range(times):
        health.probe_succeeded(entry(health, backend), rtt)


def fail(health: HealthRegistry, times: int = 1, backend: str = "a") -> None:
    for _ in range(times):
        health.probe_failed(entry(health, backend))


def test_optimistic_start_is_up_and_unknown() -> None:
    assert state(registry()) == ("Unknown", "Up")


def test_require_1_good_needs_one_success() -> None:
    health = registry("initial_state: require_1_good")
    assert state(health) == ("Unknown", "Down")
    succeed(health)
    assert state(health) == ("Up", "Up")
    # only without a verdict: after a failure it takes the whole rise
    fail(health, 2)
    succeed(health, 2)
    assert state(health) == ("Down", "Down")
    succeed(health)
    assert state(health) == ("Up", "Up")


def test_require_full_rise_needs_rise_successes_in_a_row() -> None:
    health = registry("initial_state: require_full_rise")
    succeed(health, 2)
    fail(health)
    succeed(health, 2)
    assert state(health) == ("Unknown", "Down")
    succeed(health)
    assert state(health) == ("Up", "Up")


def test_ch60_example_21_transitions_from_unknown() -> None:
    health = registry()
    fail(health)
    assert state(health) == ("Unknown", "Up")
    fail(health)
    assert state(health) == ("Down", "Down")
    assert entry(health).transitions == 2


def test_ch60_example_21_transitions_after_up() -> None:
    health = registry()
    succeed(health, 3)
    assert entry(health).transitions == 1
    fail(health, 2)
    assert entry(health).transitions == 3
    assert entry(health).last_transition == 1000.0


def test_ch60_example_21_one_transition_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    health = registry()
    fail(health, 3)
    lines = [r for r in caplog.records if r.getMessage() == "backend health transition"]
    assert len(lines) == 1
    assert lines[0].conduit_fields == {  # type: ignore[attr-defined]
        "pool": "P",
        "backend": "10.0.0.1:53",
        "observed": "Down",
        "applied": "Down",
    }


def test_ch60_example_25_an_answer_resets_the_passive_run() -> None:
    health = registry()
    succeed(health, 3)
    fail_forward(health)
    health.forward_succeeded(entry(health).backend)
    fail_forward(health)
    assert state(health) == ("Up", "Up")


def test_ch60_example_26_passive_trip_and_recovery_by_probes_only(
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setattr(get_log("conduit_core"), "debug_enabled", True)
    health = registry()
    succeed(health, 5)
    fail_forward(health)
    fail_forward(health)
    assert state(health) == ("Down", "Down")
    fail_forward(health)
    messages = [r.getMessage() for r in caplog.records if "passive" in r.getMessage()]
    assert messages == [
        "passive health: forward failure",
        "passive fast-trip: backend marked down",
        "passive health: forward failure (backend already down)",
    ]
    fields = next(
        r.conduit_fields  # type: ignore[attr-defined]
        for r in caplog.records
        if "marked down" in r.getMessage()
    )
    assert fields["passive_failures"] == 2
    assert fields["passive_fall"] == 2
    assert fields["reason"] == "timeout"
    assert fields["client"] == "192.0.2.9"
    health.forward_succeeded(entry(health).backend)
    assert state(health) == ("Down", "Down")
    succeed(health, 2)
    assert state(health) == ("Down", "Down")
    succeed(health)
    assert state(health) == ("Up", "Up")


def test_after_a_probe_recovery_one_more_failure_trips_again() -> None:
    health = registry()
    fail_forward(health)
    fail_forward(health)
    succeed(health, 3)
    fail_forward(health)
    assert state(health) == ("Down", "Down")


def test_passive_off() -> None:
    health = registry("passive_fast_trip: false")
    for _ in range(10):
        fail_forward(health)
    assert state(health) == ("Unknown", "Up")


def test_ch60_example_27_freeze_keeps_applied() -> None:
    health = registry()
    succeed(health, 3)
    health.control(ControlAction.FREEZE, A)
    fail(health, 2)
    assert state(health) == ("Down", "Up")
    assert entry(health).frozen
    assert health.is_up(entry(health).backend)


def test_ch60_example_28_drain_survives_a_global_resume() -> None:
    health = registry()
    health.control(ControlAction.SET_DOWN, A)
    health.control(ControlAction.FREEZE, GLOBAL)
    results = health.control(ControlAction.RESUME_AUTOMATIC, GLOBAL)
    assert [r.frozen for r in results] == [True, False]
    assert state(health)[1] == "Down"


def test_ch60_example_29_an_explicit_automatic_resists_a_broader_freeze() -> None:
    health = registry()
    health.control(ControlAction.RESUME_AUTOMATIC, A)
    health.control(ControlAction.FREEZE, GLOBAL)
    assert not entry(health, "a").frozen
    assert entry(health, "b").frozen


def test_ch60_example_30_resume_copies_unknown() -> None:
    health = registry()
    health.control(ControlAction.RESUME_AUTOMATIC, A)
    assert state(health) == ("Unknown", "Unknown")
    assert not health.is_up(entry(health).backend)


def test_drain_returns_at_once_with_resume() -> None:
    health = registry()
    succeed(health, 3)
    health.control(ControlAction.SET_DOWN, A)
    succeed(health, 5)
    assert state(health) == ("Up", "Down")
    health.control(ControlAction.RESUME_AUTOMATIC, A)
    assert state(health) == ("Up", "Up")


def test_set_at_a_broad_level_reaches_carved_out_backends_until_the_next_verdict() -> None:
    health = registry()
    health.control(ControlAction.RESUME_AUTOMATIC, A)
    health.control(ControlAction.SET_DOWN, POOL)
    assert state(health, "a")[1] == "Down"
    succeed(health, 3)
    assert state(health, "a")[1] == "Up"
    succeed(health, 3, "b")
    assert state(health, "b")[1] == "Down"


def test_ch60_example_36_changed_thresholds_keep_the_state() -> None:
    health = registry()
    fail(health, 2)
    health.reconcile(targets("rise: 1, interval_ms: 500", "{name: a2, address: '10.0.0.1:53'}"))
    assert state(health, "10.0.0.1:53") == ("Down", "Down")
    succeed(health, 1, "a2")
    assert state(health, "a2") == ("Up", "Up")
    assert [e.backend.label for e in health.entries()] == ["a2"]


@pytest.mark.parametrize(
    "change",
    ["probe_qtype: A", "probe_qname: example.test."],
)
def test_ch60_example_37_another_probe_starts_afresh(change: str) -> None:
    health = registry()
    fail(health, 2)
    health.reconcile(targets(change))
    assert state(health) == ("Unknown", "Up")


def test_a_backends_own_probe_name_shields_it_from_the_pools() -> None:
    own = "{name: a, address: '10.0.0.1:53', probe_qname: own.test.}"
    health = HealthRegistry()
    health.reconcile(targets("", own))
    fail(health, 2)
    health.reconcile(targets("probe_qname: other.test.", own))
    assert state(health) == ("Down", "Down")


def test_ch60_example_38_a_new_backend_in_a_frozen_scope_waits() -> None:
    health = registry()
    health.control(ControlAction.FREEZE, POOL)
    backends = "{name: a, address: '10.0.0.1:53'}, {name: c, address: '10.0.0.3:53'}"
    health.reconcile(targets("", backends))
    assert state(health, "c") == ("Unknown", "Down")
    succeed(health, 5, "c")
    assert state(health, "c") == ("Up", "Down")
    health.control(ControlAction.RESUME_AUTOMATIC, POOL)
    assert state(health, "c") == ("Up", "Up")


def test_scope_settings_survive_removal_and_return() -> None:
    health = registry()
    health.control(ControlAction.FREEZE, A)
    health.reconcile(targets("", "{name: b, address: '10.0.0.2:53'}"))
    health.reconcile(targets())
    assert entry(health).frozen
    assert state(health)[1] == "Down"


@pytest.mark.parametrize(
    ("scope", "message"),
    [
        (Scope(ScopeLevel.POOL), "pool scope requires pool"),
        (Scope(ScopeLevel.BACKEND), "backend scope requires pool"),
        (Scope(ScopeLevel.BACKEND, "P"), "backend scope requires backend"),
        (Scope(ScopeLevel.POOL, "Q"), 'unknown pool "Q"'),
        (Scope(ScopeLevel.BACKEND, "P", "zz"), 'unknown backend "zz"'),
    ],
)
def test_scopes_that_name_nothing(scope: Scope, message: str) -> None:
    with pytest.raises(ScopeError, match=message):
        registry().control(ControlAction.FREEZE, scope)


def test_ch60_example_39_without_health_there_is_nothing_to_control() -> None:
    with pytest.raises(ScopeError, match="health checking not configured"):
        HealthRegistry().control(ControlAction.FREEZE, GLOBAL)


def test_a_backend_is_found_by_name_or_address() -> None:
    health = registry()
    assert health.control(ControlAction.SET_DOWN, B)[0].backend.label == "b"


def test_ch60_example_34_latency_factor() -> None:
    health = registry("latency_weighting: true, rise: 1")
    succeed(health, 1, "a", 10.0)
    succeed(health, 1, "b", 80.0)
    factors = []
    for _ in range(3):
        health.recompute_factors()
        factors.append(entry(health, "b").factor)
    assert factors == pytest.approx([0.625, 0.4375, 0.34375])
    for _ in range(40):
        health.recompute_factors()
    assert entry(health, "b").factor == pytest.approx(0.25)
    assert entry(health, "a").factor == 1.0


def test_ch60_example_34_weight_after_the_first_step() -> None:
    health = registry("latency_weighting: true, rise: 1")
    succeed(health, 1, "a", 10.0)
    succeed(health, 1, "b", 80.0)
    health.recompute_factors()
    backends = [e.backend for e in health.entries()]
    pool = Pool("P", backends, health_enabled=True)
    # 62.5 rounds away from zero
    assert [w for _, w in first_attempt_weights(pool, health)] == [100, 63]


def test_ewma_seeds_then_averages_and_survives_a_down_period() -> None:
    health = registry()
    succeed(health, 1, rtt=100.0)
    fail(health, 2)
    succeed(health, 1, rtt=50.0)
    assert entry(health).ewma_ms == pytest.approx(0.2 * 50 + 0.8 * 100)


def test_weights_of_ineligible_backends_and_of_fail_open() -> None:
    health = registry()
    pool = Pool("P", [e.backend for e in health.entries()], health_enabled=True)
    fail(health, 2, "a")
    assert [w for _, w in first_attempt_weights(pool, health)] == [0, 100]
    fail(health, 2, "b")
    assert [w for _, w in first_attempt_weights(pool, health)] == [100, 100]


def test_unknown_backends_are_eligible() -> None:
    health = registry()
    gone = entry(health).backend
    health.reconcile([])
    assert health.is_up(gone)
    assert health.weight_factor(gone) is None
    health.forward_failed(gone, "timeout", None, "")  # type: ignore[arg-type]
    assert Liveness.UP == 1
