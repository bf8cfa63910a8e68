"""Order, ends and failures of the change queue: chapter 10 sections 1, 10 to 12."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conduit.config import Config
from conduit.control import primitives
from conduit.control.configurator import QUEUE_CAPACITY, ChangeResult, Prepared, PrepareError
from conduit.control.overlay import ApplyMode
from tests.control.support import MIN, Changer, backend_patch, two_backends


class Gate:
    """A step of each change that waits until the test lets it go on."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.entered = threading.Event()

    def __call__(self, before: Config, after: Config) -> Callable[[], None]:
        self.entered.set()
        assert self.open.wait(10)
        return lambda: None


def applied(caplog: pytest.LogCaptureFixture) -> list[tuple[int, str]]:
    """Generation and source of each installed change, in the order of the log."""
    return [
        (record.conduit_fields["generation"], record.conduit_fields["source"])
        for record in caplog.records
        if record.getMessage() == "config applied"
    ]


def test_ch10_example_26_sighup(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    with Changer(tmp_path, two_backends()) as changer:
        assert changer.configurator.generation == 1
        changer.configurator.reload_soon()
        # an apply behind it in the queue has seen it through
        assert changer.apply().generation == 3
        assert applied(caplog) == [(2, "sighup"), (3, "grpc")]
        changer.path.write_text("pools: [")
        changer.configurator.reload_soon()
        assert changer.apply().generation == 4
        failures = [r for r in caplog.records if r.getMessage() == "SIGHUP config reload failed"]
        assert len(failures) == 1
        assert changer.weights() == [100, 100]


def test_changes_run_in_the_order_of_their_arrival(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    gate = Gate()
    results: dict[str, ChangeResult] = {}
    with Changer(tmp_path, two_backends(), gate) as changer:
        configurator = changer.configurator

        def run(name: str, change: Callable[[], ChangeResult]) -> threading.Thread:
            held, waiting = gate.entered.is_set(), configurator._queue.qsize()
            thread = threading.Thread(target=lambda: results.update({name: change()}))
            thread.start()
            if held:
                # behind the one that the gate holds
                _until(lambda: configurator._queue.qsize() > waiting)
            else:
                assert gate.entered.wait(10)
            return thread

        threads = [
            run("first", lambda: changer.apply(**backend_patch(name="a", weight=1))),
            run("typed", lambda: configurator.change(primitives.set_backend_weight("P", "b", 2))),
        ]
        # several signals that wait are one reload, at the place of the first
        for _ in range(3):
            configurator.reload_soon()
        threads.append(run("last", lambda: changer.apply(**backend_patch(name="b", weight=4))))
        threads.append(run("file", lambda: configurator.reload("file")))
        gate.open.set()
        for thread in threads:
            thread.join(10)
        assert {name: result.generation for name, result in results.items()} == {
            "first": 2,
            "typed": 3,
            "last": 5,
            "file": 6,
        }
        assert applied(caplog) == [
            (2, "grpc"),
            (3, "grpc"),
            (4, "sighup"),
            (5, "grpc"),
            (6, "file"),
        ]
        assert (changer.weights(), changer.overlay) == ([100, 100], None)


def _until(ready: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not ready():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_the_queue_is_bounded_and_nothing_in_it_is_lost(tmp_path: Path) -> None:
    gate = Gate()
    results: list[ChangeResult] = []
    count = QUEUE_CAPACITY + 5
    with Changer(tmp_path, two_backends(), gate) as changer:
        threads = [
            threading.Thread(target=lambda: results.append(changer.apply())) for _ in range(count)
        ]
        for thread in threads:
            thread.start()
        _until(changer.configurator._queue.full)
        assert changer.configurator._queue.qsize() == QUEUE_CAPACITY
        gate.open.set()
        for thread in threads:
            thread.join(20)
        assert sorted(r.generation for r in results) == list(range(2, count + 2))


def test_a_stop_answers_what_waits(tmp_path: Path) -> None:
    gate = Gate()
    results: list[ChangeResult] = []
    with Changer(tmp_path, two_backends(), gate) as changer:
        threads = [
            threading.Thread(target=lambda: results.append(changer.apply())) for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        _until(lambda: changer.configurator._queue.qsize() == 2)
        stopping = threading.Thread(target=changer.configurator.stop)
        stopping.start()
        gate.open.set()
        for thread in [*threads, stopping]:
            thread.join(10)
        assert not any(thread.is_alive() for thread in threads)
        assert all(r.ok or r.errors == ("configurator dropped reply",) for r in results)
        stopped = ("configurator stopped",)
        assert changer.configurator.reload("file").errors == stopped
        change = primitives.set_backend_weight("P", "a", 1)
        assert changer.configurator.change(change).errors == stopped
        assert changer.apply(ApplyMode.CLEAR) == ChangeResult(False, 0, stopped)


def test_what_is_ready_is_given_back_when_a_later_step_refuses(tmp_path: Path) -> None:
    seen: list[str] = []
    refuse = True

    def first(before: Config, after: Config) -> Callable[[], None]:
        return Prepared(lambda: seen.append("commit"), lambda: seen.append("abandon"))

    def second(before: Config, after: Config) -> Callable[[], None]:
        if refuse:
            raise PrepareError("no")
        return lambda: seen.append("second")

    with Changer(tmp_path, two_backends(), first, second) as changer:
        assert changer.apply().errors == ("no",)
        assert seen == ["abandon"]
        refuse = False
        assert changer.apply().generation == 2
        assert seen == ["abandon", "commit", "second"]


def test_a_bug_in_a_step_stops_nothing(tmp_path: Path) -> None:
    calls: list[str] = []

    def broken(before: Config, after: Config) -> Callable[[], None]:
        if not calls:
            calls.append("prepare")
            raise RuntimeError("bug")

        def finish() -> None:
            raise RuntimeError("bug")

        return finish

    with Changer(tmp_path, two_backends(), broken) as changer:
        assert changer.apply().errors == ("internal error, see the log",)
        # installed is installed, whatever a step behind it does
        assert changer.apply(**backend_patch(name="a", weight=5)) == ChangeResult(True, 2)
        assert changer.weights() == [5, 100]


@pytest.mark.parametrize(
    ("patch", "text"),
    [
        ({"listner": {}}, "unknown key 'listner'"),
        ({"forward": 5}, "forward"),
        ({"pools": "x"}, "pools"),
        ({"pools": [5]}, "pools[0]"),
        ({"pools": [{"name": "P", "backends": [{"name": "a", "weight": -1}]}]}, "weight"),
        ({"metrics": {"collection": []}}, "metrics.collection"),
        ({"schema_version": 2}, "unsupported schema_version 2"),
        ({"rules": {}, "forward": 5}, "rules"),
    ],
)
def test_patches_of_the_wrong_shape_are_told_with_key_paths(
    tmp_path: Path, patch: dict[str, Any], text: str
) -> None:
    with Changer(tmp_path, two_backends()) as changer:
        result = changer.configurator.apply({"schema_version": 1, **patch}, ApplyMode.MERGE)
        assert (result.ok, result.generation) == (False, 0)
        assert text in "; ".join(result.errors)
        assert (changer.overlay, changer.configurator.generation) == (None, 1)


def test_lists_and_texts_that_the_wire_leaves_out(tmp_path: Path) -> None:
    sink = {"type": "dnstap", "name": "s", "destinations": ["unix:x"]}
    filters = {"selectors": [{"type": "qtype", "value": "A"}]}
    with Changer(tmp_path, {**MIN, "events": {"sinks": [sink]}}) as changer:
        assert changer.apply(listeners={"threads": 2}).ok
        assert changer.config.listeners.listeners == ()
        change = changer.configurator.change
        assert change(primitives.set_event_sink_filters("s", filters)).ok
        # an empty value has no place in a message
        refused = change(primitives.set_event_sink_filters("s", {"selectors": [{"type": "qtype"}]}))
        assert "missing required key" not in refused.errors[0]


def test_logged_differences(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    config = two_backends(caches=[{"name": "c", "type": "memory"}])
    with Changer(tmp_path, config) as changer:
        changer.apply(
            pools=[
                {"name": "P", "backends": [{"name": "a", "weight": 2}]},
                {"name": "Q", "backends": [{"address": "10.0.0.7:53"}]},
            ],
            caches=[{"name": "c", "type": "memory", "memory": {"shard_count": 4}}],
            listeners={"listeners": [{"address": "127.0.0.1:15354", "protocol": "udp"}]},
            forward={"timeout_ms": 1},
        )
        messages = [r.getMessage() for r in caplog.records]
        suffix = "pending (restart required) — snapshot updated"
        assert messages == [
            "config applied",
            "pools: count changed",
            "pool: backends changed",
            "pool: added",
            f"listeners: {suffix}, sockets not rebound",
            f"forward egress: {suffix}, sockets not rebound",
            f"cache memory.shard_count: {suffix}, shard layout unchanged",
        ]
        caplog.clear()
        # nothing of it is new to the next change
        changer.apply()
        assert [r.getMessage() for r in caplog.records] == ["config applied"]


def test_ch60_example_11_clear_ignores_the_patch_and_the_file(tmp_path: Path) -> None:
    with Changer(tmp_path, two_backends()) as changer:
        changer.apply(**backend_patch(name="a", weight=10))
        changer.path.write_text("pools: [")
        # not even looked at
        result = changer.configurator.apply({"rules": {}, "x": 1}, ApplyMode.CLEAR)
        assert result == ChangeResult(True, 3)
        assert (changer.overlay, changer.weights()) == (None, [100, 100])


def test_ch60_example_12_an_overlay_with_a_rule(tmp_path: Path) -> None:
    rule = {"name": "r", "hook": "request", "selectors": [], "actions": [{"type": "drop"}]}
    with Changer(tmp_path, two_backends()) as changer:
        before = changer.config
        result = changer.apply(rules={"rules": [rule]})
        assert (result.ok, result.generation) == (False, 0)
        assert changer.config is before
