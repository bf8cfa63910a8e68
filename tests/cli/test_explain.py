"""`conduit-check --explain`: each way a query can take, the output formats, bad arguments."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conduit.cli.check import check_file, main
from conduit.cli.explain import ExplainOptions, build_query
from conduit.cli.explain import explain as explain_query
from conduit.cli.explain_upstream import UsageError
from conduit.wire import Query, parse_query

CONFIG = """\
schema_version: 1
listeners:
  listeners:
    - {address: "127.0.0.1:0", protocol: udp, name: lan}
    - {address: "127.0.0.1:0", protocol: tcp, name: lan-tcp}
pools:
  - name: default
    backends: [{name: b1, address: "127.0.0.1:5301"}, {name: b2, address: "127.0.0.1:5302"}]
  - {name: second, backends: [{name: s1, address: "127.0.0.1:5311"}]}
"""
RULES = """\
rules:
  rules:
    - name: ads
      hook: request
      selectors: [{type: qname_suffix, value: .ads.test.}]
      actions: [{type: set_tag, value: blocked=ads}, {type: drop_now}, {type: set_tag, value: no}]
    - name: guests
      hook: request
      selectors: [{type: tag, value: guest}, {type: qtype, value: A}]
      actions: [{type: set_pool, value: second}]
    - name: again
      hook: response
      selectors: [{type: rcode, value: SERVFAIL}]
      actions: [{type: set_retry_pool, value: second}, {type: retry}]
    - name: nothing
      hook: response
      selectors: [{type: rcode, value: REFUSED}]
      actions: [{type: drop}]
"""
ACLS = """\
data_sources:
  - {name: bad, type: cidr, path: bad.txt}
  - {name: worse, type: cidr, path: worse.txt}
  - {name: guests, type: cidr, path: guests.txt}
acls:
  default_action: deny
  rules:
    - {match: bad, action: refuse}
    - {match: worse, action: drop}
    - {match: guests, action: tag, tag: guest}
"""

Explain = Callable[..., dict[str, Any]]
Show = Callable[..., str]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "conduit.yaml"
    path.write_text(CONFIG + RULES)
    for name, network in (("bad", "192.0.2"), ("worse", "198.51.100"), ("guests", "203.0.113")):
        (tmp_path / f"{name}.txt").write_text(f"{network}.0/24\n")
    return path


@pytest.fixture
def explain(config: Path, capsys: pytest.CaptureFixture[str]) -> Explain:
    def run(*arguments: str) -> dict[str, Any]:
        assert main([str(config), "--explain", "--format", "json", *arguments]) == 0
        captured = capsys.readouterr()
        assert captured.err == ""
        result: dict[str, Any] = json.loads(captured.out)
        return result

    return run


@pytest.fixture
def show(config: Path, capsys: pytest.CaptureFixture[str]) -> Show:
    def run(*arguments: str) -> str:
        assert main([str(config), "--explain", *arguments]) == 0
        return capsys.readouterr().out

    return run


def kinds(result: dict[str, Any]) -> list[str]:
    """Return the steps in short: hook and outcome, attempt and outcome, or the kind's reason."""
    short = []
    for step in result["steps"]:
        if step["kind"] == "rules":
            short.append(f"{step['hook']} {step['outcome']}")
        elif step["kind"] == "attempt":
            short.append(f"{step['pool']}/{step['backend']} {step['outcome']}")
        else:
            short.append(f"{step['kind']} {step['reason']}")
    return short


def test_drop(explain: Explain) -> None:
    result = explain("--qname", "x.Ads.test")
    assert kinds(result) == ["request drop"]
    (step,) = result["steps"]
    assert step["matched"] == {
        "name": "ads",
        "index": 0,
        "selectors": [
            {
                "type": "qname_suffix",
                "wanted": ".ads.test.",
                "actual": "x.Ads.test.",
                "matched": True,
            }
        ],
    }
    tag, drop, late = step["actions"]
    assert tag["effects"] == [{"field": "tag", "key": "blocked", "before": None, "after": "ads"}]
    assert (drop["ran"], drop["ended_rule"]) == (True, True)
    assert (late["ran"], late["effects"]) == (False, [])
    assert result["client"]["result"] == "silence"
    assert result["client"]["drop_reason"] == "request_rules"
    assert result["client"]["rcode"] is None
    assert result["tags"] == {"blocked": "ads"}


