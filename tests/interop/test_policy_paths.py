"""Policy end to end with real servers: the POL cases of chapter 70, fail-over, retry, tags."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dns.exception
import dns.rcode
import pytest

from tests.support.daemon import Conduit, configuration, with_metrics
from tests.support.ports import free_port
from tests.support.servers import Server, start_dnsmasq
from tests.support.stub_upstream import StubUpstream, rcode

Start = Callable[..., Conduit]
CATCH_ALL = {
    "name": "default-pool",
    "hook": "request",
    "selectors": [],
    "actions": [{"type": "set_pool", "value": "default"}],
}


def rule(name: str, hook: str, selectors: str, actions: str) -> dict[str, Any]:
    """A rule from `type value, ...` texts."""

    def items(text: str) -> list[dict[str, str]]:
        pairs = (piece.strip().partition(" ") for piece in text.split(",") if piece.strip())
        return [{"type": kind, "value": value} for kind, _, value in pairs]

    return {
        "name": name,
        "hook": hook,
        "selectors": items(selectors),
        "actions": items(actions),
    }


def silent(conduit: Conduit, qname: str, **options: Any) -> bool:
    try:
        conduit.query(qname, timeout=0.6, **options)
    except (dns.exception.Timeout, EOFError, ConnectionError):
        return True
    return False


@pytest.mark.parametrize("action", ["drop", "drop_now, clear_drop"])
def test_pol_1_2_drops_are_silent_and_never_reach_the_peer(
    tmp_path: Path, start_conduit: Start, action: str
) -> None:
    peer = start_dnsmasq(tmp_path / "peer")
    try:
        conduit = start_conduit(
            configuration(
                peer.address,
                metrics=with_metrics(free_port()),
                rules={
                    "match_mode": "first_match",
                    "rules": [
                        rule("gone", "request", "qname_suffix .soft-drop.test.", action),
                        CATCH_ALL,
                    ],
                },
            )
        )
        assert silent(conduit, "probe.soft-drop.test.")
        assert silent(conduit, "PROBE.Soft-Drop.test.", tcp=True)
        assert not peer.query_log("soft-drop")
        dropped = "conduit_queries_dropped_total"
        assert conduit.metric(dropped, reason="request_rules") == 2
        # the suffix does not match here: forwarded
        conduit.query("probe.soft-drop.test.evil.")
        assert peer.query_log("probe.soft-drop.test.evil")
        assert conduit.metric(dropped) == 2
    finally:
        peer.stop()


def test_pol_3_clear_drop_is_forwarded_to_the_default_pool(
    dnsmasq: Server, start_conduit: Start
) -> None:
    conduit = start_conduit(
        configuration(
            dnsmasq.address,
            rules={
                "rules": [
                    rule("kept", "request", "qname_suffix .smoke.test.", "drop, clear_drop"),
                    CATCH_ALL,
                ]
            },
        )
    )
    assert conduit.query("www.smoke.test.").answer


def test_fwd_4_rules_by_name(dnsmasq: Server, start_conduit: Start) -> None:
    conduit = start_conduit(
        configuration(
            dnsmasq.address,
            rules={
                "rules": [
                    rule("lab", "request", "qname_suffix .smoke.test.", "set_pool default"),
                    CATCH_ALL,
                ]
            },
        )
    )
    assert conduit.query("www.smoke.test.").answer


def two_pools(first: str, second: str, **blocks: Any) -> dict[str, Any]:
    config = configuration(metrics=with_metrics(free_port()), **blocks)
    config["pools"] = [
        {"name": "default", "backends": [{"name": "first", "address": first}]},
        {"name": "standby", "backends": [{"name": "second", "address": second}]},
    ]
    return config


def test_fail_over_to_a_second_pool_on_servfail(
    stub: StubUpstream, nsd: Server, start_conduit: Start
) -> None:
    stub.default = rcode("SERVFAIL")
    config = two_pools(
        stub.address,
        nsd.address,
        rules={
            "rules": [
                rule("standby", "request", "", "set_retry_pool standby"),
                rule("fail-over", "response", "rcode SERVFAIL", "retry"),
            ]
        },
    )
    conduit = start_conduit(config)
    for tcp in (False, True):
        assert conduit.query("www.example.test.", tcp=tcp).answer
    assert conduit.metric("conduit_retries_total", pool="standby") == 2
    assert conduit.metric("conduit_queries_by_pool_total", pool="default") == 2
    assert conduit.metric("conduit_queries_by_pool_total", pool="standby") == 2


def test_retry_inside_a_pool_after_a_timeout(nsd: Server, start_conduit: Start) -> None:
    config = configuration(
        f"127.0.0.1:{free_port()}",
        nsd.address,
        forward={"timeout_ms": 200},
        rules={"rules": [rule("again", "response", "rcode SERVFAIL", "retry")]},
    )
    conduit = start_conduit(config)
    for _ in range(4):
        assert conduit.query("www.example.test.").rcode() == dns.rcode.NOERROR


def test_ch20_example_31_retry_source_address(stub: StubUpstream, start_conduit: Start) -> None:
    stub.default = rcode("SERVFAIL")
    config = configuration(
        forward={"sources_v4": ["127.0.0.1", "127.0.0.5"]},
        rules={
            "rules": [
                rule(
                    "sources",
                    "request",
                    "",
                    "set_source_v4 127.0.0.1, set_retry_source_v4 127.0.0.5",
                ),
                rule("again", "response", "rcode SERVFAIL", "retry"),
            ]
        },
    )
    with (
        StubUpstream(default=rcode("SERVFAIL")) as second,
        StubUpstream(default=rcode("SERVFAIL")) as third,
    ):
        config["pools"] = [
            {
                "name": "default",
                "backends": [{"address": s.address} for s in (stub, second, third)],
            }
        ]
        conduit = start_conduit(config)
        assert conduit.query("www.example.test.").rcode() == dns.rcode.SERVFAIL
        received = sorted(
            (r for s in (stub, second, third) for r in s.received), key=lambda r: r.at
        )
        assert [r.peer[0] for r in received] == ["127.0.0.1", "127.0.0.5", "127.0.0.1"]


def test_client_cidr_chooses_a_pool(stub: StubUpstream, nsd: Server, start_conduit: Start) -> None:
    config = two_pools(
        stub.address,
        nsd.address,
        data_sources=[{"name": "lab", "type": "cidr", "path": "lab.cidr"}],
        rules={"rules": [rule("lab", "request", "client_cidr lab", "set_pool standby")]},
    )
    conduit = start_conduit(config, files={"lab.cidr": "127.0.7.0/24\n"})
    conduit.query("www.example.test.", source="127.0.7.3")
    conduit.query("www.example.test.", source="127.0.8.3")
    assert conduit.metric("conduit_queries_by_pool_total", pool="standby") == 1
    assert conduit.metric("conduit_queries_by_pool_total", pool="default") == 1


def test_ch20_example_39_a_reload_does_not_change_rules_under_a_query(
    stub: StubUpstream, start_conduit: Start
) -> None:
    import threading
    import time

    from tests.support.stub_upstream import answer

    stub.on("slow.example.test.", answer(delay=0.6))
    conduit = start_conduit(configuration(stub.address))
    result: list[Any] = []
    thread = threading.Thread(target=lambda: result.append(conduit.query("slow.example.test.")))
    thread.start()
    while not stub.received:
        time.sleep(0.01)
    conduit.write(
        configuration(stub.address, rules={"rules": [rule("all", "response", "", "drop")]})
    )
    conduit.reload()
    thread.join()
    assert result[0].answer
    assert silent(conduit, "next.example.test.")


def test_a_large_table_loads_while_queries_are_answered(
    stub: StubUpstream, start_conduit: Start
) -> None:
    import signal

    config = configuration(stub.address)
    rows = "".join(f"name{n}.example.test.,block\n" for n in range(300_000))
    conduit = start_conduit(config, files={"big.csv": rows})
    config["data_sources"] = [{"name": "big", "type": "csv", "path": "big.csv"}]
    conduit.write(config)
    conduit.send_signal(signal.SIGHUP)
    answered = 0
    while "config applied" not in conduit.output:
        assert conduit.query("www.example.test.").answer
        answered += 1
    # a load that held up the query path would let one or two through
    assert answered > 20
