"""Merging and differences hold for any patches: chapter 10 section 9."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from conduit.config import Config
from conduit.config.construction import build_config
from conduit.config.sparse import completed
from conduit.control.merge import MergeError, accumulate, merge_metrics, onto_file
from conduit.control.overlay import ApplyMode, Layers, difference, same_pools
from tests.control.support import MIN, two_backends

FILE = two_backends(
    forward={"timeout_ms": 500},
    metrics={"enabled": True, "categories": {"include": ["timing"]}},
    data_sources=[],
)

NAMES = st.sampled_from(["a", "b"])
WEIGHTS = st.integers(1, 200)
#: Entries that change backends of the file.
CHANGED = st.fixed_dictionaries({"name": NAMES, "weight": WEIGHTS}) | st.fixed_dictionaries(
    {"address": st.sampled_from(["10.0.0.1:53", "10.0.0.2:53"]), "weight": WEIGHTS}
)
#: Entries that add backends; an address belongs to one name or to none.
ADDED = st.fixed_dictionaries(
    {"address": st.sampled_from(["10.0.0.8:53", "10.0.0.9:53"])}, optional={"weight": WEIGHTS}
) | st.builds(
    lambda last, weight: {"address": f"10.0.0.{last}:53", "name": f"n{last}", "weight": weight},
    st.sampled_from([10, 11]),
    WEIGHTS,
)
REMOVED = st.fixed_dictionaries({"name": NAMES, "remove": st.just(True)})

SWITCHES = st.fixed_dictionaries({}, optional={"collect": st.booleans(), "emit": st.booleans()})
METRICS = st.fixed_dictionaries(
    {},
    optional={
        "enabled": st.booleans(),
        "base": st.sampled_from(["", "minimal", "standard"]),
        "categories": st.fixed_dictionaries(
            {},
            optional={
                "include": st.sampled_from([[], ["timing"], ["health"]]),
                "exclude": st.sampled_from([[], ["process"]]),
            },
        ),
        "collection": st.dictionaries(st.sampled_from(["timing", "volume"]), SWITCHES),
        "granularity": st.sampled_from(
            [{}, {"default": "coarse"}, {"timing": ["pool"]}, {"overrides": {"timing": []}}]
        ),
        "event_export": SWITCHES,
        "prometheus": st.sampled_from(
            [{}, {"path": "/m"}, {"listen_address": "127.0.0.1:9"}, {"path": ""}]
        ),
        "otel": st.sampled_from(
            [{"endpoint": "http://h"}, {"headers": {"a": "1"}}, {"headers": {"b": "2"}}]
        ),
        "user_metrics": st.lists(
            st.fixed_dictionaries(
                {"name": st.sampled_from(["x", "y"])},
                optional={"help": st.sampled_from(["", "h"]), "emit": st.booleans()},
            ),
            max_size=2,
            unique_by=lambda entry: entry["name"],
        ),
    },
)


def patches(backends: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """Patches of backends of pool `P`, sections and metrics."""
    return st.fixed_dictionaries(
        {"schema_version": st.just(1)},
        optional={
            "pools": st.lists(backends, min_size=1, max_size=3).map(
                lambda entries: [{"name": "P", "backends": entries}]
            ),
            "forward": st.fixed_dictionaries({"timeout_ms": st.integers(1, 9)}),
            "rhai": st.fixed_dictionaries({"max_operations": st.integers(1, 9)}),
            "metrics": METRICS,
        },
    )


def model(tree: dict[str, Any]) -> Config:
    """The model of a tree, whether or not its values can work together."""
    return build_config(completed(tree))


@settings(max_examples=200, deadline=None)
@given(patches(CHANGED), patches(CHANGED), patches(CHANGED))
def test_accumulating_is_applying_in_turn(
    one: dict[str, Any], two: dict[str, Any], three: dict[str, Any]
) -> None:
    before = copy.deepcopy((FILE, one, two, three))
    step_by_step = onto_file(onto_file(onto_file(FILE, one), two), three)
    left = accumulate(accumulate(one, two), three)
    right = accumulate(one, accumulate(two, three))
    # by name and by address are two identities of one backend: the order of both stays
    assert (
        onto_file(FILE, accumulate(one, two))["forward"]
        == (onto_file(onto_file(FILE, one), two)["forward"])
    )
    for key in ("forward", "rhai", "metrics"):
        assert (
            onto_file(FILE, left).get(key)
            == onto_file(FILE, right).get(key)
            == step_by_step.get(key)
        )
    # nothing changes the trees that it was given
    assert (FILE, one, two, three) == before


@settings(max_examples=200, deadline=None)
@given(st.lists(st.fixed_dictionaries({"name": NAMES, "weight": WEIGHTS}), max_size=4))
def test_weights_by_name_accumulate(entries: list[dict[str, Any]]) -> None:
    overlay: dict[str, Any] = {"schema_version": 1}
    effective = FILE
    for entry in entries:
        patch = {"schema_version": 1, "pools": [{"name": "P", "backends": [entry]}]}
        overlay = accumulate(overlay, patch)
        effective = onto_file(effective, patch)
    assert model(onto_file(FILE, overlay)) == model(effective)


@settings(max_examples=200, deadline=None)
@given(patches(CHANGED | ADDED))
def test_the_same_patch_twice_is_the_patch_once(patch: dict[str, Any]) -> None:
    once = onto_file(FILE, patch)
    assert model(onto_file(once, patch)) == model(once)
    assert model(onto_file(FILE, accumulate(patch, patch))) == model(once)


@settings(max_examples=200, deadline=None)
@given(METRICS, METRICS, METRICS)
def test_metrics_patches_are_associative(
    one: dict[str, Any], two: dict[str, Any], three: dict[str, Any]
) -> None:
    left = merge_metrics(merge_metrics(one, two), three)
    assert left == merge_metrics(one, merge_metrics(two, three))
    assert merge_metrics(left, three) == left


@settings(max_examples=300, deadline=None)
@given(st.lists(patches(CHANGED | ADDED | REMOVED), max_size=4))
def test_a_difference_leads_to_what_it_is_of(changes: list[dict[str, Any]]) -> None:
    layers = Layers(FILE)
    for patch in changes:
        try:
            layers = layers.applied(patch, ApplyMode.MERGE)
            layers.effective()
        except MergeError:
            # as a rejected apply: the layers before it stay
            return
    wanted = layers.effective()
    if not wanted["pools"][0]["backends"]:
        return
    names = [b["name"] for b in wanted["pools"][0]["backends"] if b.get("name")]
    if len(names) != len(set(names)):
        return
    after = model(wanted)
    addresses = [b.address for b in after.pools[0].backends]
    overlay = difference(FILE, wanted, model(FILE), after)
    if len(addresses) == len(set(addresses)):
        reached = model(onto_file(FILE, overlay)) if overlay else model(FILE)
        assert same_pools(reached.pools, after.pools)
        assert (reached.forward, reached.rhai, reached.metrics) == (
            after.forward,
            after.rhai,
            after.metrics,
        )
    # and from there nothing is left to do
    assert difference(wanted, wanted, after, after) == {}


def test_markers_in_a_file_mean_nothing() -> None:
    pools = [
        {"name": "p", "remove": True, "backends": [{"address": "10.0.0.1:53", "remove": True}]}
    ]
    file = {**MIN, "pools": pools}
    patch = {"pools": [{"name": "p", "backends": [{"address": "10.0.0.1:53", "weight": 3}]}]}
    (pool,) = model(onto_file(file, patch)).pools
    assert [(b.address, b.effective_weight) for b in pool.backends] == [("10.0.0.1:53", 3)]


def test_a_pool_that_is_removed_and_given_anew_in_one_patch_is_replaced_as_a_whole() -> None:
    new = {"name": "P", "max_inflight": 4, "backends": [{"address": "10.0.0.9:53"}]}
    patch = {"schema_version": 1, "pools": [{"name": "P", "remove": True}, new]}
    layers = Layers(FILE).applied(patch, ApplyMode.MERGE)
    more = {"pools": [{"name": "P", "backends": [{"address": "10.0.0.9:53", "weight": 2}]}]}
    later = layers.applied({"schema_version": 1, **more}, ApplyMode.MERGE)
    after = model(later.effective())
    assert [(p.max_inflight, p.backends[0].weight) for p in after.pools] == [(4, 2)]
    overlay = difference(FILE, later.effective(), model(FILE), after)
    assert model(onto_file(FILE, overlay)).pools == after.pools