def test_drop_on_response(explain: Explain) -> None:
    result = explain("--qname", "a.test", "--rcode", "REFUSED")
    assert kinds(result) == ["request continue", "default/b1 REFUSED", "response drop"]
    assert result["client"]["drop_reason"] == "response_rules"
    assert result["steps"][2]["not_matched"][0]["selectors"] == [
        {"type": "rcode", "wanted": "SERVFAIL", "actual": "REFUSED", "matched": False}
    ]


def test_retry_in_second_pool(explain: Explain) -> None:
    result = explain("--qname", "a.test", "--answer-from", "default/b1=SERVFAIL")
    assert kinds(result) == [
        "request continue",
        "default/b1 SERVFAIL",
        "response retry",
        "second/s1 NOERROR",
        "response continue",
    ]
    first, second = (step for step in result["steps"] if step["kind"] == "attempt")
    assert (first["number"], first["scripted"], first["address"]) == (1, True, "127.0.0.1:5301")
    assert (second["number"], second["scripted"]) == (2, False)
    retry = result["steps"][2]
    assert retry["rcode"] == "SERVFAIL"
    assert [action["effects"] for action in retry["actions"]] == [
        [{"field": "retry_pool", "key": None, "before": None, "after": "second"}],
        [{"field": "retry", "key": None, "before": "no", "after": "yes"}],
    ]
    client = result["client"]
    assert (client["rcode"], client["source"]) == ("NOERROR", "upstream")


def test_timeout_then_answer(explain: Explain) -> None:
    result = explain(
        "--qname", "a.test", "--answer-from", "default/b1=timeout", "--rcode", "NXDOMAIN"
    )
    assert kinds(result) == [
        "request continue",
        "default/b1 timeout",
        "response retry",
        "second/s1 NXDOMAIN",
        "response continue",
    ]
    attempts = [step for step in result["steps"] if step["kind"] == "attempt"]
    assert [step["started_ms"] for step in attempts] == [0, 2000]
    assert [step["answered"] for step in attempts] == [False, True]
    assert result["client"]["rcode"] == "NXDOMAIN"
    # the first reason of the transaction stays
    assert result["convergence_reason"] == "forward_error"


def test_every_backend_fails(explain: Explain) -> None:
    result = explain("--qname", "a.test", "--edns", "4096", "--rcode", "SERVFAIL")
    assert kinds(result) == [
        "request continue",
        "default/b1 SERVFAIL",
        "response retry",
        "second/s1 SERVFAIL",
        "response retry",
        "route_failure no_backend_left",
    ]
    client = result["client"]
    assert (client["rcode"], client["source"]) == ("SERVFAIL", "synthesized")
    assert client["extended_error"] == {"code": 22, "name": "NO_REACHABLE_AUTHORITY", "text": ""}
    assert result["convergence_reason"] == "no_backend_selected"


def test_hard_failure_skips_response_rules(explain: Explain) -> None:
    result = explain("--qname", "a.test", "--do", "--answer-from", "default/b1=send_error")
    assert kinds(result) == ["request continue", "default/b1 send_error", "stop forward_error"]
    assert result["client"]["extended_error"]["name"] == "NETWORK_ERROR"
    assert result["query"]["edns"] == 1232
    assert result["query"]["dnssec_ok"] is True


def test_limits(config: Path, explain: Explain) -> None:
    text = config.read_text()
    config.write_text(text + "orchestrator: {max_attempts: 1}\n")
    result = explain("--qname", "a.test", "--rcode", "SERVFAIL")
    assert kinds(result)[2:] == ["response retry", "stop attempts_exhausted"]
    assert result["convergence_reason"] == "attempts_exhausted"
    config.write_text(text + "orchestrator: {max_txn_duration_ms: 2000}\n")
    result = explain("--qname", "a.test", "--answer-from", "default/b1=timeout")
    assert kinds(result)[1:] == ["default/b1 timeout", "stop duration_exhausted"]


