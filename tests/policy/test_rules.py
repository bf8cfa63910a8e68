"""The compiled rules against a naive evaluator, and the examples of chapter 30."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conduit.config import Rule, Selector
from conduit.policy.rules import CompiledRule, RuleSet, compile_hook
from conduit.policy.selectors import compile_selector
from conduit.policy.tables import CidrTable, Limits, parse_cidr
from conduit.transaction import Transaction
from tests.support.scripted import (
    ScriptedRun,
    answer,
    failure,
    make_query,
    snapshot_of,
    timeout,
)

POOLS = (
    "pools:\n"
    "  - {name: default, backends: [{name: d, address: '127.0.0.1:5301'}]}\n"
    "  - {name: b, backends: [{name: b1, address: '127.0.0.1:5302'},"
    " {name: b2, address: '127.0.0.1:5303'}]}\n"
)


def rules(*entries: str) -> str:
    """A rules block from `name; hook; selectors; actions` lines."""
    lines = ["rules:", "  rules:"]
    for number, entry in enumerate(entries):
        hook, selectors, actions = (part.strip() for part in entry.split("|"))
        lines.append(f"    - name: r{number}")
        lines.append(f"      hook: {hook}")
        for key, text in (("selectors", selectors), ("actions", actions)):
            items = []
            for item in filter(None, (piece.strip() for piece in text.split(","))):
                kind, _, value = item.partition(" ")
                items.append(f"{{type: {kind}, value: '{value}'}}")
            lines.append(f"      {key}: [{', '.join(items)}]")
    return "\n".join(lines) + "\n"


def run_rules(
    *entries: str,
    script: Sequence[object] = (),
    qname: str = "www.example.test.",
    **options: object,
) -> ScriptedRun:
    snapshot = snapshot_of(POOLS + rules(*entries))
    query = make_query(qname, str(options.pop("qtype", "A")))
    return ScriptedRun(snapshot, list(script), query=query, **options).go()  # type: ignore[arg-type]


OK = [answer()]


@pytest.mark.parametrize(
    ("qname", "pool"),
    [("x.corp.test.", "b"), ("corp.test.", "default"), ("X.CORP.test.", "b")],
)
def test_ch30_example_01_suffix_with_case_folded(qname: str, pool: str) -> None:
    # ruling: names compare with ASCII case folded
    run = run_rules("request | qname_suffix .corp.test. | set_pool b", script=OK, qname=qname)
    assert run.attempts[0].split("/")[0] == pool


def test_ch30_example_02_suffix_has_no_label_boundary() -> None:
    run = run_rules(
        "request | qname_suffix corp.test. | set_pool b", script=OK, qname="evilcorp.test."
    )
    assert run.attempts[0].startswith("b/")


def test_ch30_example_03_exact_needs_the_final_dot() -> None:
    run = run_rules("request | qname_exact a.test | set_pool b", script=OK, qname="a.test.")
    assert run.attempts == ["default/d"]


def test_ch30_example_04_the_first_match_ends_the_walk() -> None:
    run = run_rules("request | | set_pool b", "request | | drop", script=OK)
    assert run.attempts[0].startswith("b/")


def test_ch30_example_05_soft_drop_runs_later_actions() -> None:
    run = run_rules("request | | drop, set_tag t=1")
    assert run.txn.reply is None
    assert run.txn.has_tag("t")
    assert run.recorder.queries_dropped == {("127.0.0.1:15353", "udp", "request_rules", "v4"): 1}


def test_ch30_example_06_hard_drop_does_not() -> None:
    run = run_rules("request | | drop_now, set_tag t=1")
    assert run.txn.reply is None
    assert not run.txn.has_tag("t")


def test_ch30_example_07_clear_drop() -> None:
    assert run_rules("request | | drop, clear_drop", script=OK).rcode == "NOERROR"
    assert run_rules("request | | clear_drop, drop").txn.reply is None


def test_ch30_example_08_drop_beats_retry() -> None:
    run = run_rules("response | rcode SERVFAIL | retry, drop", script=[answer("SERVFAIL")])
    assert run.txn.drop_reason == "response_rules"
    assert not run.recorder.retries


def test_ch30_example_09_retry_now_and_soft_drop() -> None:
    run = run_rules(
        "response | rcode SERVFAIL | drop, retry_now, set_tag t", script=[answer("SERVFAIL")]
    )
    assert run.txn.reply is None
    assert not run.txn.has_tag("t")
    run = run_rules(
        "request | | set_pool b",
        "response | rcode SERVFAIL | drop, clear_drop, retry_now",
        script=[answer("SERVFAIL"), answer()],
    )
    assert run.rcode == "NOERROR"


def test_ch30_example_10_clear_retry_and_clear_retry_pool() -> None:
    run = run_rules("response | rcode SERVFAIL | retry, clear_retry", script=[answer("SERVFAIL")])
    assert run.rcode == "SERVFAIL"
    assert run.txn.answer is not None
    run = run_rules(
        "request | | set_pool b",
        "response | rcode SERVFAIL | set_retry_pool default, retry, clear_retry_pool",
        script=[answer("SERVFAIL"), answer()],
    )
    assert [a.split("/")[0] for a in run.attempts] == ["b", "b"]


def test_ch30_example_11_fail_over_after_a_timeout() -> None:
    run = run_rules(
        "request | | set_pool default, set_retry_pool b",
        "response | rcode SERVFAIL | retry",
        script=[timeout, answer()],
    )
    assert run.rcode == "NOERROR"
    assert run.recorder.retries == {("b",): 1}
    assert run.recorder.queries_by_pool == {("default",): 1, ("b",): 1}


def test_ch30_example_12_later_retries_stay_in_the_pool_last_used() -> None:
    run = run_rules(
        "request | | set_pool default, set_retry_pool b",
        "response | rcode SERVFAIL | retry",
        script=[timeout, answer("SERVFAIL"), answer()],
    )
    assert [a.split("/")[0] for a in run.attempts] == ["default", "b", "b"]


def test_ch30_example_13_set_retry_pool_requests_no_retry() -> None:
    run = run_rules("request | | set_retry_pool b", script=OK)
    assert run.attempts == ["default/d"]


def test_ch30_example_14_15_set_rcode() -> None:
    run = run_rules("response | rcode NXDOMAIN | set_rcode REFUSED", script=[answer("NXDOMAIN")])
    assert run.rcode == "NXDOMAIN"
    run = run_rules("response | rcode SERVFAIL | set_rcode REFUSED", script=[timeout])
    assert run.rcode == "REFUSED"


def test_ch30_example_16_rcode_on_request_never_matches() -> None:
    assert run_rules("request | rcode NOERROR | drop", script=OK).rcode == "NOERROR"


@pytest.mark.parametrize(
    ("selector", "qtype", "matches"),
    [
        ("qtype type28", "AAAA", True),
        ("qtype aaaa", "AAAA", True),
        ("qtype ANY", "ANY", True),
        ("qtype A", "AAAA", False),
        ("qclass IN", "A", True),
        ("qclass CH", "A", False),
        ("opcode QUERY", "A", True),
        ("opcode dso", "A", False),
        ("opcode OPCODE300", "A", False),
        ("edns_option ede", "A", False),
    ],
)
def test_ch30_example_20_enum_selectors(selector: str, qtype: str, matches: bool) -> None:
    run = run_rules(f"request | {selector} | drop", script=[] if matches else OK, qtype=qtype)
    assert (run.txn.reply is None) is matches


def test_ch30_example_21_22_tags() -> None:
    run = run_rules(
        "request | | set_tag vip=false, set_tag a=b=c, set_tag lone, set_tag =v, set_tag k=",
        script=OK,
    )
    assert run.txn.strings == {"vip": "false", "a": "b=c", "lone": "true", "": "v", "k": ""}
    assert run.txn.has_tag("vip")
    assert not run.txn.has_tag("vip=false")
    run = run_rules("request | | set_tag vip=1, clear_tag vip", script=OK)
    assert not run.txn.has_tag("vip")


@pytest.mark.parametrize(
    ("selector", "matching"),
    [
        ("sample_percent 50", [3, 4, 7, 8]),
        ("every_nth_worker 4", [4, 8]),
        ("every_nth_global 3", [3, 6]),
        ("sample_percent 100", [1, 2, 3, 4, 5, 6, 7, 8]),
        ("sample_percent 0", []),
    ],
)
def test_ch30_example_23_27_cadence_and_samples(selector: str, matching: list[int]) -> None:
    dropped = [
        number
        for number in range(1, 9)
        if ScriptedRun(
            snapshot_of(POOLS + rules(f"request | {selector} | drop")),
            [] if number in matching else OK,
            transaction_id=number,
        )
        .go()
        .txn.reply
        is None
    ]
    assert dropped == matching


@pytest.mark.parametrize(("key", "ids"), [("zone-a", {2, 5, 6}), ("zone-b", {2, 3})])
def test_ch30_example_24_salted_samples(key: str, ids: set[int]) -> None:
    predicate = compile_selector(Selector("sample_percent", "50", key=key), {}, {})
    assert {n for n in range(1, 7) if predicate(transaction(number=n))} == ids


@pytest.mark.parametrize(("percent", "matches"), [("57", False), ("57.01", True)])
def test_ch30_example_25_threshold_rounding(percent: str, matches: bool) -> None:
    predicate = compile_selector(Selector("sample_percent", percent), {}, {})
    assert predicate(transaction(number=35527)) is matches


def test_ch30_example_28_client_cidr() -> None:
    tables = {"nets": parse_cidr("nets", "10.0.0.0/8\n", Limits(99, 99, 99, 99))}
    predicate = compile_selector(Selector("client_cidr", "nets"), {}, tables)
    assert predicate(transaction(client="10.9.9.9"))
    assert not predicate(transaction(client="192.0.2.1"))


def test_ch30_example_40_no_answer_rules() -> None:
    run = run_rules("no_answer | | set_rcode REFUSED", script=[failure("tcp_error")])
    assert run.rcode == "REFUSED"
    run = run_rules("no_answer | | drop", script=[failure("tcp_error")])
    assert run.txn.reply is None
    assert run.recorder.queries_dropped == {("127.0.0.1:15353", "udp", "no_answer_rules", "v4"): 1}


def test_answer_source_never_matches_on_no_answer() -> None:
    run = run_rules(
        "response | rcode SERVFAIL | retry",
        "no_answer | answer_source forward | drop",
        script=[answer("SERVFAIL")],
    )
    assert run.rcode == "SERVFAIL"


def test_answer_source_matches_after_an_answer() -> None:
    run = run_rules("response | answer_source Forward | drop", script=OK)
    assert run.txn.reply is None


def test_route_failure_policy_runs_response_rules() -> None:
    yaml = (
        POOLS
        + rules("response | rcode SERVFAIL | set_retry_pool b, retry")
        + "orchestrator: {route_failure_policy: response_rules}\n"
    )
    run = ScriptedRun(
        snapshot_of(yaml), OK, setup=lambda txn: setattr(txn, "selected_pool", "gone")
    ).go()
    assert run.attempts[0].startswith("b/")


def test_pool_and_source_setters_and_clearers() -> None:
    yaml = POOLS.replace(
        "{name: default,", "{name: default, sources_v4: ['127.0.0.9'], sources_v6: ['::1'],"
    )
    run = ScriptedRun(
        snapshot_of(
            yaml
            + rules(
                "request | | set_pool b, clear_pool, set_source_v4 127.0.0.9, set_source_v6 0:0::1,"
                "set_retry_source_v4 127.0.0.9, set_retry_source_v6 ::1, clear_retry_source_v4,"
                "set_retry_pool b, clear_retry_pool"
            )
        ),
        OK,
    ).go()
    assert run.attempts == ["default/d"]
    txn = run.txn
    assert (txn.source_v4, txn.source_v6) == ("127.0.0.9", "::1")
    assert (txn.retry_source_v4, txn.retry_source_v6, txn.retry_pool) == (None, "::1", None)


# the compiled rule set against a naive one


def transaction(
    qname: str = "www.example.test.",
    number: int = 1,
    client: str = "192.0.2.1",
    qtype: str = "A",
) -> Transaction:
    return Transaction(
        number,
        number,
        make_query(qname, qtype),
        None,
        None,
        client,
        None,
        0.0,  # type: ignore[arg-type]
    )


def naive(entries: Sequence[Rule], tables: dict[str, CidrTable], txn: Transaction) -> str | None:
    """The walk as chapter 30 section 3.1 states it."""
    for rule in entries:
        if all(compile_selector(s, {"rule_name": rule.name}, tables)(txn) for s in rule.selectors):
            return rule.name
    return None


LABELS = ["a", "b", "A", "www", "example", "ample", "test"]
names = st.lists(st.sampled_from(LABELS), min_size=0, max_size=4).map(
    lambda labels: ".".join([*labels, ""]) or "."
)
suffixes = st.one_of(
    names.map(lambda n: "." + n),
    names,
    st.tuples(st.sampled_from(["", "le", "mple", "t"]), names).map("".join),
    st.sampled_from(["", ".", "test", ".test"]),
)
selectors = st.one_of(
    names.map(lambda n: Selector("qname_exact", n)),
    suffixes.map(lambda s: Selector("qname_suffix", s)),
    st.sampled_from(["A", "AAAA", "TYPE1"]).map(lambda t: Selector("qtype", t)),
    st.sampled_from(["2", "3"]).map(lambda n: Selector("every_nth_global", n)),
    st.just(Selector("client_cidr", "nets")),
    st.just(Selector("tag", "vip")),
)
TABLES = {"nets": parse_cidr("nets", "10.0.0.0/8\n", Limits(99, 99, 99, 99))}


@settings(max_examples=2500, deadline=None)
@given(
    rule_selectors=st.lists(st.lists(selectors, max_size=3), max_size=12),
    queries=st.lists(
        st.tuples(
            names,
            st.integers(1, 6),
            st.sampled_from(["10.1.1.1", "192.0.2.1"]),
            st.sampled_from(["A", "AAAA"]),
            st.booleans(),
        ),
        min_size=8,
        max_size=8,
    ),
)
def test_the_compiled_rules_decide_as_the_naive_walk(
    rule_selectors: list[list[Selector]],
    queries: list[tuple[str, int, str, str, bool]],
) -> None:
    """2,500 rule sets with 8 queries each: 20,000 decisions."""
    entries = [
        Rule(f"r{n}", "request", tuple(chosen), ()) for n, chosen in enumerate(rule_selectors)
    ]
    steps = {rule.name: [] for rule in entries}
    compiled = compile_hook(entries, "request", TABLES, steps)
    for qname, number, client, qtype, tagged in queries:
        txn = transaction(qname, number, client, qtype)
        if tagged:
            txn.set_flag("vip")
        found = compiled.find(txn) if compiled is not None else None
        assert (found.name if found else None) == naive(entries, TABLES, txn)


def test_ten_thousand_name_rules_need_no_walk() -> None:
    """The work per query does not grow with the number of name rules."""
    calls = 0

    def counted(txn: Transaction) -> bool:
        nonlocal calls
        calls += 1
        return True

    entries: list[tuple[CompiledRule, Selector | None]] = []
    for n in range(10_000):
        kind = ("qname_exact", f"n{n}.test.") if n % 2 else ("qname_suffix", f".s{n}.test.")
        entries.append((CompiledRule(n, n, f"r{n}", [counted], []), Selector(*kind)))
    compiled = RuleSet(entries)
    assert compiled.find(transaction("n9999.test.")) is entries[9999][0]
    assert compiled.find(transaction("x.S9998.test.")) is entries[9998][0]
    assert compiled.find(transaction("none.test.")) is None
    assert calls == 2
