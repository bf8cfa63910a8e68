"""Every command of `conduitctl`: what it sends, what it prints, how it fails (chapter 60, 9.5)."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from google.protobuf.message import Message

from conduit.v1 import caches_pb2 as caches
from conduit.v1 import config_pb2 as config
from conduit.v1 import control_pb2 as control
from conduit.v1 import data_sources_pb2 as sources
from conduit.v1 import events_pb2 as events
from conduit.v1 import health_pb2 as health
from conduit.v1 import metrics_control_pb2 as metrics
from conduit.v1 import orchestrator_pb2 as orchestrator
from conduit.v1 import pools_pb2 as pools
from conduit.v1 import rhai_pb2 as rhai
from tests.cli.test_conduitctl_server import Ctl, ctl, failed, server

__all__ = ["ctl", "server"]

LIMITS = config.DataSourceLimits(
    max_file_bytes=1,
    max_entries=2,
    max_key_bytes=3,
    max_value_bytes=4,
    max_tables=5,
    max_total_bytes=6,
)
POOL = config.Pool(
    name="P",
    backends=[
        config.Backend(address="10.0.0.1:53", name="a", weight=40),
        config.Backend(address="[::1]:53"),
    ],
)
SINK = config.EventSink(
    type="dnstap",
    export_id="e",
    emit=["query", 'a"b'],
    filters=config.EventSinkFilters(sample_percent=10),
)

READS: list[tuple[list[str], str, Message, Message, str]] = [
    (
        ["pool", "list"],
        "ListPools",
        pools.ListPoolsResponse(pools=[pools.PoolSummary(name="P", backend_count=2)]),
        pools.ListPoolsRequest(),
        "P backends=2\n",
    ),
    (
        ["pool", "get", "P"],
        "GetPool",
        pools.GetPoolResponse(pool=POOL),
        pools.GetPoolRequest(name="P"),
        "pool P\n"
        "  backend name=a address=10.0.0.1:53 weight=40\n"
        "  backend name=- address=[::1]:53 weight=-\n",
    ),
    (
        ["orchestrator", "get"],
        "GetOrchestrator",
        orchestrator.GetOrchestratorResponse(
            orchestrator=config.OrchestratorConfig(
                max_attempts=3, max_txn_duration_ms=5000, txn_table_capacity=1024
            )
        ),
        orchestrator.GetOrchestratorRequest(),
        "max_attempts=3 max_txn_duration_ms=5000 txn_table_capacity=1024\n",
    ),
    (
        ["orchestrator", "get"],
        "GetOrchestrator",
        orchestrator.GetOrchestratorResponse(),
        orchestrator.GetOrchestratorRequest(),
        "(no orchestrator config)\n",
    ),
    (
        ["data-source", "list"],
        "ListDataSources",
        sources.ListDataSourcesResponse(
            sources=[sources.DataSourceSummary(name="t", type="csv", path="t.csv")]
        ),
        sources.ListDataSourcesRequest(),
        "t type=csv path=t.csv\n",
    ),
    (
        ["data-source", "get", "t"],
        "GetDataSource",
        sources.GetDataSourceResponse(
            source=config.DataSource(name="t", type="csv", path="t.csv", key_column="k")
        ),
        sources.GetDataSourceRequest(name="t"),
        "name=t\ntype=csv\npath=t.csv\nkey_column=k\nvalue_column=\n",
    ),
    (
        ["data-source-limits", "get"],
        "GetDataSourceLimits",
        sources.GetDataSourceLimitsResponse(limits=LIMITS),
        sources.GetDataSourceLimitsRequest(),
        "max_file_bytes=1 max_entries=2 max_key_bytes=3 max_value_bytes=4 max_tables=5 "
        "max_total_bytes=6\n",
    ),
    (
        ["events", "get"],
        "GetEvents",
        events.GetEventsResponse(
            events=config.EventsConfig(queue_depth=4096, drop_policy="drop_oldest", sinks=[SINK])
        ),
        events.GetEventsRequest(),
        "queue_depth=4096 drop_policy=drop_oldest sinks=1\n  sink e type=dnstap\n",
    ),
    (
        ["events", "get-sink", "--name", "e"],
        "GetEventSink",
        events.GetEventSinkResponse(sink=SINK),
        events.GetEventSinkRequest(name="e"),
        'type=dnstap\nexport_id=e\nemit=["query", "a\\"b"]\nfilters.sample_percent=Some(10.0)\n',
    ),
    (
        ["events", "get-sink", "--name", "e"],
        "GetEventSink",
        events.GetEventSinkResponse(
            sink=config.EventSink(type="dnstap", filters=config.EventSinkFilters(pool="p"))
        ),
        events.GetEventSinkRequest(name="e"),
        "type=dnstap\nexport_id=\nemit=[]\nfilters.sample_percent=None\n",
    ),
    (
        ["rhai", "get"],
        "GetRhai",
        rhai.GetRhaiResponse(
            rhai=config.RhaiConfig(max_operations=10000, max_call_depth=32, hook_timeout_ms=50)
        ),
        rhai.GetRhaiRequest(),
        "max_operations=10000 max_call_depth=32 hook_timeout_ms=50\n",
    ),
    (
        ["metrics", "get"],
        "GetMetrics",
        metrics.GetMetricsResponse(
            metrics=config.MetricsConfig(
                enabled=True, categories=config.MetricsCategories(include_set=True)
            )
        ),
        metrics.GetMetricsRequest(),
        "enabled: true\ncategories:\n  include: []\n",
    ),
    (
        ["cache", "list"],
        "ListCaches",
        caches.ListCachesResponse(
            caches=[
                caches.CacheSummary(name="c", type="memory", max_entries=5),
                caches.CacheSummary(name="d", type="lmdb"),
            ]
        ),
        caches.ListCachesRequest(),
        "c type=memory max_entries=5\nd type=lmdb max_entries=-\n",
    ),
    (
        ["cache", "get", "c"],
        "GetCache",
        caches.GetCacheResponse(cache=config.CacheInstance(name="c", type="memory", max_entries=5)),
        caches.GetCacheRequest(name="c"),
        "name=c\ntype=memory\nmax_entries=Some(5)\n",
    ),
    (
        ["cache", "get", "c"],
        "GetCache",
        caches.GetCacheResponse(cache=config.CacheInstance(name="c", type="memory")),
        caches.GetCacheRequest(name="c"),
        "name=c\ntype=memory\nmax_entries=None\n",
    ),
    (
        ["trace", "17"],
        "GetTrace",
        control.GetTraceResponse(
            found=True,
            events=[
                control.TraceEvent(phase="route", elapsed_us=12, pool='a"b', message="m"),
                control.TraceEvent(phase="send", elapsed_us=34, backend="x", cache="c"),
            ],
        ),
        control.GetTraceRequest(txn_id="17"),
        'route +12us pool=Some("a\\"b") backend=None cache=None m\n'
        'send +34us pool=None backend=Some("x") cache=Some("c") \n',
    ),
    (
        ["health", "show", "--pool", "P", "--backend", "a"],
        "GetBackendHealth",
        health.GetBackendHealthResponse(
            entries=[
                health.BackendHealthEntry(
                    pool="P",
                    backend="10.0.0.1:53",
                    observed=2,
                    applied=3,
                    scope_state=2,
                    eligible=False,
                    latency_ewma_ms=1.26,
                    last_transition_unix_ms=1700000000000,
                ),
                health.BackendHealthEntry(
                    pool="P",
                    backend="10.0.0.2:53",
                    observed=1,
                    applied=0,
                    scope_state=3,
                    eligible=True,
                ),
            ]
        ),
        health.GetBackendHealthRequest(filter=health.BackendHealthFilter(pool="P", backend="a")),
        "P 10.0.0.1:53 observed=up applied=down scope=frozen eligible=false ewma_ms=1.3 "
        "last_transition_ms=1700000000000\n"
        "P 10.0.0.2:53 observed=unknown applied=? scope=automatic eligible=true ewma_ms=- "
        "last_transition_ms=-\n",
    ),
    (
        ["health", "show"],
        "GetBackendHealth",
        health.GetBackendHealthResponse(),
        health.GetBackendHealthRequest(),
        "",
    ),
]


@pytest.mark.parametrize(
    ("args", "method", "response", "request_", "stdout"),
    READS,
    ids=[f"{' '.join(r[0])}-{i}" for i, r in enumerate(READS)],
)
def test_reads(
    ctl: Ctl, args: list[str], method: str, response: Message, request_: Message, stdout: str
) -> None:
    ctl.server.answers[method] = response
    result = ctl(*args)
    assert (result.exit_code, result.stdout, result.stderr) == (0, stdout, "")
    assert ctl.server.requests == [(method, request_)]
    # the same as data
    as_json, as_yaml = ctl(*args, "--output", "json"), ctl("--output", "yaml", *args)
    assert (as_json.exit_code, as_yaml.exit_code) == (0, 0)
    assert json.loads(as_json.stdout) == yaml.safe_load(as_yaml.stdout)


CHANGES: list[tuple[list[str], str, Message, str]] = [
    (["reload"], "ReloadFromFile", control.ReloadFromFileRequest(), "reload"),
    (
        ["apply", "--clear"],
        "ApplyConfig",
        control.ApplyConfigRequest(mode=control.OVERLAY_APPLY_MODE_CLEAR),
        "apply",
    ),
    (
        ["backend", "set-weight", "--pool", "P", "--backend", "a", "--weight", "40"],
        "SetBackendWeight",
        pools.SetBackendWeightRequest(pool="P", backend="a", weight=40),
        "set-weight",
    ),
    (
        ["backend", "remove", "--pool=P", "--backend=a"],
        "RemoveBackend",
        pools.RemoveBackendRequest(pool="P", backend="a"),
        "remove",
    ),
    (
        ["orchestrator", "set-limits", "--max-attempts", "0"],
        "SetOrchestratorLimits",
        orchestrator.SetOrchestratorLimitsRequest(max_attempts=0),
        "set-limits",
    ),
    (
        ["orchestrator", "set-limits", "--max-txn-duration-ms", "9"],
        "SetOrchestratorLimits",
        orchestrator.SetOrchestratorLimitsRequest(max_txn_duration_ms=9),
        "set-limits",
    ),
    (
        ["data-source", "upsert", "--name", "t", "--type", "csv", "--path", "p"],
        "UpsertDataSource",
        sources.UpsertDataSourceRequest(source=config.DataSource(name="t", type="csv", path="p")),
        "upsert",
    ),
    (
        [
            *["data-source", "upsert", "--name", "t", "--type", "csv", "--path", "p"],
            *["--key-column", "k", "--value-column", "v"],
        ],
        "UpsertDataSource",
        sources.UpsertDataSourceRequest(
            source=config.DataSource(
                name="t", type="csv", path="p", key_column="k", value_column="v"
            )
        ),
        "upsert",
    ),
    (
        ["data-source", "remove", "t"],
        "RemoveDataSource",
        sources.RemoveDataSourceRequest(name="t"),
        "remove",
    ),
    (
        ["data-source-limits", "set", "--max-tables", "7", "--max-file-bytes", str(2**40)],
        "SetDataSourceLimits",
        sources.SetDataSourceLimitsRequest(
            limits=config.DataSourceLimits(max_tables=7, max_file_bytes=2**40)
        ),
        "set-limits",
    ),
    (
        ["events", "set-filters", "--name", "e", "--sample-percent", "2.5", "--pool", "P"],
        "SetEventSinkFilters",
        events.SetEventSinkFiltersRequest(
            name="e", filters=config.EventSinkFilters(sample_percent=2.5, pool="P")
        ),
        "set-filters",
    ),
    (
        ["events", "set-filters", "--name", "e"],
        "SetEventSinkFilters",
        events.SetEventSinkFiltersRequest(name="e", filters=config.EventSinkFilters()),
        "set-filters",
    ),
    (
        ["events", "set-emit", "--name", "e", "--emit", "query,response", "--emit", "retry"],
        "SetEventSinkEmit",
        events.SetEventSinkEmitRequest(name="e", emit=["query", "response", "retry"]),
        "set-emit",
    ),
    (
        ["events", "set-emit", "--name", "e"],
        "SetEventSinkEmit",
        events.SetEventSinkEmitRequest(name="e"),
        "set-emit",
    ),
    (
        ["rhai", "set-limits", "--max-operations", str(2**40), "--hook-timeout-ms", "0"],
        "SetRhaiLimits",
        rhai.SetRhaiLimitsRequest(max_operations=2**40, hook_timeout_ms=0),
        "set-limits",
    ),
    (
        ["metrics", "patch", "--enabled", "false", "--base", "minimal"],
        "PatchMetrics",
        metrics.PatchMetricsRequest(metrics=config.MetricsConfig(enabled=False, base="minimal")),
        "patch",
    ),
    (
        ["cache", "set-max-entries", "--name", "c", "--max-entries", "9"],
        "SetCacheMaxEntries",
        caches.SetCacheMaxEntriesRequest(name="c", max_entries=9),
        "set-max-entries",
    ),
    (
        [
            *["cache", "set-lmdb-hot", "--name", "c", "--when-full", "sample"],
            *["--sample-size", "8", "--sync", "periodic", "--sync-interval", "250ms"],
            *["--map-size-bytes", "1000"],
        ],
        "SetCacheLmdbHot",
        caches.SetCacheLmdbHotRequest(
            name="c",
            when_full="sample",
            sample_size=8,
            sync="periodic",
            sync_interval="250ms",
            map_size_bytes=1000,
        ),
        "set-lmdb-hot",
    ),
    (
        ["cache", "set-policy-hot", "--name", "c", "--rotate-rrset-on-serve", "false"],
        "SetCachePolicyHot",
        caches.SetCachePolicyHotRequest(name="c", rotate_rrset_on_serve=False),
        "set-policy-hot",
    ),
]


@pytest.mark.parametrize(
    ("args", "method", "request_", "what"), CHANGES, ids=[" ".join(c[0]) for c in CHANGES]
)
def test_changes(ctl: Ctl, args: list[str], method: str, request_: Message, what: str) -> None:
    kind: Any = (
        control.ReloadFromFileResponse
        if method == "ReloadFromFile"
        else control.ApplyConfigResponse
    )
    ctl.server.answers[method] = kind(ok=True, generation=7)
    result = ctl(*args)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "ok generation=7\n", "")
    assert ctl.server.requests == [(method, request_)]
    as_json = ctl(*args, "--output", "json")
    assert json.loads(as_json.stdout) == {"ok": True, "generation": 7, "notes": []}
    ctl.server.answers[method] = kind(ok=False, errors=["one", "two"])
    failed(ctl(*args), f"Error: {what} failed: one; two\n")


def test_notes_go_to_stderr(ctl: Ctl) -> None:
    ctl.server.answers["ReloadFromFile"] = control.ReloadFromFileResponse(
        ok=True,
        generation=2,
        notes=[control.ConfigApplyStatusNote(kind="pending", message="restart")],
    )
    result = ctl("reload")
    assert (result.stdout, result.stderr) == ("ok generation=2\n", "note: pending: restart\n")


def test_ch60_example_15_trace_not_found(ctl: Ctl) -> None:
    ctl.server.answers["GetTrace"] = control.GetTraceResponse()
    failed(ctl("trace", "99999"), "Error: trace not found\n")


# health controls


@pytest.mark.parametrize(
    ("args", "action", "scope"),
    [
        (["freeze", "--global"], 1, health.HealthScope(level=3)),
        (["resume", "--pool", "P"], 4, health.HealthScope(level=2, pool="P")),
        (
            ["set", "DOWN", "--pool", "P", "--backend", "a"],
            3,
            health.HealthScope(level=1, pool="P", backend="a"),
        ),
        (["set", "Up", "--global"], 2, health.HealthScope(level=3)),
    ],
)
def test_ch60_example_19_health_controls(
    ctl: Ctl, args: list[str], action: Any, scope: health.HealthScope
) -> None:
    ctl.server.answers["SetHealthControl"] = health.SetHealthControlResponse(
        results=[
            health.SetHealthControlResult(
                pool="P", backend="10.0.0.1:53", applied=3, scope_state=2, scope=scope
            )
        ]
    )
    result = ctl("health", *args)
    assert (result.exit_code, result.stdout) == (0, "P 10.0.0.1:53 applied=down scope=frozen\n")
    assert ctl.server.request == health.SetHealthControlRequest(scope=scope, action=action)


def test_health_scopes(ctl: Ctl) -> None:
    for verb in (["freeze"], ["resume"], ["set", "up"]):
        failed(ctl("health", *verb), "scope required: ")
        failed(ctl("health", *verb, "--backend", "a"), "scope required: ")
    failed(ctl("health", "set", "sideways", "--global"), 'state must be up or down, got "sideways"')
    assert ctl.server.requests == []


@pytest.mark.parametrize("verb", [["freeze"], ["resume"], ["set", "up"]])
@pytest.mark.parametrize("other", ["--pool", "--backend"])
def test_ch60_example_18_global_excludes_the_rest(ctl: Ctl, verb: list[str], other: str) -> None:
    result = ctl("health", *verb, "--global", other, "P")
    assert result.exit_code == 2
    assert "Usage:" in result.stderr


# export, acl check


def test_export_adds_nothing(ctl: Ctl) -> None:
    body = "schema_version: 1\nname: ü"
    ctl.server.answers["ExportConfig"] = control.ExportConfigResponse(body=body)
    assert ctl("export").stdout == body
    assert ctl("export", "--output", "-").stdout == body
    path = ctl.folder / "out.yaml"
    written = ctl("export", "--output", str(path))
    assert (written.exit_code, written.stdout) == (0, "")
    assert path.read_text(encoding="utf-8") == body
    assert path.stat().st_mode & 0o077 == 0
    failed(ctl("export", "--output", str(ctl.folder / "no" / "x")), "No such file or directory")


def test_acl_check_live(ctl: Ctl) -> None:
    ctl.server.answers["CheckAcl"] = control.CheckAclResponse(
        ip="10.1.2.3",
        results=[
            control.AclCheckResult(
                listener="l", decision="tag", tag="c", matched="corp", action="tag"
            ),
            control.AclCheckResult(
                listener="m", decision="admit", matched="default", action="allow"
            ),
        ],
    )
    result = ctl("acl", "check", "10.1.2.3")
    assert result.exit_code == 0
    assert result.stdout == (
        '{\n  "ip": "10.1.2.3",\n  "source": "live",\n  "results": [\n    {\n'
        '      "listener": "l",\n      "decision": "tag",\n      "tag": "c",\n'
        '      "matched": "corp",\n      "action": "tag"\n    },\n    {\n'
        '      "listener": "m",\n      "decision": "admit",\n      "matched": "default",\n'
        '      "action": "allow"\n    }\n  ]\n}\n'
    )
    assert not ctl.server.request.HasField("listener")
    ctl("acl", "check", "10.1.2.3", "--listener", "m")
    assert ctl.server.requests[-1][1] == control.CheckAclRequest(ip="10.1.2.3", listener="m")
    as_yaml = ctl("acl", "check", "10.1.2.3", "--output", "yaml")
    assert yaml.safe_load(as_yaml.stdout) == json.loads(result.stdout)


def test_acl_check_tells_a_bad_client_file_before_a_bad_address(ctl: Ctl) -> None:
    failed(ctl("acl", "check", "nonsense"), "Error: invalid ip address 'nonsense'\n")
    (ctl.folder / "bad.yaml").write_text("[")
    bad = str(ctl.folder / "bad.yaml")
    failed(ctl("acl", "check", "nonsense", "--config", bad), "client config")
    assert ctl.server.requests == []
