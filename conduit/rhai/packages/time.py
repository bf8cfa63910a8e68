"""Timestamps and `sleep` (chapter 36 sections 15.1 and 15.7)."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from conduit.rhai.errors import arithmetic
from conduit.rhai.packages.standard import STANDARD
from conduit.rhai.values import Timestamp

if TYPE_CHECKING:
    from conduit.rhai.limits import RunState

fn = STANDARD.fn


@fn("timestamp")
def timestamp() -> Timestamp:
    return Timestamp()


@fn("elapsed", Timestamp, getter=True)
def elapsed(t: Timestamp) -> float:
    passed = time.monotonic() - t.seconds
    if passed < 0:
        raise arithmetic("Time-stamp is later than now")
    return passed


@fn("sleep", (int, float), context=True)
def sleep(st: RunState, seconds: float) -> None:
    """Waits, at most until the run's deadline, which then ends the run (O-12)."""
    if seconds <= 0 or not math.isfinite(seconds):
        return
    left = st.seconds_left()
    time.sleep(min(float(seconds), 1e9) if left is None else min(float(seconds), left + 0.001))
    st.check_clock()