def test_no_answer_rules(config: Path, explain: Explain) -> None:
    rule = (
        "    - {name: last, hook: no_answer, selectors: [], "
        "actions: [{type: set_rcode, value: REFUSED}]}\n"
    )
    config.write_text(CONFIG + RULES + rule)
    result = explain("--qname", "a.test", "--answer-from", "default/b1=tcp_error")
    assert kinds(result)[1:] == [
        "default/b1 tcp_error",
        "stop forward_error",
        "no_answer continue",
    ]
    assert result["steps"][-1]["actions"][0]["effects"] == [
        {"field": "rcode", "key": None, "before": "SERVFAIL", "after": "REFUSED"}
    ]
    assert result["client"]["rcode"] == "REFUSED"
    config.write_text((CONFIG + RULES + rule).replace("set_rcode, value: REFUSED", "drop"))
    result = explain("--qname", "a.test", "--answer-from", "default/b1=timeout", "--rcode",
                     "SERVFAIL")  # fmt: skip
    assert result["client"] == {
        "result": "silence",
        "rcode": None,
        "flags": [],
        "size": None,
        "truncated": False,
        "source": None,
        "extended_error": None,
        "drop_reason": "no_answer_rules",
    }


def test_route_failure_with_endless_retry(config: Path, explain: Explain) -> None:
    config.write_text(CONFIG + RULES + "orchestrator: {route_failure_policy: response_rules}\n")
    result = explain("--qname", "a.test", "--rcode", "SERVFAIL")
    assert "route_failure no_backend_left" in kinds(result)
    assert kinds(result)[-1] == "stop attempts_exhausted"
    assert result["client"]["rcode"] == "SERVFAIL"


def test_no_pool(config: Path, explain: Explain) -> None:
    config.write_text(CONFIG[: CONFIG.index("pools:")] + "pools: []\n")
    result = explain("--qname", "a.test")
    assert kinds(result) == ["route_failure no_pool"]
    assert result["convergence_reason"] == "no_pool"


def test_no_rules_at_all(config: Path, explain: Explain) -> None:
    config.write_text(CONFIG)
    assert kinds(explain("--qname", "a.test")) == ["default/b1 NOERROR"]
    result = explain("--qname", "a.test", "--answer-from", "default/b1=timeout")
    assert kinds(result) == ["default/b1 timeout"]
    assert result["client"]["rcode"] == "SERVFAIL"


def test_zone_transfer(config: Path, explain: Explain) -> None:
    result = explain("--qname", "test", "--qtype", "AXFR", "--tcp")
    assert kinds(result) == ["request continue", "stop zone_transfer"]
    assert result["client"]["rcode"] == "NOTIMP"
    assert kinds(explain("--qname", "test", "--qtype", "AXFR"))[1] == "default/b1 NOERROR"


def test_unscripted_after_scripted(config: Path, explain: Explain) -> None:
    config.write_text(CONFIG + RULES.replace("{type: set_retry_pool, value: second}, ", ""))
    answers = ("--answer-from", "default/b1=SERVFAIL", "--answer-from", "default/b1=NOERROR")
    result = explain("--qname", "a.test", *answers)
    assert kinds(result)[1::2] == ["default/b1 SERVFAIL", "default/b2 NOERROR"]
    assert result["notes"] == ["not used: --answer-from default/b1=NOERROR"]
    by_address = explain("--qname", "a.test", "--answer-from", "default/127.0.0.1:5301=NXDOMAIN")
    assert kinds(by_address)[1] == "default/b1 NXDOMAIN"


def test_id_decides_the_backend_and_cadence(config: Path, explain: Explain) -> None:
    assert kinds(explain("--qname", "a.test", "--id", "1"))[1] == "default/b1 NOERROR"
    assert kinds(explain("--qname", "a.test", "--id", "100"))[1] == "default/b2 NOERROR"
    rule = (
        "rules: {rules: [{name: third, hook: request, actions: [{type: drop}], selectors: "
        "[{type: every_nth_worker, value: '3'}, {type: every_nth_global, value: '3'}]}]}\n"
    )
    config.write_text(CONFIG + rule)
    assert explain("--qname", "a.test", "--id", "6")["client"]["result"] == "silence"
    result = explain("--qname", "a.test", "--id", "7")
    assert [s["actual"] for s in result["steps"][0]["not_matched"][0]["selectors"]] == [
        "query 7 of the worker",
        "query 7",
    ]


def test_sources(config: Path, explain: Explain) -> None:
    text = CONFIG.replace("{name: second,", '{name: second, sources_v4: ["127.0.0.9"],')
    rule = (
        "rules: {rules: [{name: r, hook: request, selectors: [], actions: "
        "[{type: set_source_v4, value: 127.0.0.9}]}]}\n"
        'forward: {sources_v4: ["127.0.0.8"]}\n'
    )
    config.write_text(text + rule)
    attempt = explain("--qname", "a.test")["steps"][1]
    # not one of the addresses that this pool may use
    assert (attempt["source_wanted"], attempt["source"]) == ("127.0.0.9", "127.0.0.8")
    in_second = rule.replace(
        "[{type: set_source", "[{type: set_pool, value: second}, {type: set_source"
    )
    config.write_text(text + in_second)
    attempt = explain("--qname", "a.test")["steps"][1]
    assert (attempt["source_wanted"], attempt["source"]) == ("127.0.0.9", "127.0.0.9")


