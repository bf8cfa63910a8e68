"""The pipeline driven by scripts: routing, retries, limits, counters (chapter 20)."""

from __future__ import annotations

import dns.flags
import dns.message
import pytest

from conduit.policy.outcome import CONTINUE, DROP, RETRY
from conduit.transaction import Transaction
from conduit.upstream.exchange import (
    TCP,
    UDP,
    UDP_WITH_TCP_FALLBACK,
    Exchange,
    ExchangeResult,
)
from conduit.wire import ExtendedError
from tests.support.scripted import (
    ScriptedRun,
    answer,
    failure,
    make_query,
    snapshot_of,
    timeout,
)

ONE = "pools: [{name: default, backends: [{name: a, address: '127.0.0.1:5301'}]}]\n"
TWO = (
    "pools: [{name: default, backends: ["
    "{name: a, address: '127.0.0.1:5301'}, {name: b, address: '127.0.0.1:5302'}]}]\n"
)
PRIMARY_AND_STANDBY = (
    "pools:\n"
    "  - {name: p, backends: [{name: p1, address: '127.0.0.1:5301'},"
    " {name: p2, address: '127.0.0.1:5302'}]}\n"
    "  - {name: s, backends: [{name: s1, address: '127.0.0.1:5303'},"
    " {name: s2, address: '127.0.0.1:5304'}]}\n"
    "orchestrator: {max_attempts: 4, max_txn_duration_ms: 60000}\n"
)


def retry_on_servfail(txn: Transaction) -> int:
    return RETRY if txn.rcode == 2 else CONTINUE


def test_a_forwarded_answer_reaches_the_client_unchanged() -> None:
    run = ScriptedRun(snapshot_of(ONE), [answer(records=["192.0.2.1"])]).go()
    assert run.attempts == ["default/a"]
    assert run.txn.reply is not None
    assert run.txn.reply[:2] == b"\x12\x34"
    assert run.txn.answer_source == "forward"
    assert run.recorder.queries == {("127.0.0.1:15353", "udp", 1, 1, "v4"): 1}
    assert run.recorder.responses == {("127.0.0.1:15353", "udp", "NOERROR", "v4", "forward"): 1}
    assert run.recorder.queries_by_pool == {("default",): 1}
    assert run.recorder.forward_attempts == {("default", "a", "success"): 1}
    assert not run.recorder.forward_errors


def test_a_dropped_query_ends_without_an_effect_and_without_a_reply() -> None:
    snapshot = snapshot_of(ONE, request_rules=lambda txn: DROP)
    run = ScriptedRun(snapshot, []).go()
    assert run.txn.reply is None
    assert run.txn.drop_reason == "request_rules"
    assert run.recorder.queries_dropped == {("127.0.0.1:15353", "udp", "request_rules", "v4"): 1}
    assert not run.recorder.responses


def test_a_drop_by_response_rules_sends_nothing() -> None:
    snapshot = snapshot_of(ONE, response_rules=lambda txn: DROP)
    run = ScriptedRun(snapshot, [answer()]).go()
    assert run.txn.reply is None
    assert run.txn.drop_reason == "response_rules"


def test_a_drop_by_no_answer_rules_sends_nothing() -> None:
    snapshot = snapshot_of(ONE, no_answer_rules=lambda txn: DROP)
    run = ScriptedRun(snapshot, [failure("send_error")]).go()
    assert run.txn.reply is None
    assert run.txn.drop_reason == "no_answer_rules"


def test_no_answer_rules_may_change_the_rcode() -> None:
    def refuse(txn: Transaction) -> int:
        txn.rcode = 5
        return CONTINUE

    run = ScriptedRun(snapshot_of(ONE, no_answer_rules=refuse), [failure("tcp_error")]).go()
    assert run.rcode == "REFUSED"


def test_no_answer_rules_do_not_run_when_an_answer_is_stored() -> None:
    snapshot = snapshot_of(ONE, no_answer_rules=lambda txn: DROP)
    assert ScriptedRun(snapshot, [answer("NXDOMAIN")]).go().rcode == "NXDOMAIN"


