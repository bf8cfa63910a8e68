"""Acceptance examples of chapter 30 that concern loading, and its validation texts."""

from __future__ import annotations

import pytest

from tests.config.support import errors, extend, extend_errors, has


def rule(selectors: str = "", actions: str = "", hook: str = "request", name: str = "r") -> str:
    return f"{{name: {name}, hook: {hook}, selectors: [{selectors}], actions: [{actions}]}}"


def block(*rules: str) -> str:
    return f"rules: {{rules: [{', '.join(rules)}]}}\n"


def selector_errors(selector: str) -> list[str]:
    return extend_errors(block(rule(f"{{{selector}}}")))


def action_errors(action: str, hook: str = "request", more: str = "") -> list[str]:
    return extend_errors(block(rule(actions=f"{{{action}}}", hook=hook)) + more)


def test_ch30_example_03_exact_name_without_dot_loads() -> None:
    config = extend(block(rule("{type: qname_exact, value: a.test}")))
    assert config.rules.rules[0].selectors[0].value == "a.test"


def test_ch30_example_16_response_only_action() -> None:
    extend(block(rule("{type: rcode, value: NOERROR}")))
    assert has(action_errors("type: retry"), "rule 'r' action 'retry' is only valid on response")


def test_ch30_example_17_sources() -> None:
    action = "type: set_source_v4, value: 10.0.0.5"
    assert has(action_errors(action, "response"), "only valid on request hook")
    assert has(action_errors(action), "requires forward.sources_v4 or pool sources_v4")
    forward = "forward: {sources_v4: [10.0.0.6]}\n"
    assert has(
        action_errors(action, more=forward),
        "rule 'r' set_source_v4 '10.0.0.5' is not in configured sources_v4",
    )
    assert has(
        action_errors("type: set_source_v4, value: 010.0.0.5", more=forward),
        "rule 'r' set_source_v4 '010.0.0.5' is not a valid IPv4 address",
    )
    assert has(
        action_errors("type: set_retry_source_v6"), "'set_retry_source_v6' requires an address"
    )


def test_ch30_example_17_sources_compare_as_addresses() -> None:
    text = block(rule(actions="{type: set_source_v6, value: '2001:DB8:0::1'}"))
    config = extend(text + "forward: {sources_v6: ['2001:db8::1']}\n")
    assert config.rules.rules[0].actions[0].value == "2001:DB8:0::1"


def test_ch30_example_18_pools() -> None:
    assert has(
        action_errors("type: set_pool, value: nope"),
        "rule 'r' action 'set_pool' references unknown pool 'nope'",
    )
    assert has(action_errors("type: set_pool"), "rule 'r' set_pool requires a pool name in value")
    assert has(
        action_errors("type: set_retry_pool"), "rule 'r' set_retry_pool requires a pool name"
    )


def test_ch30_example_19_match_mode_and_names() -> None:
    assert has(
        extend_errors("rules: {match_mode: all_match}\n"),
        "unsupported rules.match_mode 'all_match', only first_match",
    )
    lines = extend_errors(block(rule(), rule(hook="response")))
    assert has(lines, "rules.rules[1].name", "duplicate rule name 'r'")
    assert has(extend_errors(block(rule(name="''"))), "rule name must not be empty")


def test_ch30_example_20_enum_names() -> None:
    names = ["qtype, value: type28", "edns_option, value: ede", "opcode, value: dso",
             "rcode, value: badsig", "qclass, value: ' ch '", "qtype, value: ANY"]  # fmt: skip
    config = extend(block(rule(", ".join(f"{{type: {name}}}" for name in names))))
    assert len(config.rules.rules[0].selectors) == len(names)
    for kind, expected in [
        ("qtype", "RecordType"),
        ("qclass", "QueryClass"),
        ("opcode", "DnsOpcode"),
        ("edns_option", "EdnsOptionCode"),
        ("rcode", "Rcode"),
    ]:
        assert has(
            selector_errors(f"type: {kind}, value: 28"),
            "rule 'r'",
            f"unknown {expected} value '28'",
        )


@pytest.mark.parametrize(
    ("selector", "fragment"),
    [
        (
            "type: sample_percent, value: 10, key: x, key_from: qname",
            "sample key and key_from are mutually exclusive",
        ),
        (
            "type: sample_percent, value: 10, key_from: sink_name",
            "sample_percent key_from 'sink_name' is only valid on event sink filters",
        ),
        (
            "type: sample_percent, value: 10, key_from: client",
            "sample_percent key_from 'client' must be qname, rule_name, or sink_name",
        ),
        (
            "type: qtype, value: A, key: x",
            "selector type 'qtype' does not support key or key_from",
        ),
    ],
)
def test_ch30_example_26_sampling_keys(selector: str, fragment: str) -> None:
    assert has(selector_errors(selector), "rule 'r'", fragment)


@pytest.mark.parametrize("value", ["nan", "101", "inf", "1_0", "''", "-1", "1e9", "0x10", "٣"])
def test_ch30_example_26_sampling_values_rejected(value: str) -> None:
    assert has(
        selector_errors(f"type: sample_percent, value: {value}"),
        "rule 'r' selector sample_percent must be a float in [0, 100]",
    )


@pytest.mark.parametrize("value", ["12.5", ".5", "5.", "+5", "1e1", "' 7 '", "0", "100"])
def test_ch30_example_26_sampling_values_accepted(value: str) -> None:
    config = extend(block(rule(f"{{type: sample_percent, value: {value}, key_from: rule_name}}")))
    assert config.rules.rules[0].selectors[0].value == value.strip("'")