@pytest.mark.parametrize(
    ("client", "acl", "outcome"),
    [
        ("192.0.2.1", ("pass", "refuse", "bad", None), ("reply", "REFUSED", None)),
        ("198.51.100.1", ("drop", None, "worse", None), ("silence", None, "acl_tier0")),
        ("203.0.113.1", ("pass", "tag", "guests", "guest"), ("reply", "NOERROR", None)),
        ("::ffff:203.0.113.1", ("pass", "tag", "guests", "guest"), ("reply", "NOERROR", None)),
        ("2001:db8::1", ("pass", "drop", "default", None), ("silence", None, "acl_tier1")),
    ],
)
@pytest.mark.parametrize("protocol", ["udp", "tcp"])
def test_acl(
    protocol: str,
    client: str,
    acl: tuple[str | None, ...],
    outcome: tuple[str | None, ...],
    config: Path,
    explain: Explain,
) -> None:
    config.write_text(CONFIG + RULES + ACLS)
    extra = ("--tcp",) if protocol == "tcp" else ()
    result = explain("--qname", "a.test", "--do", "--client", client, *extra)
    facts = result["acl"]
    assert (facts["tier0"], facts["tier1"], facts["view"], facts["tag"]) == acl
    got = result["client"]
    assert (got["result"], got["rcode"], got["drop_reason"]) == outcome
    if facts["tag"] is not None:
        assert result["tags"] == {"guest": True}
        assert kinds(result)[:2] == ["request continue", "second/s1 NOERROR"]
        assert result["steps"][0]["matched"]["name"] == "guests"
    else:
        assert result["steps"] == []
    if outcome[1] == "REFUSED":
        assert (got["source"], got["extended_error"]["name"]) == ("acl", "BLOCKED")


def test_json_shape(explain: Explain) -> None:
    result = explain("--qname", "a.test", "--edns", "600")
    assert list(result) == [
        "explain_version",
        "file",
        "query",
        "acl",
        "client",
        "steps",
        "tags",
        "convergence_reason",
        "notes",
    ]
    assert result["explain_version"] == 1
    assert result["query"] == {
        "qname": "a.test.",
        "qtype": "A",
        "qclass": "IN",
        "edns": 600,
        "dnssec_ok": False,
        "client": "127.0.0.1",
        "listener": "lan",
        "protocol": "udp",
        "id": 1,
    }
    assert result["acl"] == {
        "configured": False,
        "tier0": None,
        "tier1": None,
        "view": None,
        "tag": None,
    }
    rules, attempt, _ = result["steps"]
    assert list(rules) == [
        "hook",
        "rcode",
        "rules",
        "not_matched",
        "matched",
        "actions",
        "outcome",
        "kind",
    ]
    assert attempt == {
        "number": 1,
        "pool": "default",
        "backend": "b1",
        "address": "127.0.0.1:5301",
        "transport": "udp",
        "source": None,
        "source_wanted": None,
        "outcome": "NOERROR",
        "answered": True,
        "scripted": False,
        "started_ms": 0,
        "kind": "attempt",
    }
    assert result["client"]["flags"] == ["qr", "rd", "ra"]


def test_text(show: Show) -> None:
    out = show("--qname", "a.test", "--answer-from", "default/b1=SERVFAIL", "--qtype", "AAAA")
    assert (
        out
        == """\
Query: a.test. IN AAAA over udp, no EDNS, id 1
From 127.0.0.1 to listener lan

Client ACL: none for this listener, everyone is admitted

1. Request rules (2 rules)
  'ads' does not match: qname_suffix wants .ads.test., is a.test.
  'guests' does not match: tag wants 'guest', the query has no tags; qtype wants
      A, is AAAA
  no rule matches: continue

2. Attempt 1 (at 0 ms): pool 'default', backend 'b1'
  to 127.0.0.1:5301, udp
  answers SERVFAIL (as given)

3. Response rules (2 rules, rcode SERVFAIL)
  'again' matches (rcode SERVFAIL)
    set_retry_pool second: retry_pool (none) -> second
    retry: retry no -> yes
  outcome: retry

4. Attempt 2 (at 0 ms): pool 'second', backend 's1'
  to 127.0.0.1:5311, udp
  answers NOERROR (assumed)

5. Response rules (2 rules, rcode NOERROR)
  'again' does not match: rcode wants SERVFAIL, is NOERROR
  'nothing' does not match: rcode wants REFUSED, is NOERROR
  no rule matches: continue

The client gets NOERROR (upstream, 24 octets)
  flags: qr rd ra
"""
    )


