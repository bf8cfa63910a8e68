"""Client ACLs end to end: tiers, actions, counting, the denial log (chapters 20 and 30)."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import dns.exception
import dns.rcode
import pytest

from conduit.config import AclDeniedSample, AclRule, Acls, QueryAccess
from conduit.policy.acl import AclDecision, compile_acls
from conduit.policy.denial_log import DenialLog
from conduit.policy.tables import Limits, parse_cidr
from tests.support.daemon import Conduit, configuration, with_metrics
from tests.support.ports import free_port
from tests.support.stub_upstream import StubUpstream

Start = Callable[..., Conduit]
TABLES = {
    name: parse_cidr(name, text, Limits(99, 99, 99, 99))
    for name, text in {"corp": "10.0.0.0/8\n", "bad": "192.0.2.0/24\n2001:db8::/32\n"}.items()
}


def policy(default: str, *entries: tuple[str, str, str | None]) -> Any:
    acls = Acls(default, tuple(AclRule(*entry) for entry in entries))
    return compile_acls(acls, TABLES)


def test_the_first_match_decides_then_the_default() -> None:
    acl = policy("deny", ("corp", "accept", None), ("bad", "refuse", None))
    assert acl.decide("10.1.1.1") == AclDecision("admit", "corp", "accept")
    assert acl.decide("192.0.2.9") == AclDecision("refuse", "bad", "refuse")
    assert acl.decide("198.51.100.1") == AclDecision("drop", "default", "deny")
    assert policy("allow").decide("::1") == AclDecision("admit", "default", "allow")
    assert policy("", ("bad", "tag", "x")).decide("2001:db8::5") == AclDecision(
        "tag", "bad", "tag", "x"
    )


def test_tier_0_acts_only_when_the_first_match_is_drop() -> None:
    acl = policy("deny", ("corp", "refuse", None), ("corp", "drop", None), ("bad", "drop", None))
    assert acl.drops_before_parse("10.1.1.1") is None
    assert acl.drops_before_parse("192.0.2.1") == "bad"
    assert acl.drops_before_parse("198.51.100.1") is None


def test_without_a_block_everyone_is_admitted_uncounted() -> None:
    assert compile_acls(None, TABLES) is None


def daemon(start: Start, stub: StubUpstream, acls: dict[str, Any] | None, **more: Any) -> Conduit:
    config = configuration(stub.address, metrics=with_metrics(free_port()), **more)
    config["data_sources"] = [
        {"name": "corp", "type": "cidr", "path": "corp.cidr"},
        {"name": "bad", "type": "cidr", "path": "bad.cidr"},
    ]
    if acls is not None:
        config["acls"] = acls
    return start(config, files={"corp.cidr": "127.0.0.8/32\n", "bad.cidr": "127.0.0.9\n"})


def silent(conduit: Conduit, **options: Any) -> bool:
    try:
        conduit.query("www.example.test.", timeout=0.5, **options)
    except (dns.exception.Timeout, EOFError, ConnectionError):
        return True
    return False


def test_ch30_example_34_listener_acl_replaces_the_global_one(
    stub: StubUpstream, start_conduit: Start
) -> None:
    listeners = {
        "listeners": [
            {"address": "127.0.0.1:0", "protocol": "udp", "name": "L1"},
            {"address": "127.0.0.2:0", "protocol": "udp", "name": "L2", "acls": {"rules": []}},
        ]
    }
    conduit = daemon(
        start_conduit,
        stub,
        {"default_action": "deny", "rules": [{"match": "corp", "action": "accept"}]},
        listeners=listeners,
    )
    assert silent(conduit, number=0)
    assert conduit.query("www.example.test.", number=0, source="127.0.0.8").answer
    assert conduit.query("www.example.test.", number=1).answer
    decisions = "conduit_acl_decisions_total"
    assert conduit.metric(decisions, tier="listener", action="drop", listener="L1") == 1
    assert conduit.metric(decisions, tier="listener", action="admit", listener="L1") == 1
    assert conduit.metric(decisions, tier="listener", action="admit", listener="L2") == 1
    assert conduit.metric("conduit_queries_total") == 2


def test_ch20_example_33_34_refuse_and_drop(stub: StubUpstream, start_conduit: Start) -> None:
    conduit = daemon(
        start_conduit,
        stub,
        {
            "rules": [
                {"match": "corp", "action": "refuse"},
                {"match": "corp", "action": "drop"},
                {"match": "bad", "action": "drop"},
            ]
        },
        logging={"query_access": {"acl_denied": "warn"}},
    )
    for tcp in (False, True):
        reply = conduit.query("WwW.example.test.", tcp=tcp, source="127.0.0.8", edns=0)
        assert reply.rcode() == dns.rcode.REFUSED
        assert reply.question[0].name.to_text() == "WwW.example.test."
        assert [int(e.code) for e in reply.extended_errors()] == [15]
        assert silent(conduit, tcp=tcp, source="127.0.0.9")
    decisions = "conduit_acl_decisions_total"
    assert conduit.metric(decisions, tier="listener", action="refuse") == 2
    assert conduit.metric(decisions, tier="preadmission", action="drop") == 2
    assert conduit.metric("conduit_parse_rejected_total") == 0
    assert conduit.metric("conduit_queries_total") == 0
    assert conduit.metric("conduit_responses_total") == 0
    assert not stub.received
    line = conduit.wait_for_line("client ACL denied query")
    for field in (
        "client_ip=127.0.0.8",
        "view=corp",
        "action=refuse",
        "stage=listener",
        "ip_family=v4",
    ):
        assert field in line
    assert conduit.wait_for_line("stage=preadmission")


def test_a_dropped_tcp_client_is_closed_before_any_read(
    stub: StubUpstream, start_conduit: Start
) -> None:
    conduit = daemon(start_conduit, stub, {"rules": [{"match": "bad", "action": "drop"}]})
    with socket.create_connection(
        conduit.listener("tcp"), timeout=3, source_address=("127.0.0.9", 0)
    ) as sock:
        assert sock.recv(1) == b""


def test_ch20_example_35_default_deny(stub: StubUpstream, start_conduit: Start) -> None:
    conduit = daemon(start_conduit, stub, {"default_action": "deny"})
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.sendto(b"\xff\0\1", conduit.listener())
    assert silent(conduit)
    assert conduit.metric("conduit_parse_rejected_total", reason="wire_error") == 1
    assert conduit.metric("conduit_acl_decisions_total", tier="listener", action="drop") == 1


def test_ch30_example_36_tag_then_rule(stub: StubUpstream, start_conduit: Start) -> None:
    with StubUpstream() as vip:
        conduit = daemon(
            start_conduit,
            stub,
            {"rules": [{"match": "corp", "action": "tag", "tag": "vip"}]},
            pools=[
                {"name": "default", "backends": [{"address": stub.address}]},
                {"name": "b", "backends": [{"address": vip.address}]},
            ],
            rules={
                "rules": [
                    {
                        "name": "vip",
                        "hook": "request",
                        "selectors": [{"type": "tag", "value": "vip"}],
                        "actions": [{"type": "set_pool", "value": "b"}],
                    }
                ]
            },
        )
        conduit.query("one.example.test.", source="127.0.0.8")
        conduit.query("two.example.test.")
        assert vip.queries("one.example.test.")
        assert stub.queries("two.example.test.")


def test_acls_and_tables_follow_a_reload(stub: StubUpstream, start_conduit: Start) -> None:
    conduit = daemon(start_conduit, stub, {"rules": [{"match": "bad", "action": "refuse"}]})
    assert conduit.query("www.example.test.").rcode() == dns.rcode.NOERROR
    (conduit.path.parent / "bad.cidr").write_text("127.0.0.0/8\n")
    conduit.reload()
    assert conduit.query("www.example.test.").rcode() == dns.rcode.REFUSED
    (conduit.path.parent / "bad.cidr").write_text("not a prefix\n")
    conduit.process.send_signal(1)
    line = conduit.wait_for_line("SIGHUP config reload failed")
    assert "line 1: invalid CIDR prefix or address 'not'" in line or "too many fields" in line
    assert conduit.query("www.example.test.").rcode() == dns.rcode.REFUSED


@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        (None, [1, 2, 3, 4]),
        (AclDeniedSample("every_nth", nth=2), [2, 4]),
        (AclDeniedSample("per_source", rate=100), [1, 2, 3, 4]),
        (AclDeniedSample("per_source", rate=0), []),
        (AclDeniedSample("per_source", rate=81.44), []),
        (AclDeniedSample("per_source", rate=81.45), [1, 2, 3, 4]),
    ],
)
def test_denial_log_sampling(
    sample: AclDeniedSample | None, expected: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    log = DenialLog(QueryAccess("warn", sample))
    logged = []
    for count in range(1, 5):
        caplog.clear()
        log.denied(count, "203.0.113.9", "l", "v", "drop", "listener")
        if caplog.records:
            logged.append(count)
    assert logged == expected


def test_the_denial_log_is_off_by_default() -> None:
    assert not DenialLog(None).enabled
    assert not DenialLog(QueryAccess("off", None)).enabled