def test_ch20_example_03_default_pool_wherever_it_stands() -> None:
    yaml = (
        "pools:\n  - {name: x, backends: [{address: '127.0.0.1:5301'}]}\n"
        "  - {name: default, backends: [{address: '127.0.0.1:5302'}]}\n"
    )
    run = ScriptedRun(snapshot_of(yaml), [answer()]).go()
    assert run.attempts == ["default/127.0.0.1:5302"]
    assert run.recorder.queries_by_pool == {("default",): 1}


def test_the_first_pool_is_the_default_without_one_of_that_name() -> None:
    yaml = (
        "pools:\n  - {name: x, backends: [{address: '127.0.0.1:5301'}]}\n"
        "  - {name: y, backends: [{address: '127.0.0.1:5302'}]}\n"
    )
    assert ScriptedRun(snapshot_of(yaml), [answer()]).go().attempts == ["x/127.0.0.1:5301"]


def test_ch20_example_04_unknown_pool_is_servfail_without_a_packet() -> None:
    run = ScriptedRun(
        snapshot_of(ONE), [], setup=lambda txn: setattr(txn, "selected_pool", "nowhere")
    ).go()
    assert run.rcode == "SERVFAIL"
    assert run.txn.attempt_count == 0
    assert run.txn.convergence_reason == "no_backend_selected"
    assert not run.recorder.queries_by_pool
    assert not run.recorder.forward_attempts


def test_ch20_example_05_single_backend_retry_is_exhausted() -> None:
    snapshot = snapshot_of(ONE, response_rules=retry_on_servfail)
    run = ScriptedRun(snapshot, [answer("SERVFAIL")], query=make_query(edns=0)).go()
    assert run.attempts == ["default/a"]
    assert run.recorder.retries == {("default",): 1}
    assert run.recorder.queries_by_pool == {("default",): 1}
    assert run.rcode == "SERVFAIL"
    # synthesized: RA set by us, and an Extended DNS Error that names the cause
    reply = run.reply
    assert reply is not None
    assert reply.flags & dns.flags.RA
    assert [int(option.code) for option in reply.extended_errors()] == [
        ExtendedError.NO_REACHABLE_AUTHORITY
    ]


def test_ch20_example_06_max_attempts_one_permits_no_retry() -> None:
    snapshot = snapshot_of(
        TWO + "orchestrator: {max_attempts: 1}\n", response_rules=retry_on_servfail
    )
    run = ScriptedRun(snapshot, [answer("SERVFAIL")]).go()
    assert len(run.attempts) == 1
    assert run.recorder.retries == {("default",): 1}
    assert run.rcode == "SERVFAIL"
    assert run.txn.answer is None
    assert run.txn.convergence_reason == "attempts_exhausted"


def test_ch20_example_07_worked_table_of_section_17() -> None:
    def request(txn: Transaction) -> int:
        txn.selected_pool = "p"
        txn.retry_pool = "s"
        return CONTINUE

    snapshot = snapshot_of(
        PRIMARY_AND_STANDBY, request_rules=request, response_rules=retry_on_servfail
    )
    run = ScriptedRun(snapshot, [answer("SERVFAIL")] * 3).go()
    pools = [attempt.split("/")[0] for attempt in run.attempts]
    assert pools == ["p", "s", "s"]
    assert len(set(run.attempts)) == 3
    assert run.rcode == "SERVFAIL"
    assert run.recorder.queries_by_pool == {("p",): 1, ("s",): 2}
    assert run.recorder.retries == {("s",): 3}
    assert run.txn.retry_pool is None
    assert run.txn.selected_pool == "s"
    assert run.txn.attempt_count == 3
    assert run.txn.convergence_reason == "no_backend_selected"


def test_section_17_row_by_row_states() -> None:
    """The state before and after each Route of the worked table."""
    before: list[tuple[int, str | None]] = []
    after: list[str | None] = []

    def request(txn: Transaction) -> int:
        txn.selected_pool = "p"
        txn.retry_pool = "s"
        before.append((txn.attempt_count, txn.retry_pool))
        return CONTINUE

    def response(txn: Transaction) -> int:
        after.append(txn.selected_pool)
        before.append((txn.attempt_count, txn.retry_pool))
        return RETRY

    snapshot = snapshot_of(PRIMARY_AND_STANDBY, request_rules=request, response_rules=response)
    ScriptedRun(snapshot, [answer("SERVFAIL")] * 3).go()
    assert before == [(0, "s"), (1, "s"), (2, None), (3, None)]
    assert after == ["p", "s", "s"]