def test_text_of_failures_fits_a_terminal(config: Path, show: Show) -> None:
    config.write_text(CONFIG + RULES + ACLS)
    name = "a-long-label." * 12 + "ads.test"
    outputs = [
        show("--qname", name, "--client", client, "--rcode", rcode, "--do")
        for client in ("192.0.2.1", "198.51.100.1", "203.0.113.1", "::1")
        for rcode in ("NOERROR", "SERVFAIL")
    ]
    assert all(len(line) <= 80 for out in outputs for line in out.splitlines())
    assert "Extended DNS Error 15 BLOCKED" in outputs[0]
    assert "tier 0 (before parsing): drop, by table 'worse'" in outputs[2]
    assert "set_tag no: not run" in outputs[4]
    assert "tier 1: drop, by the default action" in outputs[6]


def test_many_rules_show_near_misses_only(config: Path, show: Show, explain: Explain) -> None:
    rules = [
        f"{{name: r{n}, hook: request, actions: [], selectors: [{{type: qtype, value: "
        f"{'A' if n == 7 else 'MX'}}}, {{type: tag, value: t{n}}}]}}"
        for n in range(50)
    ]
    config.write_text(CONFIG + f"rules: {{rules: [{', '.join(rules)}]}}\n")
    out = show("--qname", "a.test")
    assert "  'r7' does not match: tag wants 't7', the query has no tags\n" in out
    assert "  49 other rules do not match (--format json has all)\n" in out
    assert "'r8'" not in out
    assert len(explain("--qname", "a.test")["steps"][0]["not_matched"]) == 50


def test_script_action(config: Path, show: Show, tmp_path: Path) -> None:
    (tmp_path / "s.rhai").write_text("let x = 1;\n")
    config.write_text(
        CONFIG + "rules: {rules: [{name: r, hook: request, selectors: [], "
        "actions: [{type: rhai, value: s.rhai}]}]}\n"
    )
    assert "    script s.rhai: changes nothing\n" in show("--qname", "a.test")


def test_logging_is_as_before(config: Path, explain: Explain) -> None:
    logging.disable(logging.INFO)
    try:
        explain("--qname", "a.test", "--rcode", "SERVFAIL")
        assert logging.root.manager.disable == logging.INFO
    finally:
        logging.disable(logging.NOTSET)


@pytest.mark.parametrize(
    ("arguments", "fragment"),
    [
        (["--explain"], "needs --qname"),
        (["--qname", "a.test"], "need --explain"),
        (["--tcp"], "need --explain"),
        (["--explain", "--qname", ""], "name"),
        (["--explain", "--qname", "a..test"], "a..test"),
        (["--explain", "--qname", "x" * 64 + ".test"], "label"),
        (["--explain", "--qname", "a", "--qtype", "NOPE"], "unknown RecordType value 'NOPE'"),
        (["--explain", "--qname", "a", "--qclass", "NOPE"], "unknown QueryClass value 'NOPE'"),
        (["--explain", "--qname", "a", "--rcode", "NOPE"], "unknown Rcode value 'NOPE'"),
        (["--explain", "--qname", "a", "--rcode", "BADVERS"], "above 15"),
        (["--explain", "--qname", "a", "--client", "here"], "not an IP address"),
        (["--explain", "--qname", "a", "--listener", "x"], "known are: lan (udp), lan-tcp (tcp)"),
        (["--explain", "--qname", "a", "--listener", "lan", "--tcp"], "no tcp listener 'lan'"),
        (["--explain", "--qname", "a", "--edns", "65536"], "--edns"),
        (["--explain", "--qname", "a", "--edns", "x"], "--edns"),
        (["--explain", "--qname", "a", "--id", "0"], "--id"),
        (
            ["--explain", "--qname", "a", "--answer-from", "default/b9=NOERROR"],
            "known are: default/b1, default/b2, second/s1",
        ),
        (["--explain", "--qname", "a", "--answer-from", "default/b1"], "POOL/BACKEND=OUTCOME"),
        (["--explain", "--qname", "a", "--answer-from", "default/b1=lost"], "failures are timeout"),
    ],
)
def test_bad_arguments(
    arguments: list[str], fragment: str, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main([str(config), *arguments])
    assert caught.value.code == 2
    captured = capsys.readouterr()
    assert fragment in captured.err
    assert captured.out == ""


def test_two_files(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main([str(config), str(config), "--explain", "--qname", "a"])
    assert caught.value.code == 2
    assert "exactly one FILE" in capsys.readouterr().err


def test_files_that_cannot_be_explained(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path / "absent"), "--explain", "--qname", "a"]) == 2
    assert "No such file" in capsys.readouterr().out
    config.write_text(CONFIG + "orchestrator: {max_attempts: 0}\n")
    assert main([str(config), "--explain", "--qname", "a"]) == 1
    assert "max_attempts must be >= 1" in capsys.readouterr().out
    config.write_text(CONFIG + ACLS.replace("bad.txt", "absent.txt"))
    assert main([str(config), "--explain", "--qname", "a", "--format", "json"]) == 1
    assert json.loads(capsys.readouterr().out)["findings"][0]["stage"] == "compile"


