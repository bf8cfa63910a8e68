"""Layers, applies and typed changes: chapter 10 sections 9 to 13 and chapter 60 section 8."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from conduit.config import load_text, load_tree
from conduit.control import primitives
from conduit.control.configurator import PrepareError
from conduit.control.merge import accumulate, onto_file
from conduit.control.overlay import ApplyMode
from conduit.control.primitives import InvalidChange
from tests.control.support import MIN, A, B, Changer, backend_patch, two_backends


def test_ch10_example_27_merge_replace_clear(tmp_path: Path) -> None:
    with Changer(tmp_path, two_backends()) as changer:
        assert changer.apply(**backend_patch(address=A, weight=10)).generation == 2
        assert changer.weights() == [10, 100]
        assert changer.apply(**backend_patch(name="b", weight=50)).generation == 3
        assert changer.weights() == [10, 50]
        replaced = changer.apply(ApplyMode.REPLACE, **backend_patch(name="a", weight=50))
        assert replaced.generation == 4
        assert changer.weights() == [50, 100]
        assert changer.apply(ApplyMode.CLEAR).generation == 5
        assert changer.weights() == [100, 100]


def test_ch10_example_28_clear_keeps_the_file_layer_and_reload_reads_it(tmp_path: Path) -> None:
    for again in ("clear", "reload"):
        with Changer(tmp_path, two_backends()) as changer:
            changer.apply(**backend_patch(name="a", weight=10))
            edited = two_backends()
            for backend in edited["pools"][0]["backends"]:
                backend["weight"] = 90
            changer.write(edited)
            if again == "clear":
                assert changer.apply(ApplyMode.CLEAR).ok
                assert changer.weights() == [100, 100]
            else:
                assert changer.configurator.reload("file").ok
                assert changer.weights() == [90, 90]
            assert changer.overlay is None


def test_ch10_example_29_unknown_backends(tmp_path: Path) -> None:
    with Changer(tmp_path, two_backends()) as changer:
        refused = changer.apply(**backend_patch(name="resolver-z", weight=5))
        assert (refused.ok, refused.generation) == (False, 0)
        assert "unknown backend name 'resolver-z'" in refused.errors[0]
        assert (changer.overlay, changer.configurator.generation) == (None, 1)
        assert changer.apply(**backend_patch(address="10.0.0.9:53")).ok
        assert changer.config.pools[0].backends[2].address == "10.0.0.9:53"


def test_ch10_example_30_and_39_remove_and_return(tmp_path: Path) -> None:
    with Changer(tmp_path, two_backends()) as changer:
        assert changer.apply(**backend_patch(name="b", remove=True)).ok
        assert [b.name for b in changer.config.pools[0].backends] == ["a"]
        text = changer.configurator.export()
        assert "remove" not in text
        assert B not in text
        assert changer.apply(**backend_patch(name="b", weight=7)).ok
        (_, back) = changer.config.pools[0].backends
        assert (back.name, back.address, back.weight) == ("b", B, 7)


def test_ch10_example_31_the_last_backend_stays(tmp_path: Path) -> None:
    with Changer(tmp_path, MIN) as changer:
        patch = {
            "pools": [
                {"name": "default", "backends": [{"address": "127.0.0.1:5300", "remove": True}]}
            ]
        }
        refused = changer.apply(**patch)
        assert "no backends" in refused.errors[0]
        assert len(changer.config.pools[0].backends) == 1


def test_ch10_example_32_a_pool_that_a_rule_sets_stays(tmp_path: Path) -> None:
    rule = {
        "name": "r",
        "hook": "request",
        "selectors": [],
        "actions": [{"type": "set_pool", "value": "x"}],
    }
    config = two_backends(rules={"rules": [rule]})
    config["pools"].append({"name": "x", "backends": [{"address": "10.0.0.7:53"}]})
    with Changer(tmp_path, config) as changer:
        refused = changer.apply(pools=[{"name": "x", "remove": True}])
        assert not refused.ok
        assert "'x'" in refused.errors[0]
        assert len(changer.config.pools) == 2


def test_ch10_example_33_forbidden_and_empty_patches(tmp_path: Path) -> None:
    with Changer(tmp_path, two_backends()) as changer:
        for key in ("rules", "tracing"):
            refused = changer.apply(**{key: {}})
            assert key in refused.errors[0]
            assert "reload" in refused.errors[0]
        assert changer.apply().generation == 2
        changer.apply(**backend_patch(name="a", weight=1))
        assert changer.apply().generation == 4
        assert changer.weights() == [1, 100]
        assert changer.apply(ApplyMode.REPLACE).generation == 5
        assert changer.overlay is None


def test_ch10_example_34_sections_are_replaced(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = {**MIN, "forward": {"timeout_ms": 500, "outstanding_per_backend": 7}}
    caplog.set_level("INFO")
    with Changer(tmp_path, config) as changer:
        assert changer.apply(forward={"timeout_ms": 900}).ok
        forward = changer.config.forward
        assert (forward.timeout_ms, forward.outstanding_per_backend) == (900, 100)
    assert "forward egress: pending (restart required)" in caplog.text


def test_ch10_example_35_categories_by_key(tmp_path: Path) -> None:
    metrics: dict[str, Any] = {"enabled": True, "categories": {"include": ["timing"]}}
    with Changer(tmp_path, {**MIN, "metrics": metrics}) as changer:
        assert changer.apply(metrics={"categories": {"exclude": ["process"]}}).ok
        assert changer.config.metrics is not None
        categories = changer.config.metrics.categories
        assert categories is not None
        assert (categories.include, categories.exclude) == (("timing",), ("process",))
        assert changer.apply(metrics={"categories": {"include": []}}).ok
        categories = changer.config.metrics.categories
        assert categories is not None
        assert (categories.include, categories.exclude) == ((), ("process",))


def test_ch10_example_36_other_fields_of_a_known_pool(tmp_path: Path) -> None:
    with Changer(tmp_path, MIN) as changer:
        assert changer.apply(pools=[{"name": "default", "max_inflight": 9}]).generation == 2
        assert changer.config.pools[0].max_inflight is None


def test_ch10_example_37_nothing_is_kept_of_a_change_that_cannot_be_prepared(
    tmp_path: Path,
) -> None:
    def refuse(before: object, after: object) -> Any:
        raise PrepareError("port in use")

    with Changer(tmp_path, two_backends(), refuse) as changer:
        refused = changer.apply(**backend_patch(name="a", weight=1))
        assert (refused.ok, refused.generation, refused.errors) == (False, 0, ("port in use",))
        assert (changer.overlay, changer.weights()) == (None, [100, 100])
        assert changer.configurator.generation == 1
        assert "weight: 1\n" not in changer.configurator.export()


def test_ch10_example_38_export_of_a_minimal_file(tmp_path: Path) -> None:
    with Changer(tmp_path, MIN) as changer:
        text = changer.configurator.export()
        lines = [
            line.split(":")[0] for line in text.splitlines() if not line.startswith((" ", "-"))
        ]
        for key in ("forward", "orchestrator", "events", "rhai", "control"):
            assert key not in lines
        assert "weight" not in text
        for key in ("rules", "logging", "data_sources", "metrics", "tracing"):
            assert key in lines
        again = load_text(text, str(changer.path)).config
        assert again == changer.config


def test_a_pool_that_is_removed_and_named_again_is_new(tmp_path: Path) -> None:
    config = two_backends()
    config["pools"].append({"name": "x", "backends": [{"address": "10.0.0.7:53"}]})
    with Changer(tmp_path, config) as changer:
        assert changer.apply(pools=[{"name": "x", "remove": True}]).ok
        assert [pool.name for pool in changer.config.pools] == ["P"]
        back = [{"name": "x", "backends": [{"address": "10.0.0.8:53"}]}]
        assert changer.apply(pools=back).ok
        assert {b.address for b in changer.config.pools[1].backends} >= {"10.0.0.8:53"}


def test_unknown_pool_and_nameless_entries_are_refused(tmp_path: Path) -> None:
    with Changer(tmp_path, two_backends()) as changer:
        assert "unknown pool 'q'" in changer.apply(pools=[{"name": "q", "remove": True}]).errors[0]
        assert "needs a name" in changer.apply(pools=[{"name": ""}]).errors[0]
        assert "requires name or address" in changer.apply(**backend_patch(weight=1)).errors[0]


# typed changes


def test_ch60_example_13_setting_back_leaves_no_overlay(tmp_path: Path) -> None:
    with Changer(tmp_path, two_backends()) as changer:
        before = changer.configurator.export()
        set_weight = primitives.set_backend_weight
        assert changer.configurator.change(set_weight("P", "a", 40)).ok
        assert changer.weights() == [40, 100]
        assert changer.configurator.change(set_weight("P", A, 100)).generation == 3
        assert changer.overlay is None
        assert changer.configurator.export() == before


def test_ch60_example_14_unknown_backend(tmp_path: Path) -> None:
    with Changer(tmp_path, two_backends()) as changer:
        result = changer.configurator.change(primitives.set_backend_weight("P", "zz", 1))
        assert result.errors == ("pool 'P' has no backend named or addressed 'zz'",)
        result = changer.configurator.change(primitives.set_backend_weight("Q", "a", 1))
        assert result.errors == ("unknown pool 'Q'",)


def test_typed_changes_keep_patches(tmp_path: Path) -> None:
    with Changer(tmp_path, two_backends()) as changer:
        assert changer.apply(rhai={"max_operations": 77}).ok
        assert changer.configurator.change(
            primitives.add_backend("P", {"address": "10.0.0.3:53"})
        ).ok
        assert changer.configurator.change(primitives.remove_backend("P", "a")).ok
        assert changer.configurator.change(primitives.set_orchestrator_limits(max_attempts=2)).ok
        assert [b.address for b in changer.config.pools[0].backends] == [B, "10.0.0.3:53"]
        assert changer.config.rhai.max_operations == 77
        assert changer.config.orchestrator.max_attempts == 2
        again = changer.configurator.change(primitives.add_backend("P", {"address": B}))
        assert "already has a backend" in again.errors[0]


def test_data_sources_cannot_be_emptied(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("k,v\n")
    config = {**MIN, "data_sources": [{"name": "t", "type": "csv", "path": "t.csv"}]}
    with Changer(tmp_path, config) as changer:
        refused = changer.configurator.change(primitives.remove_data_source("t"))
        assert "last entry" in refused.errors[0]
        (tmp_path / "u.csv").write_text("k,w\n")
        source = {"name": "u", "type": "csv", "path": "u.csv"}
        assert changer.configurator.change(primitives.upsert_data_source(source)).ok
        assert changer.configurator.change(primitives.remove_data_source("u")).ok
        assert changer.overlay is None
        missing = {"name": "x", "type": "csv", "path": "none.csv"}
        refused = changer.configurator.change(primitives.upsert_data_source(missing))
        assert "none.csv" in refused.errors[0]


def test_metrics_patches(tmp_path: Path) -> None:
    config = {**MIN, "metrics": {"enabled": True, "collection": {"timing": {"emit": False}}}}
    with Changer(tmp_path, config) as changer:
        assert changer.configurator.change(primitives.patch_metrics({"base": "minimal"})).ok
        patch = {"collection": {"timing": {"emit": True}}}
        assert changer.configurator.change(primitives.patch_metrics(patch)).ok
        metrics = changer.config.metrics
        assert metrics is not None
        assert metrics.base == "minimal"
        assert metrics.collection["timing"].emit is True


def test_event_sinks(tmp_path: Path) -> None:
    sink = {"type": "dnstap", "name": "tap", "destinations": ["unix:x"]}
    with Changer(tmp_path, {**MIN, "events": {"sinks": [sink]}}) as changer:
        change = changer.configurator.change
        assert change(primitives.set_event_sink_filters("tap", {"sample_percent": 10.0})).ok
        assert change(primitives.set_event_sink_emit("tap", ["query"], extra_fields=["pool"])).ok
        (found,) = changer.config.events.sinks
        assert found.filters is not None
        assert found.filters.sample_percent == 10.0
        assert (found.emit, found.extra_fields) == (("query",), ("pool",))
        refused = change(primitives.set_event_sink_filters("no", {}))
        assert refused.errors == ("unknown event sink 'no'",)


def test_caches(tmp_path: Path) -> None:
    config = {**MIN, "caches": [{"name": "c", "type": "memory"}]}
    with Changer(tmp_path, config) as changer:
        change = changer.configurator.change
        assert change(primitives.set_cache_max_entries("c", 5)).ok
        assert changer.config.caches[0].max_entries == 5
        refused = change(primitives.set_cache_lmdb_hot("c", when_full="refuse"))
        assert refused.errors == ("cache 'c' type is 'memory' (SetCacheLmdbHot requires lmdb)",)
        assert change(primitives.set_cache_policy_hot("c", negative_cache={"enabled": False})).ok
        assert not changer.config.caches[0].negative_cache.enabled
        assert change(primitives.set_cache_policy_hot("c", negative_cache={})).ok
        assert changer.config.caches[0].negative_cache.enabled
        refused = change(primitives.set_cache_max_entries("nope", 1))
        assert refused.errors == ("unknown cache 'nope'",)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: primitives.set_backend_weight("", "a", 1), "pool is required"),
        (lambda: primitives.set_backend_weight("p", "", 1), "backend is required"),
        (lambda: primitives.add_backend("p", None), "backend is required"),
        (lambda: primitives.set_orchestrator_limits(), "at least one of"),
        (lambda: primitives.set_rhai_limits(), "at least one of"),
        (lambda: primitives.patch_metrics(None), "metrics is required"),
        (lambda: primitives.upsert_data_source({}), "data source name is required"),
        (lambda: primitives.set_cache_lmdb_hot("c"), "at least one LMDB hot field is required"),
        (lambda: primitives.set_cache_policy_hot("c"), "at least one policy field is required"),
        (lambda: primitives.set_event_sink_filters("t", None), "filters is required"),
    ],
)
def test_incomplete_requests(make: Any, message: str) -> None:
    with pytest.raises(InvalidChange, match=message):
        make()


# order and ends


def test_a_hundred_applies_at_once_get_one_generation_each(tmp_path: Path) -> None:
    with Changer(tmp_path, two_backends()) as changer, ThreadPoolExecutor(20) as pool:
        results = list(
            pool.map(lambda n: changer.apply(**backend_patch(name="a", weight=n)), range(1, 101))
        )
        assert all(result.ok for result in results)
        assert sorted(result.generation for result in results) == list(range(2, 102))
        last = max(range(100), key=lambda n: results[n].generation)
        assert changer.weights()[0] == last + 1


def test_a_stopped_configurator_says_so(tmp_path: Path) -> None:
    with Changer(tmp_path, MIN) as changer:
        changer.configurator.stop()
        result = changer.apply()
        assert (result.ok, result.generation) == (False, 0)
        assert result.errors == ("configurator stopped",)


def test_a_failed_reload_keeps_file_and_overlay(tmp_path: Path) -> None:
    with Changer(tmp_path, two_backends()) as changer:
        changer.apply(**backend_patch(name="a", weight=3))
        changer.path.write_text("pools: [")
        refused = changer.configurator.reload("file")
        assert not refused.ok
        assert changer.weights() == [3, 100]
        assert changer.apply(ApplyMode.CLEAR).ok
        assert changer.weights() == [100, 100]
        changer.path.unlink()
        (unreadable,) = changer.configurator.reload("file").errors
        assert unreadable == f'reading config "{changer.path}": No such file or directory'


def test_validate_says_what_a_start_would(tmp_path: Path) -> None:
    with Changer(tmp_path, MIN) as changer:
        assert changer.configurator.validate(MIN) == ()
        broken = {**MIN, "pools": [{"name": "p", "backends": []}], "rhai": {"max_operations": 0}}
        assert len(changer.configurator.validate(broken)) == 2
        missing = {**MIN, "data_sources": [{"name": "t", "type": "csv", "path": "none"}]}
        assert "none" in changer.configurator.validate(missing)[0]
        assert changer.configurator.generation == 1


def test_accumulating_equals_applying_one_after_the_other() -> None:
    file = two_backends()
    first = {"schema_version": 1, **backend_patch(name="a", weight=5)}
    second = {"schema_version": 1, **backend_patch(address="10.0.0.9:53", weight=2)}
    together = onto_file(file, accumulate(first, second))
    assert together == onto_file(onto_file(file, first), second)
    assert load_tree(together, "x.yaml").config.pools[0].backends[2].weight == 2
