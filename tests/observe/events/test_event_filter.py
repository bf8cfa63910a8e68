"""Filters and extras of one sink: sampling vectors and the examples of chapter 50."""

from __future__ import annotations

import json

import pytest

from conduit.observe.events.event_filter import SinkPlan, compile_plans
from conduit.observe.events.extra_json import compile_extra, json_string
from conduit.observe.events.sample_filter import compile_sampling, filter_threshold
from conduit.transaction import Transaction
from tests.observe.events.support import backend, events_of, make_txn


def plan(keys: str = "", name: str = "tap") -> SinkPlan:
    keys = f", {keys}" if keys else ""
    (found,) = compile_plans(
        events_of(f"{{sinks: [{{type: dnstap, name: {name}, destinations: ['unix:/s']{keys}}}]}}")
    )
    return found


def taken(found: SinkPlan, numbers: range = range(1, 21)) -> list[int]:
    return [number for number in numbers if found.wants_query(make_txn(number))]


def test_ch50_example_35_extra_of_query_and_response() -> None:
    found = plan("extra_fields: [pool, attempt_count, sink_name]")
    txn = make_txn()
    assert found.extra(txn) == b'{"attempt_count":0,"sink_name":"tap"}'
    txn.record_attempt("default", backend())
    assert found.extra(txn) == b'{"pool":"default","attempt_count":1,"sink_name":"tap"}'


def test_ch50_example_38_pool_filter_concerns_responses_only() -> None:
    found = plan("filters: {pool: a}")
    txn = make_txn(selected_pool="b")
    assert found.wants_query(txn)
    assert not found.wants_response(txn)
    txn.selected_pool = "a"
    assert found.wants_response(txn)


def test_ch50_example_39_unsalted_quarter() -> None:
    assert taken(plan("filters: {sample_percent: 25}")) == [4, 8, 12, 16, 20]


@pytest.mark.parametrize(("number", "bucket"), [(1, 8671), (3, 9340), (5, 21), (12345, 5789)])
def test_salted_vectors(number: int, bucket: int) -> None:
    def takes(buckets: int) -> bool:
        predicate = compile_sampling(buckets / 100, "zone-a", "", {})
        assert predicate is not None
        return predicate(make_txn(number))

    assert not takes(bucket)
    # one more than needed, because a double may fall short by one
    assert takes(bucket + 2)


def test_salt_from_the_sink_name_and_from_the_qname() -> None:
    fixed = taken(plan("filters: {sample_percent: 25, sample_key: zone-a}"))
    assert fixed == taken(
        plan("filters: {sample_percent: 25, sample_key_from: sink_name}", "zone-a")
    )
    assert 5 in fixed
    by_name = plan("filters: {sample_percent: 50, sample_key_from: qname}")
    answers = {by_name.wants_query(make_txn(7, qname=f"n{i}.test.")) for i in range(40)}
    assert answers == {True, False}


@pytest.mark.parametrize(
    ("percent", "threshold"), [(0, 0), (0.29, 28), (25, 2500), (99.99, 9998), (100, 10000)]
)
def test_threshold_of_a_filter(percent: float, threshold: int) -> None:
    assert filter_threshold(percent) == threshold


def test_all_or_nothing_costs_no_sampling() -> None:
    assert compile_sampling(100, "", "qname", {}) is None
    nothing = compile_sampling(0, "", "", {})
    assert nothing is not None
    assert not any(nothing(make_txn(number)) for number in range(1, 50))


def test_emit_defaults_to_query_and_response() -> None:
    txn = make_txn()
    found = plan("emit: []")
    assert (found.wants_query(txn), found.wants_response(txn)) == (True, True)
    assert not found.wants_retry(txn)
    only = plan("emit: [retry]")
    assert (only.wants_query(txn), only.wants_response(txn)) == (False, False)
    assert only.wants_retry(txn)