def test_returning_to_the_first_pool_still_excludes_what_was_tried_there() -> None:
    pools = iter(["s", "p", "s", "p"])

    def response(txn: Transaction) -> int:
        txn.retry_pool = next(pools)
        return RETRY

    def request(txn: Transaction) -> int:
        txn.selected_pool = "p"
        return CONTINUE

    snapshot = snapshot_of(PRIMARY_AND_STANDBY, request_rules=request, response_rules=response)
    run = ScriptedRun(snapshot, [answer("SERVFAIL")] * 4).go()
    assert [a.split("/")[0] for a in run.attempts] == ["p", "s", "p", "s"]
    assert len(set(run.attempts)) == 4


def test_retry_pool_is_ignored_and_kept_on_the_first_route() -> None:
    run = ScriptedRun(
        snapshot_of(PRIMARY_AND_STANDBY),
        [answer()],
        setup=lambda txn: setattr(txn, "retry_pool", "s"),
    ).go()
    assert run.attempts[0].startswith("p/")
    assert run.txn.retry_pool == "s"


def test_a_retry_pool_is_cleared_even_if_route_then_fails() -> None:
    def response(txn: Transaction) -> int:
        txn.retry_pool = "nowhere"
        return RETRY

    run = ScriptedRun(snapshot_of(ONE, response_rules=response), [answer("SERVFAIL")]).go()
    assert run.txn.retry_pool is None
    assert run.rcode == "SERVFAIL"


def test_ch20_example_08_silent_backend() -> None:
    run = ScriptedRun(snapshot_of(ONE + "forward: {timeout_ms: 300}\n"), [timeout]).go()
    assert run.rcode == "SERVFAIL"
    assert run.clock.now == pytest.approx(1000.3)
    assert run.recorder.forward_errors == {("default", "a", "timeout"): 1}
    assert run.recorder.forward_attempts == {("default", "a", "error"): 1}
    assert run.txn.last_rtt_ms in (299, 300)


def test_ch20_example_09_timeout_then_answer_from_the_other() -> None:
    snapshot = snapshot_of(TWO, response_rules=retry_on_servfail)
    run = ScriptedRun(snapshot, [timeout, answer(records=["192.0.2.1"])]).go()
    assert len(set(run.attempts)) == 2
    assert run.rcode == "NOERROR"
    assert sorted((key[2], n) for key, n in run.recorder.forward_attempts.items()) == [
        ("error", 1),
        ("success", 1),
    ]


def test_ch20_example_10_duration_limit_skips_response_rules() -> None:
    yaml = (
        "pools: [{name: default, backends: [{address: '127.0.0.1:5301'},"
        " {address: '127.0.0.1:5302'}, {address: '127.0.0.1:5303'}]}]\n"
        "forward: {timeout_ms: 2000}\norchestrator: {max_txn_duration_ms: 3000}\n"
    )
    calls: list[float] = []
    run = ScriptedRun(snapshot_of(yaml), [timeout, timeout])

    def response(txn: Transaction) -> int:
        calls.append(run.clock.now)
        return RETRY

    run.snapshot = snapshot_of(yaml, response_rules=response)
    run.txn.snapshot = run.snapshot
    run.go()
    assert [e.deadline - 2.0 for e in run.exchanges] == pytest.approx([1000.0, 1002.0])
    assert run.clock.now == pytest.approx(1004.0)
    assert calls == pytest.approx([1002.0])
    assert sum(run.recorder.retries.values()) == 1
    assert run.rcode == "SERVFAIL"
    # the first reason of the transaction stays
    assert run.txn.convergence_reason == "forward_error"


