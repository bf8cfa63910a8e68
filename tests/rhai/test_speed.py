"""Compiled code against a walking evaluator, within one run."""

from __future__ import annotations

import time

from conduit.rhai import Limits, Scope
from tests.rhai.running import engine_for
from tests.rhai.walker import Walker, additions

COUNT = 200_000


def test_a_loop_of_additions_is_three_times_as_fast_as_a_walk() -> None:
    engine = engine_for(Limits(max_operations=100_000_000, timeout_ms=60_000))
    script = engine.compile(f"let x = 0; while x < {COUNT} {{ x = x + 1; }} x")
    ratios = []
    for _ in range(5):
        walker = Walker(100_000_000)
        began = time.perf_counter()
        for statement in additions(COUNT):
            walker.run(statement)
        walked = time.perf_counter() - began
        began = time.perf_counter()
        assert engine.run(script, Scope()) == COUNT == walker.variables["x"]
        ratios.append(walked / (time.perf_counter() - began))
    # the best of a few: something else may run on the machine
    assert max(ratios) >= 3, ratios
