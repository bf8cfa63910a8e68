"""The acceptance examples 1 to 25 of chapter 10, as far as loading and validating goes."""

from __future__ import annotations

from pathlib import Path

import pytest

from conduit.config import Backend, Listener, load_file, resolve_path
from tests.config.support import (
    MINIMAL,
    NO_POOLS,
    errors,
    extend,
    extend_errors,
    extend_warnings,
    failure,
    has,
    load,
)


def test_ch10_example_01_defaults() -> None:
    config = load(MINIMAL)
    assert config.forward.timeout_ms == 2000
    assert config.forward.outstanding_per_backend == 100
    assert config.forward.transport == "udp_only"
    assert config.orchestrator.max_attempts == 3
    assert config.orchestrator.max_txn_duration_ms == 5000
    assert config.orchestrator.txn_table_capacity == 1024
    assert config.events.queue_depth == 4096
    assert config.rhai.max_operations == 10000
    assert config.rhai.max_call_depth == 32
    assert (config.logging.level, config.logging.output) == ("info", "stderr")
    assert config.control is None
    assert config.rules.rules == ()
    for unset in ("control", "metrics", "tracing", "dataplane", "shutdown", "lookup", "acls"):
        assert getattr(config, unset) is None
    assert config.dataplane_or_default().runtime == "sync"
    assert config.shutdown_or_default().drain_timeout_ms == 5000
    assert config.data_source_limits_or_default().max_tables == 64


def test_ch10_example_02_schema_version() -> None:
    without = MINIMAL.replace("schema_version: 1\n", "")
    assert has(errors(without, "parse"), "schema_version", "missing required key")
    wrong = MINIMAL.replace("schema_version: 1", "schema_version: 2")
    assert errors(wrong) == [
        "test.yaml:1:17: schema_version: unsupported schema_version 2, only 1 is supported"
    ]


def test_ch10_example_03_pools() -> None:
    assert has(errors(NO_POOLS, "parse"), "pools", "missing required key 'pools'")
    assert load(NO_POOLS + "pools: []\n").pools == ()


def test_ch10_example_04_strict_top_level_and_lenient_forward() -> None:
    assert extend_errors("listner: {}\n", "parse") == [
        "test.yaml:4:1: listner: unknown key 'listner'; did you mean 'listeners'?"
    ]
    assert extend("forward: {timeoutms: 5}\n").forward.timeout_ms == 2000
    assert extend_warnings("forward: {timeoutms: 5}\n") == [
        "unknown key 'timeoutms' is ignored; did you mean 'timeout_ms'?"
    ]


def test_ch10_example_05_strict_health_and_lenient_pool() -> None:
    pool = "pools: [{name: p, backends: [{address: '127.0.0.1:53'}], %s}]\n"
    lines = errors(NO_POOLS + pool % "health: {enabeld: true}", "parse")
    assert has(lines, "pools[0].health.enabeld", "did you mean 'enabled'?")
    assert load(NO_POOLS + pool % "colour: red").pools[0].name == "p"


def test_ch10_example_06_observation() -> None:
    assert has(extend_errors("observation: {}\n", "parse"), "unknown key 'observation'", "'events'")


def test_ch10_example_07_listeners_block() -> None:
    pools = "schema_version: 1\npools: []\n"
    assert has(
        errors(pools + "listeners: {threads: 2}\n", "parse"),
        "listeners.listeners: missing required key 'listeners'",
    )
    assert has(
        errors(pools + "listeners: {threads: 0, listeners: []}\n"),
        "listeners.threads must be >= 1",
    )


def test_ch10_example_08_listener_address_is_checked_at_the_bind() -> None:
    text = MINIMAL.replace("127.0.0.1:15353", "nonsense")
    assert load(text).listeners.listeners[0].address == "nonsense"


@pytest.mark.parametrize(("protocol", "is_tcp"), [("TCP", True), ("tcp", True), ("quic", False)])
def test_ch10_example_09_protocol(protocol: str, is_tcp: bool) -> None:
    config = load(MINIMAL.replace("protocol: udp", f"protocol: {protocol}"))
    assert config.listeners.listeners[0].is_tcp is is_tcp


