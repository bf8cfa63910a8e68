"""Random probe results, passive failures, operator commands and reloads: the invariants hold."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from conduit.upstream.health.registry import HealthRegistry
from conduit.upstream.health.scopes import ControlAction
from conduit.upstream.health.state import BackendHealth, Liveness
from conduit.upstream.pool import Pool
from tests.upstream.health.build import GLOBAL, POOL, A, B, entry, fail_forward, targets

backends = st.sampled_from(["a", "b"])
MEMBERS = [
    "",
    "{name: a, address: '10.0.0.1:53'}, {name: b, address: '10.0.0.2:53'},"
    " {name: c, address: '10.0.0.3:53'}",
]


class HealthMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.health = HealthRegistry(wall_clock=lambda: 1.0)
        self.health.reconcile(targets())
        self.good_probes = {"a": 0, "b": 0}

    def tried(self, backend: str) -> BackendHealth:
        return entry(self.health, backend)

    @rule(backend=backends)
    def probe_success(self, backend: str) -> None:
        self.health.probe_succeeded(self.tried(backend), 5.0)
        self.good_probes[backend] += 1

    @rule(backend=backends)
    def probe_failure(self, backend: str) -> None:
        before = self.tried(backend).observed
        self.health.probe_failed(self.tried(backend))
        assert self.tried(backend).observed in (before, Liveness.DOWN)
        self.good_probes[backend] = 0

    @rule(backend=backends)
    def passive_failure(self, backend: str) -> None:
        before = (self.tried(backend).observed, self.tried(backend).applied)
        fail_forward(self.health, backend)
        after = (self.tried(backend).observed, self.tried(backend).applied)
        # a failure never marks up
        for old, new in zip(before, after, strict=True):
            assert new in (old, Liveness.DOWN)

    @rule(backend=backends)
    def passive_success(self, backend: str) -> None:
        before = (self.tried(backend).observed, self.tried(backend).applied)
        self.health.forward_succeeded(self.tried(backend).backend)
        assert before == (self.tried(backend).observed, self.tried(backend).applied)

    @rule(action=st.sampled_from(list(ControlAction)), scope=st.sampled_from([GLOBAL, POOL, A, B]))
    def operator(self, action: ControlAction, scope: object) -> None:
        affected = self.health.control(action, scope)  # type: ignore[arg-type]
        for found in affected:
            if action is ControlAction.SET_DOWN:
                assert found.applied is Liveness.DOWN
            elif action is ControlAction.SET_UP:
                assert found.applied is Liveness.UP
            elif action is ControlAction.RESUME_AUTOMATIC and not found.frozen:
                assert found.applied is found.observed

    @rule(members=st.sampled_from(MEMBERS), rise=st.integers(1, 4))
    def reload(self, members: str, rise: int) -> None:
        before = {e.backend.key: (e.observed, e.applied, e.ewma_ms) for e in self.health.entries()}
        self.health.reconcile(targets(f"rise: {rise}", members))
        for found in self.health.entries():
            if found.backend.key in before:
                now = (found.observed, found.applied, found.ewma_ms)
                assert now == before[found.backend.key]

    @invariant()
    def a_drained_backend_gets_no_traffic_while_another_is_up(self) -> None:
        entries = self.health.entries()
        pool = Pool("P", [e.backend for e in entries], health_enabled=True)
        up = {e.backend.key for e in entries if e.applied is Liveness.UP}
        if up:
            for number in range(0, 700, 50):
                chosen = pool.select(number, 1, 0, (), self.health)
                assert chosen is not None
                assert chosen.key in up

    @invariant()
    def transitions_match_their_time(self) -> None:
        for found in self.health.entries():
            assert (found.transitions == 0) == (found.last_transition is None)


HealthMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestHealthMachine = HealthMachine.TestCase
