"""Sticky weighted selection: the rules and examples of chapter 20 section 11."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conduit.config.address import parse_socket_address
from conduit.upstream.backend import Backend
from conduit.upstream.pool import Pool, PoolTable


def backend(label: str, weight: int = 100, port: int | None = None, pool: str = "p") -> Backend:
    number = port if port is not None else 5300 + ord(label[0]) - ord("A")
    return Backend(pool, parse_socket_address(f"127.0.0.1:{number}"), label, weight)


class FixedHealth:
    """A health view for tests: which labels are up, and their latency factors."""

    def __init__(self, up: set[str], factors: dict[str, float] | None = None) -> None:
        self.up = up
        self.factors = factors or {}

    def is_up(self, backend: Backend) -> bool:
        return backend.label in self.up

    def weight_factor(self, backend: Backend) -> float | None:
        return self.factors.get(backend.label)


@pytest.mark.parametrize(("t", "label"), [(69, "A"), (70, "B"), (99, "B"), (100, "A")])
def test_ch20_example_01_weights_70_30(t: int, label: str) -> None:
    pool = Pool("p", [backend("A", 70), backend("B", 30)])
    chosen = pool.select(t, 0, 0, ())
    assert chosen is not None
    assert chosen.label == label


def test_ch20_example_01_generation_shifts_the_pick() -> None:
    pool = Pool("p", [backend("A"), backend("B")])
    chosen = pool.select(93, 7, 0, ())
    assert chosen is not None
    assert chosen.label == "B"


def test_ch20_example_02_unset_weights_and_retries() -> None:
    a, b, c = backend("A"), backend("B"), backend("C")
    pool = Pool("p", [a, b, c])
    assert pool.select(2, 0, 0, ()) is a
    assert pool.select(2, 0, 1, {a.key}) is b
    assert pool.select(2, 0, 2, {a.key, b.key}) is c
    assert pool.select(2, 0, 3, {a.key, b.key, c.key}) is None


def test_first_attempt_excludes_nothing() -> None:
    a = backend("A")
    assert Pool("p", [a]).select(1, 0, 0, {a.key}) is a


def test_the_sum_wraps_at_64_bits() -> None:
    a, b = backend("A"), backend("B")
    pool = Pool("p", [a, b])
    # (2**64 - 1 + 151) mod 2**64 = 150
    assert pool.select(2**64 - 1, 151, 0, ()) is b


def test_a_duplicate_address_adds_up_and_is_excluded_as_one() -> None:
    one, two = backend("A", port=5300), backend("B", port=5300)
    pool = Pool("p", [one, two])
    assert pool.select(1, 0, 1, {one.key}) is None


def test_an_empty_pool_selects_nothing() -> None:
    assert Pool("p", []).select(1, 0, 0, ()) is None


def test_ch20_example_40_fail_open_is_decided_before_exclusion() -> None:
    a, b = backend("A"), backend("B")
    pool = Pool("p", [a, b], health_enabled=True)
    health = FixedHealth({"A"})
    assert pool.select(1, 0, 0, (), health) is a
    assert pool.select(1, 0, 1, {a.key}, health) is None


def test_fail_open_when_none_is_up() -> None:
    a, b = backend("A"), backend("B")
    pool = Pool("p", [a, b], health_enabled=True)
    assert pool.select(150, 0, 0, (), FixedHealth(set())) is b


def test_min_eligible_opens_earlier() -> None:
    a, b, c = backend("A"), backend("B"), backend("C")
    pool = Pool("p", [a, b, c], health_enabled=True, min_eligible=2)
    assert pool.select(250, 0, 0, (), FixedHealth({"A"})) is c


def test_a_pool_of_one_is_always_eligible() -> None:
    a = backend("A")
    pool = Pool("p", [a], health_enabled=True)
    assert pool.select(1, 0, 0, (), FixedHealth(set())) is a


def test_latency_factors_round_halves_away_from_zero() -> None:
    a, b = backend("A", 5), backend("B", 5)
    pool = Pool("p", [a, b], health_enabled=True)
    # 5 x 0.5 = 2.5 -> 3, so picks 0..2 are A and 3..7 are B
    health = FixedHealth({"A", "B"}, {"A": 0.5})
    picks = [pool.select(t, 0, 0, (), health) for t in range(8)]
    assert [p.label for p in picks if p is not None] == ["A"] * 3 + ["B"] * 5


def test_health_is_ignored_where_the_pool_has_it_off() -> None:
    a = backend("A")
    b = backend("B")
    assert Pool("p", [a, b]).select(1, 0, 0, (), FixedHealth({"B"})) is a


@given(
    weights=st.lists(st.integers(1, 50), min_size=1, max_size=6),
    start=st.integers(0, 2**64 - 1),
    generation=st.integers(0, 2**64 - 1),
)
def test_shares_are_exact_over_one_full_round(
    weights: list[int], start: int, generation: int
) -> None:
    pool = Pool("p", [backend(chr(65 + i), w) for i, w in enumerate(weights)])
    total = sum(weights)
    ids = range(start, start + total)
    if ids[-1] + generation >= 2**64 > ids[0] + generation:
        return  # the wrap at 64 bits breaks one round in two
    counts = Counter(b.label for t in ids if (b := pool.select(t, generation, 0, ())))
    assert counts == {chr(65 + i): w for i, w in enumerate(weights)}


@given(
    weights=st.lists(st.integers(1, 50), min_size=2, max_size=6),
    t=st.integers(0, 10**6),
    data=st.data(),
)
def test_a_retry_chooses_an_untried_member(weights: list[int], t: int, data: st.DataObject) -> None:
    members = [backend(chr(65 + i), w) for i, w in enumerate(weights)]
    tried = data.draw(st.sets(st.sampled_from([b.key for b in members])))
    chosen = Pool("p", members).select(t, 3, 1, tried)
    if len(tried) == len(members):
        assert chosen is None
    else:
        assert chosen is not None
        assert chosen.key not in tried


def test_default_pool() -> None:
    x, default = Pool("x", [backend("A")]), Pool("default", [backend("B")])
    assert PoolTable([x, default]).default is default
    assert PoolTable([x]).default is x
    assert PoolTable([]).default is None
