"""Acceptance examples of chapter 20 that concern loading, and its validation texts."""

from __future__ import annotations

import pytest

from tests.config.support import (
    MINIMAL,
    NO_POOLS,
    errors,
    extend,
    extend_errors,
    extend_warnings,
    has,
    load,
    warnings,
)


def test_ch20_example_36_udp_threads_need_reuse_port() -> None:
    text = MINIMAL.replace("protocol: udp", "protocol: udp, threads: 2, reuse_port: false")
    lines = errors(text)
    assert has(lines, "udp:127.0.0.1:15353", "threads is 2 but reuse_port is false")
    assert has(lines, "reuse_port: true", "threads: 1")
    assert load(text.replace("udp", "tcp")).listeners.listeners[0].threads == 2
    assert load(text.replace("false", "true")).listeners.listeners[0].reuse_port is True


def test_ch20_example_36_values_of_the_block_count() -> None:
    text = MINIMAL.replace("listeners: {listeners", "listeners: {threads: 3, listeners")
    assert has(errors(text), "threads is 3 but reuse_port is false")
    listeners = load(text.replace("threads: 3", "threads: 3, reuse_port: true")).listeners
    assert listeners.listeners[0].resolved_threads(listeners) == 3
    assert listeners.listeners[0].resolved_reuse_port(listeners) is True


def test_ch20_example_37_label_and_ingress_name() -> None:
    text = MINIMAL.replace("15353", "5300").replace("protocol: udp", "protocol: UDP")
    entry = load(text).listeners.listeners[0]
    assert entry.label == "127.0.0.1:5300"
    assert entry.ingress_name == "udp:127.0.0.1:5300"


def test_explicit_zero_rcvbuf_overrides_the_block() -> None:
    text = MINIMAL.replace("listeners: {listeners", "listeners: {rcvbuf: 4096, listeners")
    listeners = load(text).listeners
    assert listeners.listeners[0].resolved_rcvbuf(listeners) == 4096
    listeners = load(text.replace("protocol: udp", "protocol: udp, rcvbuf: 0")).listeners
    assert listeners.listeners[0].resolved_rcvbuf(listeners) == 0


@pytest.mark.parametrize(
    ("block", "fragment"),
    [
        ("dataplane: {runtime: fast}", "dataplane.runtime 'fast' must be"),
        ("dataplane: {runtime: tokio, policy_workers: 0}", "dataplane.policy_workers"),
        ("dataplane: {slot_chunk_size: 0}", "dataplane.slot_chunk_size must be >= 1"),
        ("dataplane: {workers_max: 0}", "dataplane.workers_max must be >= 1"),
        ("orchestrator: {max_attempts: 0}", "orchestrator.max_attempts must be >= 1"),
        (
            "orchestrator: {route_failure_policy: stop}",
            "orchestrator.route_failure_policy 'stop' must be no_answer or response_rules",
        ),
        (
            "forward: {source_selection: random}",
            "forward.source_selection 'random' must be round_robin (slice A)",
        ),
        (
            "forward: {upstream_transport: tls}",
            "forward.upstream_transport 'tls' must be udp_only, tcp_only, or "
            "prefer_udp_with_tcp_fallback",
        ),
        ("forward: {sources_v4: ['']}", "forward.sources_v4[0]"),
        ("forward: {sources_v4: [10.0.0.1, 010.0.0.1]}", "forward.sources_v4[1]"),
        ("forward: {sources_v6: ['::1', 'fe80::1%lo']}", "forward.sources_v6[1]"),
        ("control: {listen_address: ''}", "control.listen_address must not be empty"),
        ("rhai: {max_operations: 0}", "rhai.max_operations"),
        ("rhai: {max_call_depth: 0}", "rhai.max_call_depth"),
    ],
)
def test_rejected_values(block: str, fragment: str) -> None:
    assert has(extend_errors(block + "\n"), fragment)