@pytest.mark.parametrize("value", ["0", "-1", "1.5", "''", "' 4'", "1_0", "99999999999999999999"])
def test_ch30_example_27_cadence(value: str) -> None:
    extend(block(rule("{type: every_nth_worker, value: 4}, {type: every_nth_global, value: 1}")))
    assert has(
        selector_errors(f"type: every_nth_global, value: {value}"),
        "rule 'r' selector 'every_nth_global' requires integer value >= 1",
    )


def test_ch30_example_28_client_cidr() -> None:
    text = block(rule("{type: client_cidr, value: nets}"))
    tables = "data_sources: [{name: nets, type: %s, path: nets.txt}]\n"
    extend(text + tables % "cidr")
    assert has(
        extend_errors(text + tables % "csv"),
        "rule 'r' selector client_cidr 'nets' is not a type:cidr data_sources name",
    )


@pytest.mark.parametrize(
    ("selector", "fragment"),
    [
        ("type: qname_regex, value: a", "rule 'r': unknown selector type 'qname_regex'"),
        ("type: answer_source, value: x", "answer_source 'x' must be cache or forward"),
        ("type: cache_instance, value: ' '", "cache_instance selector value must be non-empty"),
    ],
)
def test_selectors_rejected(selector: str, fragment: str) -> None:
    assert has(selector_errors(selector), fragment)


def test_every_selector_type_is_accepted_on_every_hook() -> None:
    selectors = (
        "{type: qname_exact, value: ''}, {type: qname_suffix, value: ''}, {type: tag, value: ''}, "
        "{type: answer_source, value: ' CACHE '}, {type: cache_instance, value: any}"
    )
    rules = [rule(selectors, hook=h, name=h) for h in ("request", "response", "no_answer")]
    assert len(extend(block(*rules)).rules.rules) == 3


@pytest.mark.parametrize(
    ("action", "hook", "fragment"),
    [
        ("type: accept", "request", "rule 'r' has unknown action type 'accept'"),
        ("type: retry_pool", "response", "rule 'r' has unknown action type 'retry_pool'"),
        ("type: set_rcode, value: REFUSED", "request", "only valid on response or no_answer hook"),
        ("type: set_rcode, value: 5", "response", "set_rcode value '5' is not a known Rcode name"),
        ("type: rhai", "request", "rule 'r' rhai action requires script path in value"),
        ("type: clear_tag", "request", "rule 'r' clear_tag requires a non-empty tag key in value"),
        ("type: retry", "no_answer", "hook 'no_answer' does not permit action 'retry'"),
        ("type: clear_pool", "no_answer", "hook 'no_answer' does not permit action 'clear_pool'"),
        ("type: drop", "no_answr", "rule 'r' has unrecognized hook 'no_answr'"),
    ],
)
def test_actions_rejected(action: str, hook: str, fragment: str) -> None:
    assert has(action_errors(action, hook), fragment)


def test_all_errors_of_the_rules_come_together_with_their_places() -> None:
    lines = extend_errors(
        "rules:\n  rules:\n"
        "    - name: a\n      hook: nowhere\n      selectors: []\n      actions: []\n"
        "    - name: b\n      hook: request\n      selectors:\n"
        "        - {type: qtype, value: 28}\n      actions:\n        - {type: jump}\n"
    )
    assert [line.split(": rule '")[0] for line in lines] == [
        "test.yaml:7:13: rules.rules[0].hook",
        "test.yaml:13:32: rules.rules[1].selectors[0].value",
        "test.yaml:15:18: rules.rules[1].actions[0].type",
    ]


@pytest.mark.parametrize(
    ("text", "fragment"),
    [
        ("{name: '', type: csv, path: p}", "data_sources entry name must not be empty"),
        ("{name: t, type: mmdb, path: p}", "has unsupported type 'mmdb', only csv and cidr"),
        ("{name: t, type: csv, path: ''}", "data_sources 't' path must not be empty"),
        (
            "{name: t, type: csv, path: p}, {name: t, type: cidr, path: p}",
            "duplicate data_sources name 't'",
        ),
    ],
)
def test_data_sources_rejected(text: str, fragment: str) -> None:
    assert has(extend_errors(f"data_sources: [{text}]\n"), fragment)


def test_explicit_table_limit() -> None:
    tables = (
        "data_sources: [{name: a, type: csv, path: p}, {name: b, type: csv, path: p}]\n"
        "data_source_limits: {max_tables: %s}\n"
    )
    assert has(
        extend_errors(tables % 1),
        "data_sources has 2 entries, exceeding data_source_limits.max_tables 1",
    )
    for limit in (0, 2):
        assert len(extend(tables % limit).data_sources) == 2


def test_acls_of_a_listener_name_their_place() -> None:
    text = (
        "schema_version: 1\npools: []\nlisteners:\n  listeners:\n"
        "    - {address: '127.0.0.1:1', protocol: udp, acls: {default_action: no}}\n"
        "    - {address: '127.0.0.1:1', protocol: tcp, name: b, acls: {rules: [{match: x, "
        "action: drop}]}}\n"
    )
    lines = errors(text)
    assert has(lines, "listeners.listeners[0].acls.default_action must be allow or deny, got 'no'")
    assert has(lines, "listeners.listeners[1] (name 'b') acls.rules[0].match 'x'")