def test_ch10_example_10_listener_names() -> None:
    entry = "{address: '127.0.0.1:0', protocol: udp, name: a}"
    text = f"schema_version: 1\npools: []\nlisteners: {{listeners: [{entry}, {entry}]}}\n"
    assert has(errors(text), "listeners.listeners[1].name", "duplicate listener name 'a'")
    assert Listener("127.0.0.1:53", "UDP").ingress_name == "udp:127.0.0.1:53"


def test_ch10_example_11_all_pool_errors_in_one_run() -> None:
    lines = errors(
        NO_POOLS
        + "pools: [{name: p, backends: []}, {name: p, backends: [{address: x, weight: 0}]}]\n"
    )
    assert has(lines, "pool 'p' has no backends")
    assert has(lines, "duplicate pool name 'p'")
    assert has(lines, "pool 'p' backend 'x': invalid socket address")
    assert has(lines, "pools[1].backends[0].weight: pool 'p' backend 'x' weight must be >= 1")
    assert len(lines) == 4


@pytest.mark.parametrize("weight", ['"5"', "-1", "4294967296", "1.5", "1_0", "five"])
def test_ch10_example_12_integers(weight: str) -> None:
    text = MINIMAL.replace('"127.0.0.1:5300"}', f'"127.0.0.1:5300", weight: {weight}}}')
    assert has(errors(text, "parse"), "pools[0].backends[0].weight", "expected an integer")


def test_ch10_example_12_booleans() -> None:
    text = "schema_version: 1\npools: []\nlisteners: {reuse_port: yes, listeners: []}\n"
    assert has(errors(text, "parse"), "listeners.reuse_port: expected true or false", "'yes'")


def rule(hook: str, selectors: str = "[]", actions: str = "[]") -> str:
    head = f"rules: {{rules: [{{name: r, hook: {hook}, "
    return head + f"selectors: {selectors}, actions: {actions}}}]}}\n"


def test_ch10_example_13_string_field_keeps_source_text() -> None:
    config = extend(rule("request", "[{type: sample_percent, value: 10}]"))
    assert config.rules.rules[0].selectors[0].value == "10"


def test_ch10_example_14_unknown_pool() -> None:
    text = rule("request", actions="[{type: set_pool, value: ghost}]")
    assert extend_errors(text) == [
        f"test.yaml:4:{text.index('ghost') + 1}: rules.rules[0].actions[0].value: "
        "rule 'r' action 'set_pool' references unknown pool 'ghost'; "
        "declare it under pools: or fix the name"
    ]


def test_ch10_example_15_actions_on_the_wrong_hook() -> None:
    assert has(extend_errors(rule("request", actions="[{type: retry}]")), "only valid on response")
    assert has(
        extend_errors(rule("no_answer", actions="[{type: set_pool, value: default}]")),
        "rule 'r' hook 'no_answer' does not permit action 'set_pool'",
    )


def test_ch10_example_16_source_actions_need_a_declared_source() -> None:
    text = rule("request", actions="[{type: set_source_v4, value: 10.0.0.9}]")
    assert has(extend_errors(text), "requires forward.sources_v4 or pool sources_v4")
    second = (
        "pools: [{name: a, backends: [{address: '127.0.0.1:1'}]}, "
        "{name: b, backends: [{address: '127.0.0.1:1'}], sources_v4: [10.0.0.9]}]\n"
    )
    assert load(NO_POOLS + second + text).pools[1].sources_v4 == ("10.0.0.9",)


def test_ch10_example_17_too_many_sources() -> None:
    sources = ", ".join(["10.0.0.1"] * 33)
    lines = extend_errors(f"forward: {{sources_v4: [{sources}]}}\n")
    assert has(lines, "forward.sources_v4 has 33 entries; maximum is 32")
    assert len(extend(f"forward: {{sources_v4: [{sources[10:]}]}}\n").forward.sources_v4) == 32


def test_ch10_example_18_workers() -> None:
    config = extend("dataplane: {runtime: sync, io_workers: 0}\n")
    assert config.dataplane is not None
    assert config.dataplane.io_workers == 0
    assert has(
        extend_errors("dataplane: {runtime: split_io, io_workers: 0}\n"), "dataplane.io_workers"
    )


def lmdb(settings: str) -> str:
    return f"caches: [{{name: c, type: lmdb, lmdb: {{path: /tmp, {settings}}}}}]\n"