def test_a_late_answer_is_delivered_without_response_rules() -> None:
    def late(run: ScriptedRun, exchange: Exchange) -> ExchangeResult:
        run.clock.advance(6.0)
        return answer("NXDOMAIN")(run, exchange)

    snapshot = snapshot_of(ONE, response_rules=lambda txn: DROP)
    run = ScriptedRun(snapshot, [late]).go()
    assert run.rcode == "NXDOMAIN"
    assert run.recorder.responses == {("127.0.0.1:15353", "udp", "NXDOMAIN", "v4", "forward"): 1}


def test_the_duration_limit_itself_is_not_past_it() -> None:
    def exactly(run: ScriptedRun, exchange: Exchange) -> ExchangeResult:
        run.clock.now = 1005.0
        return answer("SERVFAIL")(run, exchange)

    seen: list[int] = []
    snapshot = snapshot_of(ONE, response_rules=lambda txn: seen.append(1) or CONTINUE)
    ScriptedRun(snapshot, [exactly]).go()
    assert seen == [1]


@pytest.mark.parametrize("reason", ["send_error", "tcp_error", "table_full"])
def test_hard_failures_never_reach_response_rules(reason: str) -> None:
    snapshot = snapshot_of(TWO, response_rules=lambda txn: RETRY)
    run = ScriptedRun(snapshot, [failure(reason)]).go()
    assert len(run.attempts) == 1
    assert run.rcode == "SERVFAIL"
    assert run.txn.attempt_count == 1
    assert run.txn.convergence_reason == "forward_error"
    label = "unknown" if reason == "table_full" else run.attempts[0].split("/")[1]
    assert run.recorder.forward_errors == {("default", label, reason): 1}
    assert not run.recorder.retries


def test_route_failure_policy_response_rules_allows_a_retry_elsewhere() -> None:
    def response(txn: Transaction) -> int:
        assert txn.rcode == 2 or txn.answer is not None
        return RETRY if txn.rcode == 2 else CONTINUE

    def request(txn: Transaction) -> int:
        txn.selected_pool = "nowhere"
        txn.retry_pool = "s"
        return CONTINUE

    yaml = PRIMARY_AND_STANDBY.replace(
        "max_attempts: 4", "max_attempts: 4, route_failure_policy: response_rules"
    )
    run = ScriptedRun(
        snapshot_of(yaml, request_rules=request, response_rules=response), [answer()]
    ).go()
    assert run.attempts[0].startswith("s/")
    assert run.rcode == "NOERROR"


def test_ch20_example_21_no_pools_is_servfail_with_edns_kept() -> None:
    query = make_query("ExAmPle.CoM.", edns=0, dnssec=True)
    run = ScriptedRun(snapshot_of("pools: []\n"), [], query=query).go()
    wire = run.txn.reply
    assert wire is not None
    # ruling: QR, RD and RA set, AA clear, rcode SERVFAIL
    assert wire[2:4] == b"\x81\x82"
    assert b"\x07ExAmPle\x03CoM\x00" in wire
    reply = run.reply
    assert reply is not None
    assert reply.payload == 1232
    assert reply.ednsflags & dns.flags.DO
    assert run.txn.convergence_reason == "no_pool"


def test_ch20_example_22_large_answer_by_client_transport() -> None:
    records = [f"192.0.2.{n}" for n in range(40)]
    udp = ScriptedRun(snapshot_of(ONE), [answer(records=records)]).go()
    assert udp.txn.reply is not None
    assert len(udp.txn.reply) <= 512
    assert udp.reply is not None
    assert udp.reply.flags & dns.flags.TC
    assert udp.txn.truncated_on_send
    assert sum(udp.recorder.responses_truncated.values()) == 1
    tcp = ScriptedRun(snapshot_of(ONE), [answer(records=records)], protocol="tcp").go()
    assert tcp.txn.reply == tcp.txn.answer
    assert not tcp.recorder.responses_truncated