@pytest.mark.parametrize(
    ("keys", "fragment"),
    [
        ("name: '', backends: [{address: '127.0.0.1:1'}]", "pool name must not be empty"),
        ("name: p, backends: []", "pool 'p' has no backends"),
        ("name: p", "pool 'p' has no backends"),
        ("name: p, backends: [{address: ''}]", "pool 'p' backend address must not be empty"),
        ("name: p, backends: [{address: ''}]", "pool 'p' backend '': invalid socket address"),
        ("name: p, backends: [{address: 'ns.test:53'}]", "invalid socket address"),
        ("name: p, backends: [{address: '[fe80::1%nope0]:53'}]", "names no network interface"),
        ("name: p, max_inflight: 0", "pool 'p' max_inflight must be >= 1 when set"),
        ("name: p, sources_v4: [x]", "pool 'p' sources_v4[0] 'x' is not a valid IPv4 address"),
        (
            "name: p, backends: [{address: '127.0.0.1:1', name: b}, "
            "{address: '127.0.0.1:2', name: b}]",
            "pool 'p' duplicate backend name 'b'",
        ),
        ("name: p, health: {interval_ms: 99}", "health.interval_ms 99 is below the 100ms floor"),
        ("name: p, health: {timeout_ms: 0}", "health.timeout_ms"),
        ("name: p, health: {rise: 0}", "health.rise"),
        ("name: p, health: {fall: 0}", "health.fall"),
        ("name: p, health: {passive_fall: 0}", "health.passive_fall"),
        ("name: p, health: {probe_qtype: X1}", "unknown RecordType value 'X1'"),
        ("name: p, health: {acceptable_rcodes: [NOPE]}", "health.acceptable_rcodes[0]"),
        ("name: p, health: {initial_state: dead}", "health.initial_state 'dead'"),
        ("name: p, backends: [{address: '127.0.0.1:1', probe_qtype: Q}]", "probe_qtype"),
        ("name: p, backends: [{address: '127.0.0.1:1', probe_source: x}]", "probe_source 'x'"),
    ],
)
def test_rejected_pools(keys: str, fragment: str) -> None:
    assert has(errors(NO_POOLS + f"pools: [{{{keys}}}]\n"), fragment)


def test_accepted_pools() -> None:
    twice = "backends: [{address: '127.0.0.1:1'}, {address: '127.0.0.1:1', name: ''}]"
    zone = "backends: [{address: '[fe80::1%lo]:53', probe_source: '::1'}]"
    pools = load(NO_POOLS + f"pools: [{{name: a, {twice}}}, {{name: b, {zone}}}]\n").pools
    assert len(pools[0].backends) == 2
    assert pools[1].backends[0].address == "[fe80::1%lo]:53"


def test_health_timeout_is_the_interval_when_unset() -> None:
    pool = "pools: [{name: p, health: {interval_ms: 500%s}, backends: [{address: '127.0.0.1:1'}]}]"
    health = load(NO_POOLS + pool % "").pools[0].health
    assert health is not None
    assert health.effective_timeout_ms == 500
    health = load(NO_POOLS + pool % ", timeout_ms: 70, passive_fall: ~").pools[0].health
    assert health is not None
    assert (health.effective_timeout_ms, health.passive_fall) == (70, 2)


@pytest.mark.parametrize(
    ("block", "fragment"),
    [
        ("dataplane: {runtime: tokio}", "runs as split_io"),
        ("forward: {timeout_ms: 0}", "forward.timeout_ms 0"),
        ("orchestrator: {max_txn_duration_ms: 0}", "max_txn_duration_ms 0"),
        ("forward: {client_tcp_uses_upstream_tcp: true}", "does nothing under udp_only"),
    ],
)
def test_warned_values(block: str, fragment: str) -> None:
    assert has(extend_warnings(block + "\n"), fragment)


def test_remove_marker_in_the_file_is_ignored_with_a_warning() -> None:
    text = (
        "schema_version: 1\nlisteners: {listeners: [{address: '127.0.0.1:1', protocol: udp}]}\n"
        "pools: [{name: p, remove: true, backends: [{address: '127.0.0.1:1', remove: true}]}]\n"
    )
    assert [(w.key, w.code) for w in warnings(text)] == [
        ("pools[0].remove", "remove-ignored"),
        ("pools[0].backends[0].remove", "remove-ignored"),
    ]


def test_empty_enum_values_are_the_defaults() -> None:
    config = extend(
        "forward: {source_selection: '', upstream_transport: ' tcp_only '}\n"
        "dataplane: {runtime: ''}\norchestrator: {route_failure_policy: ''}\n"
        "logging: {level: '', output: ''}\n"
    )
    assert config.forward.transport == "tcp_only"
    assert config.dataplane_or_default().resolved_runtime == "sync"
