"""Bit-exact sampling: every vector of chapter 30 section 4.4."""

from __future__ import annotations

import math
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conduit.policy.sampling import (
    address_bucket,
    global_bucket,
    parse_percent,
    salted_bucket,
    threshold,
)
from conduit.policy.siphash import siphash13

SALTED = {
    "zone-a": [8671, 3850, 9340, 7606, 21, 3733],
    "zone-b": [9910, 4679, 1623, 8924, 5168, 8103],
    "my-rule": [4789, 370, 8535, 7265, 2990, 5773],
    "www.example.com.": [2116, 7339, 3803, 1951],
    "WWW.example.com.": [8524, 724, 8543, 2111],
}


def test_siphash_of_nothing() -> None:
    assert siphash13(b"") == 0xD1FBA762150C532C


def test_global_buckets() -> None:
    assert [global_bucket(n) for n in range(1, 9)] == [
        8485,
        5354,
        3839,
        708,
        7577,
        6062,
        2931,
        1416,
    ]


@pytest.mark.parametrize("salt", SALTED)
def test_salted_buckets(salt: str) -> None:
    expected = SALTED[salt]
    assert [salted_bucket(n + 1, salt.encode()) for n in range(len(expected))] == expected


def test_an_empty_salt_is_the_global_bucket() -> None:
    assert salted_bucket(5, b"") == global_bucket(5)


def test_address_buckets() -> None:
    assert address_bucket(socket.inet_aton("203.0.113.9")) == 8144
    assert address_bucket(socket.inet_pton(socket.AF_INET6, "2001:db8::1")) == 9477


@pytest.mark.parametrize(
    ("percent", "expected"),
    [
        (0, 0),
        (100, 10000),
        (57, 5699),
        (57.01, 5701),
        (69, 6899),
        (0.03, 2),
        (50, 5000),
        (0.004, 0),
    ],
)
def test_thresholds(percent: float, expected: int) -> None:
    assert threshold(percent) == expected


def test_573_values_lose_one() -> None:
    # k/10000*10000 in IEEE doubles, as the chapter counts it
    short = sum(math.floor(k / 10000 * 10000) == k - 1 for k in range(10000))
    assert short == 573


@pytest.mark.parametrize("text", ["12.5", ".5", "5.", "+5", "1e1", " 7 ", "0", "100"])
def test_accepted_numbers(text: str) -> None:
    assert 0 <= parse_percent(text) <= 100


@pytest.mark.parametrize("text", ["nan", "inf", "1_0", "", "-1", "100.01", "1e3", "0x1", "٣"])
def test_refused_numbers(text: str) -> None:
    with pytest.raises(ValueError, match="0 to 100"):
        parse_percent(text)


@given(st.integers(0, 2**64 - 1), st.binary(max_size=40))
def test_buckets_stay_in_range(transaction_id: int, salt: bytes) -> None:
    assert 0 <= salted_bucket(transaction_id, salt) < 10000