def test_ch20_example_31_source_overrides_by_attempt() -> None:
    yaml = (
        "pools: [{name: default, backends: [{address: '127.0.0.1:5301'},"
        " {address: '127.0.0.1:5302'}, {address: '127.0.0.1:5303'}]}]\n"
    )

    def request(txn: Transaction) -> int:
        txn.source_v4 = "127.0.0.1"
        txn.retry_source_v4 = "127.0.0.5"
        txn.retry_source_v6 = "::1"
        return CONTINUE

    snapshot = snapshot_of(yaml, request_rules=request, response_rules=retry_on_servfail)
    run = ScriptedRun(snapshot, [answer("SERVFAIL"), answer("SERVFAIL"), answer()]).go()
    assert [e.source_override for e in run.exchanges] == ["127.0.0.1", "127.0.0.5", "127.0.0.1"]
    # only the family that was used is consumed
    assert run.txn.retry_source_v6 == "::1"


@pytest.mark.parametrize(
    ("mode", "protocol", "follow", "expected"),
    [
        ("udp_only", "udp", False, UDP),
        ("udp_only", "tcp", True, UDP),
        ("tcp_only", "udp", False, TCP),
        ("tcp_only", "tcp", False, TCP),
        ("prefer_udp_with_tcp_fallback", "udp", True, UDP_WITH_TCP_FALLBACK),
        ("prefer_udp_with_tcp_fallback", "tcp", False, UDP_WITH_TCP_FALLBACK),
        ("prefer_udp_with_tcp_fallback", "tcp", True, TCP),
    ],
)
def test_transport_choice(mode: str, protocol: str, follow: bool, expected: str) -> None:
    yaml = (
        f"forward: {{upstream_transport: {mode}, "
        f"client_tcp_uses_upstream_tcp: {str(follow).lower()}}}\n"
    )
    run = ScriptedRun(snapshot_of(ONE + yaml), [answer()], protocol=protocol).go()
    assert run.exchanges[0].transport == expected


@pytest.mark.parametrize("qtype", ["AXFR", "IXFR"])
def test_zone_transfers_over_tcp_get_notimp(qtype: str) -> None:
    run = ScriptedRun(
        snapshot_of(ONE), [], query=make_query(qtype=qtype, edns=0), protocol="tcp"
    ).go()
    assert run.rcode == "NOTIMP"
    assert run.reply is not None
    assert [int(e.code) for e in run.reply.extended_errors()] == [ExtendedError.NOT_SUPPORTED]


def test_an_unknown_lookup_profile_is_servfail() -> None:
    run = ScriptedRun(snapshot_of(ONE), [], setup=lambda txn: txn.set_lookup_profile("ghost")).go()
    assert run.rcode == "SERVFAIL"
    assert run.txn.convergence_reason == "unknown_profile"


def test_a_retry_discards_the_earlier_answer() -> None:
    snapshot = snapshot_of(TWO, response_rules=retry_on_servfail)
    run = ScriptedRun(snapshot, [answer("SERVFAIL"), failure("send_error")]).go()
    assert run.txn.answer is None
    assert run.txn.answer_source is None
    assert run.reply is not None
    assert run.reply.flags & dns.flags.RA


def test_an_answer_that_does_not_decode_is_delivered_and_keeps_the_rcode() -> None:
    def broken(run: ScriptedRun, exchange: Exchange) -> ExchangeResult:
        result = answer("NXDOMAIN", records=["192.0.2.1"])(run, exchange)
        assert result.reply is not None
        result.reply = result.reply[:-3]
        return result

    run = ScriptedRun(snapshot_of(ONE), [broken]).go()
    assert run.txn.rcode is None
    assert run.txn.reply == run.txn.answer
    assert run.recorder.responses == {("127.0.0.1:15353", "udp", "OTHER", "v4", "forward"): 1}


def test_retries_after_route_failures_are_bounded() -> None:
    """A rule that retries a failed Route for ever must not keep a worker busy."""
    passes: list[int] = []

    def response(txn: Transaction) -> int:
        passes.append(1)
        return RETRY

    yaml = ONE + "orchestrator: {route_failure_policy: response_rules, max_attempts: 3}\n"
    run = ScriptedRun(
        snapshot_of(yaml, response_rules=response),
        [],
        setup=lambda txn: setattr(txn, "selected_pool", "nowhere"),
    ).go()
    assert run.rcode == "SERVFAIL"
    assert len(passes) == 3