@pytest.mark.usefixtures("with_lmdb")
def test_ch10_example_19_map_size() -> None:
    store = extend(lmdb("map_size: 4.5gb")).caches[0].lmdb
    assert store is not None
    assert store.map_size == 4_500_000_000
    assert has(extend_errors(lmdb("map_size: 4GiB"), "parse"), "caches[0].lmdb.map_size", "IEC")
    assert has(extend_errors(lmdb("map_size: 0")), "lmdb.map_size")


@pytest.mark.usefixtures("with_lmdb")
def test_ch10_example_20_sync_interval() -> None:
    store = extend(lmdb("map_size: 1GB, sync: periodic, sync_interval: 250ms")).caches[0].lmdb
    assert store is not None
    assert store.sync_interval_ms == 250
    for bad in ("250", "1.5s", "1 s", "1m"):
        lines = extend_errors(lmdb(f"map_size: 1GB, sync: periodic, sync_interval: {bad}"), "parse")
        assert has(lines, "must include an ms or s unit")


@pytest.mark.usefixtures("with_lmdb")
def test_ch10_example_21_memory_block_under_lmdb() -> None:
    text = (
        "caches: [{name: c, type: lmdb, memory: {shard_count: 4}, "
        "lmdb: {path: /srv/x, map_size: 1GB}}]\n"
    )
    assert has(extend_errors(text), "caches[0]: memory block is not allowed")


def test_ch10_example_22_lookup() -> None:
    assert has(extend_errors("lookup: {profiles: {}}\n"), "lookup.profiles", "at least one profile")
    config = extend("caches: [{name: c, type: memory}]\n")
    assert config.lookup is None
    assert config.caches[0].negative_cache.servfail_ttl_secs == 10


@pytest.mark.parametrize(
    ("kind", "rule_text", "fragment"),
    [
        ("csv", "match: t, action: drop", "match 't' is not a type:cidr data_sources name"),
        ("cidr", "match: t, action: tag", "action tag requires a non-empty tag name"),
        ("cidr", "match: t, action: drop, tag: x", "tag is only valid when action is tag"),
        ("cidr", "match: t, action: allow", "action must be drop|refuse|tag|accept, got 'allow'"),
        ("cidr", "match: '', action: drop", "match must not be empty"),
    ],
)
def test_ch10_example_23_acls(kind: str, rule_text: str, fragment: str) -> None:
    tables = f"data_sources: [{{name: t, type: {kind}, path: t}}]\n"
    acls = f"acls: {{rules: [{{{rule_text}}}]}}\n"
    assert has(extend_errors(tables + acls), "acls.rules[0]", fragment)


def test_ch10_example_24_control() -> None:
    control = extend("control: {}\n").control
    assert control is not None
    assert control.listen_address == "127.0.0.1:5199"
    assert has(
        extend_errors('control: {listen_address: "localhost:5199"}\n'), "control.listen_address"
    )


def test_ch10_example_25_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    assert resolve_path("/etc/c", "s/p.rhai") == "/etc/c/s/p.rhai"
    assert resolve_path("/etc/c", "/s/p.rhai") == "/s/p.rhai"
    path = str(tmp_path / "conduit.yaml")
    (tmp_path / "conduit.yaml").write_text(MINIMAL)
    loaded = load_file(path)
    assert loaded.base_dir == str(tmp_path)
    assert loaded.path == path


def test_backend_defaults() -> None:
    assert Backend("127.0.0.1:53").effective_weight == 100
    assert Backend("127.0.0.1:53").label == "127.0.0.1:53"
    assert Backend("127.0.0.1:53", name="").label == "127.0.0.1:53"
    assert Backend("127.0.0.1:53", name="a").label == "a"


def test_default_pool() -> None:
    backend = "backends: [{address: '127.0.0.1:1'}]"
    pools = f"pools: [{{name: a, {backend}}}, {{name: %s, {backend}}}]\n"
    assert load(NO_POOLS + pools % "default").default_pool_name() == "default"
    assert load(NO_POOLS + pools % "b").default_pool_name() == "a"
    assert load(NO_POOLS + "pools: []\n").default_pool_name() is None


def test_parse_errors_come_all_together_and_before_validation() -> None:
    error = failure("schema_version: 2\nlistner: {}\nforward: {timeout_ms: '5'}\nlogging: [1]\n")
    assert error.stage == "parse"
    assert [(d.line, d.key) for d in error.diagnostics] == [
        (1, "pools"),
        (2, "listner"),
        (3, "forward.timeout_ms"),
        (4, "logging"),
    ]
