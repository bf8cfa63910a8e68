"""The three base configurations of the interoperability chapter load unchanged (chapter 70, 3)."""

from __future__ import annotations

from conduit.config import load_text

FORWARD_ONLY = """\
schema_version: 1
listeners:
  threads: 1
  reuse_port: false
  listeners:
    - address: "127.0.0.1:15353"
      protocol: udp
    - address: "127.0.0.1:15353"
      protocol: tcp
forward:
  outstanding_per_backend: 50
  timeout_ms: 2000
orchestrator:
  max_attempts: 3
  max_txn_duration_ms: 5000
  txn_table_capacity: 1024
events:
  queue_depth: 4096
  drop_policy: drop_oldest
  sinks: []
rhai:
  max_operations: 10000
  max_call_depth: 32
pools:
  - name: default
    backends:
      - address: "127.0.0.1:5300"
        weight: 100
rules:
  match_mode: first_match
  rules:
    - name: default-pool
      hook: request
      selectors: []
      actions:
        - type: set_pool
          value: default
logging:
  level: warn
"""
CACHE_FORWARD = (
    FORWARD_ONLY
    + """\
caches:
  - name: global
    type: memory
    max_entries: 10000
    negative_cache:
      enabled: true
      nxdomain_covers_descendants: true
      servfail_ttl_secs: 10
lookup:
  profiles:
    default:
      providers:
        - type: cache
          cache: global
        - type: forward
"""
)
FORWARD_SPLIT_IO = (
    FORWARD_ONLY
    + """\
dataplane:
  runtime: split_io
  policy_workers: 2
  io_workers: 1
"""
)


def test_forward_only() -> None:
    loaded = load_text(FORWARD_ONLY, "x.yaml")
    assert loaded.warnings == ()
    config = loaded.config
    assert [entry.is_tcp for entry in config.listeners.listeners] == [False, True]
    assert config.forward.outstanding_per_backend == 50
    assert config.rules.rules[0].selectors == ()
    assert config.rules.rules[0].actions[0].value == "default"
    assert config.dataplane is None
    assert config.logging.level == "warn"


def test_cache_forward() -> None:
    loaded = load_text(CACHE_FORWARD, "x.yaml")
    assert loaded.warnings == ()
    assert loaded.config.caches[0].max_entries == 10000
    assert loaded.config.lookup is not None
    providers = loaded.config.lookup.profiles["default"].providers
    assert [(p.type, p.cache) for p in providers] == [("cache", "global"), ("forward", None)]


def test_forward_split_io() -> None:
    loaded = load_text(FORWARD_SPLIT_IO, "x.yaml")
    assert loaded.warnings == ()
    assert loaded.config.dataplane is not None
    assert loaded.config.dataplane.policy_workers == 2


def test_legacy_metrics_profile() -> None:
    loaded = load_text(FORWARD_ONLY + "metrics: {enabled: true, profile: full}\n", "x.yaml")
    assert [w.code for w in loaded.warnings] == ["deprecated"]


def test_script_and_named_backend() -> None:
    text = FORWARD_ONLY.replace("type: set_pool\n          value: default",
                                "type: rhai\n          value: scripts/p.rhai")  # fmt: skip
    config = load_text(text.replace("weight: 100", "name: peer"), "x.yaml").config
    assert config.rules.rules[0].actions[0].value == "scripts/p.rhai"
    assert config.pools[0].backends[0].label == "peer"
    assert config.pools[0].backends[0].effective_weight == 100
