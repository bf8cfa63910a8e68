"""The health state of one backend: a state machine without a clock or a lock of its own.

Chapter 60 section 12. A change of `observed` and a change of `applied` are two transitions.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from conduit.upstream.backend import Backend
from conduit.upstream.health.settings import (
    OPTIMISTIC,
    REQUIRE_1_GOOD,
    HealthSettings,
    HealthTarget,
)

_EWMA_ALPHA: Final = 0.2
_FACTOR_FLOOR: Final = 0.25
_FACTOR_DAMPING: Final = 0.5


class Liveness(IntEnum):
    """Values of `observed` and `applied`, as the metrics spell them."""

    UNKNOWN = 0
    UP = 1
    DOWN = 2

    @property
    def text(self) -> str:
        """The value as log lines spell it."""
        return self.name.capitalize()


class BackendHealth:
    """What is known of one backend; the registry serialises the calls that change it."""

    __slots__ = (
        "applied",
        "backend",
        "ewma_ms",
        "factor",
        "failure_run",
        "frozen",
        "last_transition",
        "observed",
        "passive_run",
        "settings",
        "success_run",
        "transitions",
    )

    def __init__(self, target: HealthTarget, frozen: bool) -> None:
        """`frozen` tells whether the backend enters a scope that resolves to frozen."""
        self.backend: Backend = target.backend
        self.settings: HealthSettings = target.settings
        self.frozen = frozen
        self.observed = Liveness.UNKNOWN
        # a new backend under a freeze waits for the operator, whatever its initial state
        optimistic = target.settings.initial_state == OPTIMISTIC and not frozen
        self.applied = Liveness.UP if optimistic else Liveness.DOWN
        self.success_run = 0
        self.failure_run = 0
        self.passive_run = 0
        self.ewma_ms: float | None = None
        self.factor = 1.0
        self.transitions = 0
        #: Wall-clock seconds of the last transition, or None.
        self.last_transition: float | None = None

    def probe_succeeded(self, rtt_ms: float, now: float) -> bool:
        """Note a successful probe; True when `observed` or `applied` changed.

        `now` is wall-clock seconds, for the time of the transition.
        """
        previous = self.ewma_ms
        self.ewma_ms = (
            rtt_ms if previous is None else _EWMA_ALPHA * rtt_ms + (1 - _EWMA_ALPHA) * previous
        )
        self.failure_run = 0
        self.success_run += 1
        first_good = (
            self.observed is Liveness.UNKNOWN and self.settings.initial_state == REQUIRE_1_GOOD
        )
        if self.success_run >= self.settings.rise or first_good:
            return self._verdict(Liveness.UP, now)
        return False

    def probe_failed(self, now: float) -> bool:
        """Note a failed probe; True when `observed` or `applied` changed."""
        self.success_run = 0
        self.failure_run += 1
        if self.failure_run >= self.settings.fall:
            return self._verdict(Liveness.DOWN, now)
        return False

    def forward_failed(self, now: float) -> None:
        """Note a failure of live traffic; may mark down, never up."""
        self.passive_run += 1
        if self.passive_run >= self.settings.passive_fall:
            # only probes from here on are proof that the backend is back
            self.success_run = 0
            self._verdict(Liveness.DOWN, now)

    def forward_succeeded(self) -> None:
        """Note an answer to live traffic: the passive run starts anew."""
        self.passive_run = 0

    def set_applied(self, value: Liveness, now: float) -> None:
        """Apply a value as an operator does; counts when it changes."""
        if self.applied is not value:
            self.applied = value
            self.transitions += 1
            self.last_transition = now

    def damp_factor(self, fastest_ms: float | None) -> None:
        """Move the weight factor half way towards its target (chapter 60 section 12.2)."""
        target = 1.0
        if fastest_ms is not None and self.ewma_ms is not None and self.ewma_ms > 0:
            target = min(1.0, max(_FACTOR_FLOOR, fastest_ms / self.ewma_ms))
        self.factor += _FACTOR_DAMPING * (target - self.factor)

    def _verdict(self, value: Liveness, now: float) -> bool:
        changed = False
        if self.observed is not value:
            self.observed = value
            self.transitions += 1
            self.last_transition = now
            changed = True
        if not self.frozen and self.applied is not value:
            self.set_applied(value, now)
            changed = True
        return changed
