"""An export loads again to the same behaviour, whatever the configuration holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from conduit.config import Config, ConfigError, load_file, load_text, load_tree
from conduit.control.config_tree import config_tree
from conduit.control.export import export_tree, export_yaml
from tests.control.support import MIN

EXAMPLES = sorted((Path(__file__).parents[2] / "conf").rglob("*.yaml"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_come_back(path: Path) -> None:
    config = load_file(str(path)).config
    again = load_text(export_yaml(config), str(path)).config
    assert _meaning(again) == _meaning(config)
    # an export of an export is the same text
    assert export_yaml(again) == export_yaml(config)
    assert load_tree(config_tree(config), str(path)).config == config


def _meaning(config: Config) -> dict[str, Any]:
    """The configuration with what an export may spell in another way spelt in one way."""
    tree = config_tree(config)
    tree["dataplane"] = config.dataplane_or_default()
    tree["shutdown"] = config.shutdown_or_default()
    tree["data_source_limits"] = config.data_source_limits_or_default()
    if not (tree.get("metrics") or {}).get("profile", "set"):
        del tree["metrics"]["profile"]
    tree["pools"] = [
        (pool.name, pool.health, [(b.label, b.address, b.effective_weight) for b in pool.backends])
        for pool in config.pools
    ]
    tree["events"]["sinks"] = [
        (s.canonical_name, s.identity, s.emitted) for s in config.events.sinks
    ]
    return tree


FRAGMENTS = {
    "forward": st.fixed_dictionaries(
        {},
        optional={
            "timeout_ms": st.integers(0, 5000),
            "upstream_transport": st.sampled_from(["udp_only", "tcp_only", ""]),
            "sources_v4": st.just(["10.0.0.1"]),
        },
    ),
    "orchestrator": st.fixed_dictionaries({}, optional={"max_attempts": st.integers(1, 9)}),
    "rhai": st.fixed_dictionaries({}, optional={"hook_timeout_ms": st.integers(0, 99)}),
    "logging": st.fixed_dictionaries(
        {},
        optional={
            "level": st.sampled_from(["info", "warn", ""]),
            "query_access": st.fixed_dictionaries(
                {}, optional={"acl_denied": st.sampled_from(["off", "info"])}
            ),
        },
    ),
    "control": st.fixed_dictionaries(
        {}, optional={"api_keys": st.lists(st.sampled_from(["k: 1", "NO", "0x1f", " s"]))}
    ),
    "shutdown": st.fixed_dictionaries({}, optional={"drain": st.booleans()}),
    "dataplane": st.fixed_dictionaries(
        {}, optional={"runtime": st.sampled_from(["sync", "split_io"])}
    ),
    "metrics": st.fixed_dictionaries(
        {"enabled": st.booleans()},
        optional={
            "base": st.sampled_from(["minimal", "standard"]),
            "collection": st.just({"timing": {"emit": False}}),
            "granularity": st.sampled_from(
                [{"default": "coarse"}, {"timing": ["pool"]}, {"responses": {"rcode": "coarse"}}]
            ),
            "categories": st.sampled_from([{"include": []}, {"exclude": ["process"]}]),
            "otel": st.just({"endpoint": "http://127.0.0.1:4318", "headers": {"a": "b"}}),
            "user_metrics": st.just([{"name": "x", "help": "yes: no"}]),
        },
    ),
    "tracing": st.fixed_dictionaries({"enabled": st.booleans()}),
    "acls": st.fixed_dictionaries({"default_action": st.sampled_from(["allow", "deny"])}),
    "caches": st.lists(
        st.fixed_dictionaries(
            {"name": st.just("c"), "type": st.just("memory")},
            optional={
                "max_entries": st.integers(0, 10),
                "on_hit": st.just({"response_rules": "skip"}),
                "memory": st.just({"eviction": "active"}),
            },
        ),
        max_size=1,
    ),
    "pools": st.lists(
        st.fixed_dictionaries(
            {
                "name": st.just("p"),
                "backends": st.lists(
                    st.fixed_dictionaries(
                        {"address": st.just("192.0.2.1:53")},
                        optional={
                            "weight": st.integers(1, 200),
                            "name": st.sampled_from(["on", "b"]),
                        },
                    ),
                    min_size=1,
                    max_size=1,
                ),
            },
            optional={
                "health": st.just({"enabled": True, "rise": 2}),
                "max_inflight": st.integers(1, 9),
            },
        ),
        max_size=1,
    ),
}


@settings(max_examples=150, deadline=None)
@given(st.fixed_dictionaries({}, optional=FRAGMENTS))
def test_any_valid_configuration_comes_back(parts: dict[str, Any]) -> None:
    text = yaml.safe_dump({**MIN, **parts})
    try:
        config = load_text(text, "x.yaml").config
    except ConfigError:
        return
    again = load_text(export_yaml(config), "x.yaml").config
    assert _meaning(again) == _meaning(config)
    assert export_tree(again) == export_tree(config)


def test_blocks_that_say_nothing_but_the_defaults_are_left_out() -> None:
    blocks = {"shutdown": {"drain": True}, "dataplane": {}, "data_source_limits": {}}
    tree = export_tree(load_text(yaml.safe_dump({**MIN, **blocks}), "x.yaml").config)
    assert not {*blocks} & {*tree}
    blocks = {"shutdown": {"drain": False}, "dataplane": {"runtime": "split_io"}}
    tree = export_tree(load_text(yaml.safe_dump({**MIN, **blocks}), "x.yaml").config)
    # all plain fields of a block that is written
    assert tree["shutdown"] == {"drain": False, "drain_timeout_ms": 5000}
    assert tree["dataplane"]["runtime"] == "split_io"
