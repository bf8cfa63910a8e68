"""What `apply` and `metrics patch` send of their files."""

from __future__ import annotations

import pytest
from google.protobuf import text_format

from conduit.control.messages import tree_of
from conduit.v1 import config_pb2 as config
from conduit.v1 import control_pb2 as control
from conduit.v1 import metrics_control_pb2 as metrics
from tests.cli.test_conduitctl_server import Ctl, ctl, failed, server

__all__ = ["ctl", "server"]


@pytest.fixture
def patch(ctl: Ctl) -> str:
    ctl.server.answers["ApplyConfig"] = control.ApplyConfigResponse(ok=True, generation=2)
    ctl.server.answers["PatchMetrics"] = control.ApplyConfigResponse(ok=True, generation=2)
    return str(ctl.folder / "patch.yaml")


def write(ctl: Ctl, text: str) -> None:
    (ctl.folder / "patch.yaml").write_text(text)


@pytest.mark.parametrize(("flag", "mode"), [(None, 1), ("--merge", 1), ("--replace", 2)])
def test_modes(ctl: Ctl, patch: str, flag: str | None, mode: int) -> None:
    write(ctl, "schema_version: 1\n")
    result = ctl("apply", "--file", patch, *([flag] if flag else []))
    assert (result.exit_code, result.stdout) == (0, "ok generation=2\n")
    assert ctl.server.request.mode == mode
    assert ctl.server.request.overlay == config.Config(schema_version=1)


def test_only_the_keys_that_are_there_are_sent(ctl: Ctl, patch: str) -> None:
    write(
        ctl,
        """
schema_version: 1
forward: {timeout_ms: 900}
pools:
  - {name: P, backends: [{name: b, remove: true}, {name: a, weight: 10}]}
metrics: {categories: {include: []}, granularity: {timing: [pool], default: coarse}}
caches:
  - {name: c, type: lmdb, lmdb: {path: /x, map_size: 4.5gb}}
lookup: {profiles: {default: {providers: [{type: forward}]}}}
""",
    )
    assert ctl("apply", "--file", patch).exit_code == 0
    wanted = text_format.Parse(
        """
schema_version: 1
forward { timeout_ms: 900 }
pools { name: "P"
  backends { name: "b" remove: true }
  backends { name: "a" weight: 10 } }
metrics {
  categories { include_set: true }
  granularity { default: "coarse"
    overrides { key: "timing" value { dimensions: "pool" dimensions_set: true } } } }
caches { name: "c" type: "lmdb" lmdb { path: "/x" map_size_bytes: 4500000000 } }
lookup { profiles { key: "default" value { providers { type: "forward" } } } }
""",
        config.Config(),
    )
    assert ctl.server.request.overlay == wanted
    assert tree_of(wanted)["forward"] == {"timeout_ms": 900}


@pytest.mark.parametrize("block", ["rules: {}", "tracing: {enabled: true}"])
def test_what_only_the_file_may_change_is_refused_here(ctl: Ctl, patch: str, block: str) -> None:
    write(ctl, f"schema_version: 1\n{block}\n")
    result = ctl("apply", "--file", patch)
    failed(result, block.split(":")[0])
    assert "reload" in result.stderr
    assert ctl.server.requests == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("forward: {}", "missing required key 'schema_version'"),
        ("schema_version: 1\nlistner: {}", "unknown key 'listner'; did you mean 'listeners'?"),
        ("schema_version: 1\npools: [{name: p, backends: [{weight: -1}]}]", "weight"),
        ("schema_version: [", "patch.yaml:"),
        ("schema_version: 1\nforward: 5", "patch.yaml:2"),
        (None, 'reading config "'),
    ],
)
def test_patches_that_are_none(ctl: Ctl, patch: str, text: str | None, message: str) -> None:
    if text is not None:
        write(ctl, text)
    failed(ctl("apply", "--file", patch), message)
    assert ctl.server.requests == []


def test_a_null_rules_key_counts_as_absent(ctl: Ctl, patch: str) -> None:
    write(ctl, "schema_version: 1\ntracing: ~\n")
    assert ctl("apply", "--file", patch).exit_code == 0


def test_keys_that_do_not_travel_are_told(ctl: Ctl, patch: str) -> None:
    write(
        ctl,
        """
schema_version: 1
forward: {timeoutms: 5, timeout_ms: 0}
dataplane: {workers_max: 3}
orchestrator: {max_attempts: 3, route_failure_policy: no_answer}
events: {sinks: [{type: dnstap, name: s, destinations: ['unix:x'],
                  connect_retry: {jitter: false}}]}
""",
    )
    result = ctl("apply", "--file", patch)
    assert result.exit_code == 0
    assert "unknown key 'timeoutms' is ignored; did you mean 'timeout_ms'?" in result.stderr
    not_carried = "is not carried by the control plane, which takes it as"
    assert f"dataplane.workers_max: {not_carried} unset" in result.stderr
    # a zero is an absent field there, and that is the default
    assert f"forward.timeout_ms: {not_carried} 2000" in result.stderr
    assert f"events.sinks[s].connect_retry.jitter: {not_carried} true" in result.stderr
    assert len(result.stderr.splitlines()) == 4


@pytest.mark.parametrize("prefix", ["", "metrics:\n  "])
def test_metrics_patch_files(ctl: Ctl, patch: str, prefix: str) -> None:
    write(ctl, f"{prefix}otel: {{endpoint: 'http://h', headers: {{a: 1}}}}")
    result = ctl("metrics", "patch", "--file", patch, "--base", "minimal")
    assert (result.exit_code, result.stdout) == (0, "ok generation=2\n")
    assert ctl.server.request == metrics.PatchMetricsRequest(
        metrics=config.MetricsConfig(
            base="minimal", otel=config.OtelMetricsConfig(endpoint="http://h", headers={"a": "1"})
        )
    )


def test_flags_win_over_the_metrics_file(ctl: Ctl, patch: str) -> None:
    write(ctl, "enabled: true\nbase: standard\n")
    assert ctl("metrics", "patch", "--file", patch, "--enabled", "false").exit_code == 0
    assert ctl.server.request.metrics == config.MetricsConfig(enabled=False, base="standard")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("metrics: 5", "expected a mapping"),
        ("{}", "nothing to patch"),
        ("metrics: {}", "nothing to patch"),
        ("enabled: yes", "enabled"),
        ("[", "patch.yaml:"),
    ],
)
def test_metrics_patches_that_are_none(ctl: Ctl, patch: str, text: str, message: str) -> None:
    write(ctl, text)
    failed(ctl("metrics", "patch", "--file", patch), message)
    assert ctl.server.requests == []