def test_rcode_selector_takes_no_query_even_with_an_rcode_from_policy() -> None:
    found = plan("filters: {selectors: [{type: rcode, value: NXDOMAIN}]}")
    txn = make_txn(rcode=3)
    assert not found.wants_query(txn)
    assert found.wants_response(txn)
    assert not found.wants_response(make_txn(rcode=0))


def test_all_clauses_hold_together() -> None:
    found = plan(
        "filters: {tag_required: t, selectors: [{type: qname_suffix, value: .test.},"
        " {type: qtype, value: A}]}"
    )
    txn = make_txn()
    assert not found.wants_query(txn)
    txn.set_flag("t")
    assert found.wants_query(txn)
    other = make_txn(qname="www.example.org.")
    other.set_flag("t")
    assert not found.wants_query(other)


@pytest.mark.parametrize(
    ("value", "matches"),
    [("r1", True), ("'10.0.0.1:53'", True), ("'10.0.0.1:54'", False), ("r2", False)],
)
def test_backend_filter_takes_name_or_address(value: str, matches: bool) -> None:
    found = plan(f"filters: {{backend: {value}}}")
    txn = make_txn()
    assert found.wants_query(txn)
    assert not found.wants_response(txn)
    txn.record_attempt("default", backend())
    assert found.wants_response(txn) is matches


def test_retry_frame_describes_the_attempt_about_to_start() -> None:
    found = plan("emit: [retry], filters: {pool: b}, extra_fields: [pool, attempt_count]")
    txn = make_txn()
    txn.record_attempt("a", backend())
    assert not found.wants_retry(txn)
    txn.retry_pool = "b"
    assert found.wants_retry(txn)
    assert found.retry_extra(txn) == b'{"pool":"b","attempt_count":2}'
    assert found.extra(txn) == b'{"pool":"a","attempt_count":1}'


def extra(txn: Transaction, fields: str, tags: str = "") -> bytes:
    return compile_extra(fields.split(), tags.split(), "tap")(txn)


def test_extra_fields_in_the_order_given() -> None:
    txn = make_txn(9, client="2001:db8::1", rcode=3, answer_source="forward")
    txn.record_attempt("default", backend(None))
    names = "rcode client backend txn_id qname answer_source cache_instance attempt_count"
    assert extra(txn, names).decode() == (
        '{"rcode":"NXDOMAIN","client":"[2001:db8::1]:4321","backend":"10.0.0.1:53","txn_id":9,'
        '"qname":"www.example.test.","answer_source":"forward","attempt_count":1}'
    )
    assert extra(make_txn(), "pool backend rcode tags answer_source cache_instance") == b"{}"
    assert extra(make_txn(), "") == b""
    assert extra(make_txn(), "client") == b'{"client":"192.0.2.7:4321"}'


def test_tags() -> None:
    txn = make_txn()
    txn.set_string("s", "text")
    txn.set_flag("b")
    txn.set_flag("off", False)
    assert extra(txn, "tags") == b'{"tags":{"b":true,"s":"text"}}'
    assert extra(txn, "tags", "*") == extra(txn, "tags")
    assert extra(txn, "tags", "s off none b") == b'{"tags":{"s":"text","b":true}}'
    assert extra(txn, "tags", "off none") == b"{}"
    txn.set_string("b", "both")
    assert extra(txn, "tags") == b'{"tags":{"s":"text","b":"both"}}'


def test_escaping() -> None:
    text = 'q" b\\ \n\r\t \x00\x1f\x08\x7f\x85 \u00e9\u2028'
    assert json_string(text) == (
        '"q\\" b\\\\ \\n\\r\\t \\u0000\\u001f\\u0008\\u007f\\u0085 \u00e9\u2028"'
    )
    assert json.loads(json_string(text)) == text
    txn = make_txn()
    txn.set_string("k", "lone \ud800")
    assert json.loads(extra(txn, "tags")) == {"tags": {"k": "lone ?"}}


def test_unknown_field_is_named() -> None:
    with pytest.raises(ValueError, match="nonsense"):
        compile_extra(["nonsense"], [], "tap")
