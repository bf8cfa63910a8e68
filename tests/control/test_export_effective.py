"""What a change leaves in force, an export says: chapter 10 section 13, over random changes."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conduit.cli.ctl.tree_diff import differences
from conduit.config import load_text, load_tree
from conduit.control.export import export_yaml
from conduit.control.overlay import ApplyMode
from tests.control.support import Changer

#: Texts that YAML would read as something else.
TEXTS = st.sampled_from(["NO", "on", "0x1f", "1_000", "~", "a: b", "#c", "ü", "1.50", "'"])

SELECTORS = st.lists(
    st.sampled_from(
        [
            {"type": "qname_suffix", "value": ".example."},
            {"type": "qtype", "value": "AAAA"},
            {"type": "sample_percent", "value": "10", "key_from": "qname"},
            {"type": "every_nth_global", "value": "3"},
            {"type": "client_cidr", "value": "nets"},
        ]
    ),
    max_size=2,
)
ACTIONS = st.lists(
    st.sampled_from([{"type": "drop"}, {"type": "set_pool", "value": "q"}])
    | st.builds(lambda tag: {"type": "set_tag", "value": tag}, TEXTS),
    max_size=2,
)
RULES = st.lists(
    st.fixed_dictionaries(
        {
            "name": TEXTS,
            "hook": st.just("request"),
            "selectors": SELECTORS,
            "actions": ACTIONS,
        }
    ),
    max_size=3,
    unique_by=lambda rule: rule["name"],
)
ACLS = st.fixed_dictionaries(
    {},
    optional={
        "default_action": st.sampled_from(["allow", "deny"]),
        "rules": st.sampled_from(
            [
                [],
                [{"match": "nets", "action": "drop"}],
                [{"match": "nets", "action": "tag", "tag": "NO"}],
            ]
        ),
    },
)
LISTENERS = st.fixed_dictionaries(
    {
        "listeners": st.lists(
            st.fixed_dictionaries(
                {"address": st.just("127.0.0.1:0"), "protocol": st.sampled_from(["udp", "TCP"])},
                optional={
                    "name": TEXTS,
                    "acls": ACLS,
                    "rcvbuf": st.integers(0, 9999),
                    "reuse_port": st.booleans(),
                },
            ),
            max_size=2,
            unique_by=lambda listener: listener.get("name") or listener["protocol"].lower(),
        )
    },
    optional={"rcvbuf": st.integers(0, 9999)},
)
BACKENDS = st.lists(
    st.fixed_dictionaries(
        {"address": st.sampled_from(["192.0.2.1:53", "192.0.2.2:53", "[2001:db8::1]:53"])},
        optional={
            "weight": st.integers(1, 200),
            "probe_qname": st.just("probe.example."),
            "probe_qtype": st.just("A"),
            "probe_source": st.just("192.0.2.9"),
        },
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda backend: backend["address"],
)
HEALTH = st.fixed_dictionaries(
    {"enabled": st.booleans()},
    optional={
        "interval_ms": st.integers(100, 5000),
        "timeout_ms": st.integers(1, 900),
        "acceptable_rcodes": st.just(["NOERROR", "NXDOMAIN"]),
        "initial_state": st.sampled_from(["require_1_good", "require_full_rise"]),
        "latency_weighting": st.booleans(),
    },
)
POOLS = st.builds(
    lambda p, q, health, inflight: [
        {"name": "p", "backends": p, "health": health},
        {"name": "q", "backends": q, "max_inflight": inflight},
    ],
    BACKENDS,
    BACKENDS,
    HEALTH,
    st.integers(1, 9),
)
SINKS = st.lists(
    st.fixed_dictionaries(
        {"type": st.just("dnstap"), "name": TEXTS, "destinations": st.just(["unix:/x"])},
        optional={
            "export_id": st.sampled_from(["", "e"]),
            "emit": st.sampled_from([[], ["query"], ["response", "retry"]]),
            "filters": st.sampled_from(
                [{}, {"sample_percent": 12.5}, {"pool": "p"}, {"tag_required": "NO"}]
            ),
            "extra_fields": st.just(["tags", "pool"]),
            "connect_retry": st.sampled_from([{}, {"jitter": False}, {"multiplier": 3}]),
        },
    ),
    max_size=1,
)
FILES = st.fixed_dictionaries(
    {
        "schema_version": st.just(1),
        "pools": POOLS,
        "data_sources": st.just([{"name": "nets", "type": "cidr", "path": "nets.cidr"}]),
    },
    optional={
        "listeners": LISTENERS,
        "rules": st.fixed_dictionaries({"rules": RULES}),
        "acls": ACLS,
        "events": st.fixed_dictionaries({"sinks": SINKS}),
        "shutdown": st.fixed_dictionaries({}, optional={"drain_timeout_ms": st.integers(0, 9)}),
        "caches": st.just([{"name": "c", "type": "memory", "truncated_udp": {}}]),
        "tracing": st.fixed_dictionaries(
            {"enabled": st.booleans()},
            optional={"activation": st.just({"tag": "NO", "sample_percent": 1})},
        ),
        "logging": st.just(
            {"query_access": {"acl_denied": "info", "acl_denied_sample": {"mode": "per_source"}}}
        ),
    },
)
PATCHES = st.lists(
    st.tuples(
        st.sampled_from(ApplyMode),
        st.fixed_dictionaries(
            {"schema_version": st.just(1)},
            optional={
                "pools": st.builds(
                    lambda name, weight: [{"name": name, "backends": [weight]}],
                    st.sampled_from(["p", "q", "new"]),
                    st.fixed_dictionaries(
                        {"address": st.sampled_from(["192.0.2.1:53", "192.0.2.7:53"])},
                        optional={"weight": st.integers(1, 9), "name": st.just("named")},
                    ),
                ),
                "events": st.fixed_dictionaries({"sinks": SINKS}),
                "rhai": st.fixed_dictionaries({"max_operations": st.integers(0, 9)}),
                "acls": ACLS,
                "lookup": st.just({"profiles": {"default": {"providers": [{"type": "forward"}]}}}),
                "metrics": st.fixed_dictionaries({"enabled": st.booleans()}),
            },
        ),
    ),
    max_size=3,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(FILES, PATCHES)
def test_an_export_loads_to_what_is_in_force(
    file: dict[str, Any], patches: list[tuple[ApplyMode, dict[str, Any]]]
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "nets.cidr").write_text("192.0.2.0/24\n")
        path = str(folder / "conduit.yaml")
        # fails where a fragment is not valid, so that nothing is tested by accident
        load_tree(file, path)
        with Changer(folder, file) as changer:
            generation = 1
            for mode, patch in patches:
                before = changer.config
                result = changer.configurator.apply(patch, mode)
                if result.ok:
                    generation += 1
                else:
                    assert changer.config is before
                assert changer.configurator.generation == generation
            text = changer.configurator.export()
            again = load_text(text, path).config
            assert differences(changer.config, again) == []
            assert export_yaml(again) == text
            assert "remove" not in text
            # an export is a file: a service that starts with it is the same one
            changer.path.write_text(text)
            assert changer.configurator.reload("file").ok
            assert changer.configurator.export() == text
            assert yaml.safe_load(text)["schema_version"] == 1