def test_query_on_the_wire() -> None:
    query = parse_query(build_query(ExplainOptions("WWW.Example", "TYPE65280", "CH", edns=4096)))
    assert isinstance(query, Query)
    assert (query.qname_text, query.qtype, query.qclass) == ("WWW.Example.", 65280, 3)
    assert (query.udp_payload_size, query.dnssec_ok) == (4096, False)
    assert query.flags == 0x0100
    query = parse_query(build_query(ExplainOptions(".")))
    assert isinstance(query, Query)
    assert (query.qname_text, query.has_opt) == (".", False)
    with pytest.raises(UsageError):
        build_query(ExplainOptions("a", edns=-1))


def test_a_script_is_explained(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("bad.test.,block\n")
    (tmp_path / "p.rhai").write_text(
        'if lookup("t", txn.question().qname) == "block" {\n'
        '    metrics.inc("blocked", 2);\n    log.warn("no");\n    txn.set_pool("b");\n}\n'
        "else { txn.oops(); }\n"
    )
    config = tmp_path / "c.yaml"
    config.write_text(
        "schema_version: 1\n"
        "listeners: {listeners: [{address: '127.0.0.1:15353', protocol: udp}]}\n"
        "pools: [{name: b, backends: [{address: '192.0.2.1:53'}]}]\n"
        "metrics: {enabled: true}\n"
        "data_sources: [{name: t, type: csv, path: t.csv}]\n"
        "rules: {rules: [{name: r, hook: request, selectors: [], "
        "actions: [{type: rhai, value: p.rhai}]}]}\n"
    )
    result = check_file(str(config))
    assert result.snapshot is not None
    blocked = explain_query(str(config), result.snapshot, ExplainOptions("bad.test"))
    (action,) = blocked.steps[0].actions  # type: ignore[union-attr]
    assert action.events == ("logs at warn: no", "counts 2 in metric blocked")
    assert [(e.field, e.after) for e in action.effects] == [("pool", "b")]
    other = explain_query(str(config), result.snapshot, ExplainOptions("good.test"))
    (action,) = other.steps[0].actions  # type: ignore[union-attr]
    assert action.effects == ()
    (event,) = action.events
    assert event.startswith("fails (eval), its effects are dropped: Function not found: oops")
    assert other.client.rcode == "NOERROR"


def test_a_broken_script_is_a_finding_in_the_script(tmp_path: Path) -> None:
    (tmp_path / "p.rhai").write_text("let a = 1;\nlet b = (;\n")
    config = tmp_path / "c.yaml"
    config.write_text(
        "schema_version: 1\nlisteners: {listeners: []}\n"
        "pools: [{name: b, backends: [{address: '192.0.2.1:53'}]}]\n"
        "rules: {rules: [{name: r, hook: request, selectors: [], "
        "actions: [{type: rhai, value: p.rhai}]}]}\n"
    )
    (finding,) = [d for d in check_file(str(config)).diagnostics if d.severity == "error"]
    assert finding.place == f"{tmp_path}/p.rhai:2:10"
    assert finding.message.endswith("let b = (;\n         ^")
