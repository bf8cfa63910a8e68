"""Egress source selection (chapter 20 section 12.6)."""

from __future__ import annotations

from conduit.upstream.pool import Pool
from conduit.upstream.source import SourceSelector

PLAIN = Pool("p", [])
OWN = Pool("q", [], sources_v4=("127.0.0.7",))


def test_ch20_example_29_round_robin_over_the_global_list() -> None:
    selector = SourceSelector(["127.0.0.1", "127.0.0.2"])
    chosen = [selector.choose(PLAIN, False, None) for _ in range(4)]
    assert chosen == ["127.0.0.1", "127.0.0.2", "127.0.0.1", "127.0.0.2"]


def test_ch20_example_30_override_outside_the_allowed_set_is_ignored() -> None:
    selector = SourceSelector(["127.0.0.1"])
    assert selector.choose(PLAIN, False, "127.0.0.9") == "127.0.0.1"


def test_without_lists_every_override_is_ignored() -> None:
    assert SourceSelector().choose(PLAIN, False, "127.0.0.9") is None


def test_a_pool_list_replaces_the_global_one_for_round_robin() -> None:
    selector = SourceSelector(["127.0.0.1"])
    assert selector.choose(OWN, False, None) == "127.0.0.7"


def test_the_allowed_set_is_the_union() -> None:
    selector = SourceSelector(["127.0.0.1"])
    assert selector.choose(OWN, False, "127.0.0.1") == "127.0.0.1"
    assert selector.choose(OWN, False, "127.0.0.7") == "127.0.0.7"


def test_the_counter_is_shared_by_pools_and_not_moved_by_overrides() -> None:
    selector = SourceSelector(["127.0.0.1", "127.0.0.2"])
    assert selector.choose(PLAIN, False, None) == "127.0.0.1"
    assert selector.choose(PLAIN, False, "127.0.0.1") == "127.0.0.1"
    assert selector.choose(OWN, False, None) == "127.0.0.7"
    # two list-based choices so far
    assert selector.choose(PLAIN, False, None) == "127.0.0.1"


def test_families_never_mix() -> None:
    selector = SourceSelector(["127.0.0.1"], ["::1"])
    assert selector.choose(PLAIN, True, None) == "::1"
    assert selector.choose(PLAIN, True, "127.0.0.1") == "::1"
    assert SourceSelector(["127.0.0.1"]).choose(PLAIN, True, None) is None
