"""Policy scripts in the running service: block lists, fail-over, source pinning, errors, reload."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import dns.exception
import dns.rcode
import pytest

from tests.support.daemon import Conduit, configuration, with_metrics
from tests.support.ports import free_port
from tests.support.stub_upstream import StubUpstream, rcode

Start = Callable[..., Conduit]
NAME = "www.example.test."


def scripted(backend: str, hook: str, **blocks: Any) -> dict[str, Any]:
    """A service whose only rule runs `policy.rhai` on `hook`."""
    rule = {
        "name": "policy",
        "hook": hook,
        "selectors": [],
        "actions": [{"type": "rhai", "value": "policy.rhai"}],
    }
    return configuration(
        backend, metrics=with_metrics(free_port()), rules={"rules": [rule]}, **blocks
    )


BLOCK = """
let name = txn.question().qname.to_lower();
if lookup("blocked", name) == "block" {
    metrics.inc("blocked_queries", 1);
    log.info("blocked " + name);
    txn.drop_query_now();
}
txn.set_tag("seen", true);
"""


def test_block_list_from_a_table(stub: StubUpstream, start_conduit: Start) -> None:
    conduit = start_conduit(
        scripted(
            stub.address,
            "request",
            data_sources=[{"name": "blocked", "type": "csv", "path": "blocked.csv"}],
        ),
        files={"policy.rhai": BLOCK, "blocked.csv": "key,value\nbad.example.test.,block\n"},
    )
    assert conduit.query("good.example.test.").answer
    with pytest.raises(dns.exception.Timeout):
        conduit.query("BAD.example.test.", timeout=0.4)
    assert "\nconduit_user_blocked_queries 1\n" in conduit.page()
    assert conduit.metric("conduit_queries_dropped_total", reason="request_rules") == 1
    conduit.wait_for_line("rhai script log")
    assert not stub.queries("bad.example.test.")


FAIL_OVER = """
if txn.response_rcode() == Rcode::SERVFAIL && txn.get_attempt_count() == 1 {
    txn.set_retry_pool("second");
    txn.request_retry();
}
"""


def test_fail_over_by_script(stub: StubUpstream, start_conduit: Start) -> None:
    stub.default = rcode("SERVFAIL")
    with StubUpstream() as second:
        config = scripted(stub.address, "response")
        config["pools"].append({"name": "second", "backends": [{"address": second.address}]})
        conduit = start_conduit(config, files={"policy.rhai": FAIL_OVER})
        reply = conduit.query(NAME)
        assert reply.rcode() == dns.rcode.NOERROR
        assert len(stub.received) == len(second.received) == 1
        assert conduit.metric("conduit_retries_total", pool="second") == 1


def test_source_pinning_on_the_request_hook(stub: StubUpstream, start_conduit: Start) -> None:
    script = 'if txn.question().qname.ends_with("pin.test.") { txn.set_source_v4("127.0.0.9"); }'
    config = scripted(stub.address, "request", forward={"sources_v4": ["127.0.0.8", "127.0.0.9"]})
    conduit = start_conduit(config, files={"policy.rhai": script})
    for number in range(6):
        conduit.query(f"n{number}.pin.test.")
    assert {received.peer[0] for received in stub.received} == {"127.0.0.9"}
    assert conduit.metric("conduit_script_errors_total") == 0


def test_an_error_is_counted_and_the_query_answered(
    stub: StubUpstream, start_conduit: Start
) -> None:
    conduit = start_conduit(
        scripted(stub.address, "request"), files={"policy.rhai": "txn.no_such_method();"}
    )
    assert conduit.query(NAME).answer
    assert conduit.metric("conduit_script_errors_total", reason="eval") == 1
    line = conduit.wait_for_line("rhai script error")
    assert "rule=policy" in line


def test_a_broken_script_keeps_the_last_good(stub: StubUpstream, start_conduit: Start) -> None:
    conduit = start_conduit(
        scripted(stub.address, "request"), files={"policy.rhai": 'txn.set_tag("a", true);'}
    )
    (conduit.path.parent / "policy.rhai").write_text("let x = ;")
    conduit.send_signal(signal.SIGHUP)
    line = conduit.wait_for_line("SIGHUP config reload failed")
    assert "line 1, position 9" in line
    assert conduit.query(NAME).answer
    assert conduit.metric("conduit_config_generation") == 1


def test_a_broken_script_ends_the_start(stub: StubUpstream, start_conduit: Start) -> None:
    conduit = start_conduit(
        scripted(stub.address, "request"), files={"policy.rhai": "let x = ;"}, wait=False
    )
    assert conduit.wait() == 1
    text = "\n".join(conduit.lines)
    assert "let x = ;\n        ^" in text
    assert "Error: config compile failed" in text
