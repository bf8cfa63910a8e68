"""Every call of the control plane against the running service, through stubs generated afresh."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import descriptor_pb2
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)

from conduit.control.server import _FILES, SERVICE_NAMES
from tests.control.conftest import Controlled
from tests.control.stubs import Api, fresh_pool

Control = Callable[..., Controlled]


def refused(call: Callable[[], Any]) -> tuple[str, str]:
    """The status name and message of a call that fails."""
    with pytest.raises(grpc.RpcError) as caught:
        call()
    return caught.value.code().name, caught.value.details()


def test_committed_code_is_that_of_the_definitions(tmp_path: Path) -> None:
    _, described = fresh_pool(str(tmp_path))
    fresh = {file.name: file for file in described.file}
    from conduit.v1 import config_pb2

    for module in (*_FILES, config_pb2):
        committed = descriptor_pb2.FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb)
        wanted = fresh[committed.name]
        for message in wanted.message_type:
            _drop_json_names(message)
        assert committed == wanted, committed.name


def _drop_json_names(message: Any) -> None:
    # protoc writes them into a descriptor set, and not into code
    for field in message.field:
        field.ClearField("json_name")
    for nested in message.nested_type:
        _drop_json_names(nested)


def test_every_rpc_is_there(control: Control) -> None:
    api = control().api()
    seen: list[str] = []
    missing: list[str] = []
    for service, method in api.methods():
        try:
            api(f"{service}/{method}")
        except grpc.RpcError as error:
            # an empty request is not enough for many
            missing += [method] if error.code() is grpc.StatusCode.UNIMPLEMENTED else []
        seen.append(service)
    assert not missing
    assert len(seen) == 36
    assert len(set(seen)) == 9


def test_config_validate_export(control: Control) -> None:
    api = control({"api_keys": []}, rhai={"max_operations": 777}).api()
    effective = api("ConduitControl/GetConfig").effective
    assert effective.schema_version == 1
    assert effective.rhai.max_operations == 777
    assert effective.pools[0].name == "default"
    assert api("ConduitControl/Health").status == "serving"
    assert "max_operations: 777" in api("ConduitControl/ExportConfig").body
    assert api("ConduitControl/ExportConfig", format="yaml").body
    valid = api("ConduitControl/ValidateConfig", config=effective)
    assert (valid.ok, list(valid.errors)) == (True, [])
    del effective.pools[0].backends[:]
    broken = api("ConduitControl/ValidateConfig", config=effective)
    assert not broken.ok
    assert "no backends" in broken.errors[0]


def test_ch60_example_9_only_yaml(control: Control) -> None:
    api = control().api()
    call = lambda: api("ConduitControl/ExportConfig", format="json")  # noqa: E731
    assert refused(call) == ("INVALID_ARGUMENT", 'only format "yaml" is supported')


def test_ch60_examples_10_11_12_apply(control: Control) -> None:
    made = control()
    api = made.api()
    for mode in (0, 1, 2, 77):
        call = lambda mode=mode: api("ConduitControl/ApplyConfig", mode=mode)  # noqa: E731
        assert refused(call) == ("INVALID_ARGUMENT", "missing overlay")
    assert refused(lambda: api("ConduitControl/ValidateConfig"))[1] == "missing config"
    patch = api.message("Config", schema_version=1)
    patch.rhai.max_operations = 5
    assert api("ConduitControl/ApplyConfig", overlay=patch, mode=1).generation == 2
    assert api("ConduitControl/GetConfig").effective.rhai.max_operations == 5
    # clear ignores what comes with it
    assert api("ConduitControl/ApplyConfig", overlay=patch, mode=3).generation == 3
    assert api("ConduitControl/GetConfig").effective.rhai.max_operations == 10000
    rules = api.message("Config", schema_version=1)
    rules.rules.rules.add(name="r", hook="request")
    result = api("ConduitControl/ApplyConfig", overlay=rules, mode=1)
    assert (result.ok, result.generation) == (False, 0)
    assert "rules" in result.errors[0]
    line = made.conduit.wait_for_line("outcome=rejected")
    assert "rpc=ApplyConfig" in line
    assert "error_count=1" in line
    outcomes = [text for text in made.conduit.lines if "control rpc outcome" in text]
    assert len(outcomes) == 3


def test_reload(control: Control) -> None:
    made = control()
    api = made.api()
    made.config["rhai"] = {"max_operations": 42}
    made.conduit.write(made.config)
    assert api("ConduitControl/ReloadFromFile").generation == 2
    assert api("ConduitRhai/GetRhai").rhai.max_operations == 42
    made.conduit.wait_for_line("config applied")
    made.conduit.path.write_text("pools: [")
    broken = api("ConduitControl/ReloadFromFile")
    assert (broken.ok, broken.generation) == (False, 0)
    made.conduit.path.unlink()
    assert "reading config" in api("ConduitControl/ReloadFromFile").errors[0]
    assert made.conduit.query("www.example.test.").answer


def test_ch60_example_15_traces(control: Control) -> None:
    made = control(tracing={"enabled": True})
    made.conduit.query("www.example.test.")
    api = made.api()
    found = api("ConduitControl/GetTrace", txn_id="1")
    assert found.found
    assert [event.phase for event in found.events][-1] == "send"
    assert found.events[-1].pool == "default"
    for unknown in ("99999", "01", " 1", "x", ""):
        assert not api("ConduitControl/GetTrace", txn_id=unknown).found


def test_check_acl(control: Control, tmp_path: Path) -> None:
    (tmp_path / "corp").write_text("10.0.0.0/8\n")
    made = control(
        data_sources=[{"name": "corp", "type": "cidr", "path": str(tmp_path / "corp")}],
        acls={"default_action": "deny", "rules": [{"match": "corp", "action": "tag", "tag": "c"}]},
    )
    api = made.api()
    results = api("ConduitControl/CheckAcl", ip="10.1.2.3").results
    assert len(results) == 2
    one = results[0]
    assert (one.decision, one.tag, one.matched, one.action) == ("tag", "c", "corp", "tag")
    (other,) = api("ConduitControl/CheckAcl", ip="::1", listener=" udp:127.0.0.1:0 ").results
    assert (other.decision, other.matched, other.action) == ("drop", "default", "deny")
    call = lambda: api("ConduitControl/CheckAcl", ip="x")  # noqa: E731
    assert refused(call) == ("INVALID_ARGUMENT", "invalid ip address 'x'")
    call = lambda: api("ConduitControl/CheckAcl", ip="::1", listener="q")  # noqa: E731
    assert refused(call) == ("INVALID_ARGUMENT", "unknown listener 'q'")


def test_pools_and_backends(control: Control) -> None:
    made = control()
    api = made.api()
    (pool,) = api("ConduitPools/ListPools").pools
    assert (pool.name, pool.backend_count) == ("default", 1)
    found = api("ConduitPools/GetPool", name="default").pool
    assert found.backends[0].weight == 100
    assert refused(lambda: api("ConduitPools/GetPool", name="x")) == (
        "NOT_FOUND",
        "unknown pool 'x'",
    )
    assert refused(lambda: api("ConduitPools/GetPool"))[1] == "pool name is required"
    backend = api.message("Backend", address="127.0.0.1:9", name="b2", weight=3)
    assert api("ConduitPools/AddBackend", pool="default", backend=backend).ok
    assert api("ConduitPools/SetBackendWeight", pool="default", backend="b2", weight=9).ok
    assert api("ConduitPools/GetPool", name="default").pool.backends[1].weight == 9
    assert api("ConduitPools/RemoveBackend", pool="default", backend="127.0.0.1:9").ok
    unknown = api("ConduitPools/SetBackendWeight", pool="default", backend="zz", weight=1)
    assert list(unknown.errors) == ["pool 'default' has no backend named or addressed 'zz'"]
    call = lambda: api("ConduitPools/SetBackendWeight", pool="default")  # noqa: E731
    assert refused(call) == ("INVALID_ARGUMENT", "backend is required")


def test_sections(control: Control, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("k,v\n")
    source = {"name": "t", "type": "csv", "path": str(tmp_path / "t.csv")}
    made = control(
        data_sources=[source],
        caches=[{"name": "global", "type": "memory"}],
        events={"sinks": [{"type": "dnstap", "name": "tap", "destinations": ["unix:x"]}]},
        metrics={"enabled": True},
    )
    api = made.api()
    assert api("ConduitOrchestrator/SetOrchestratorLimits", max_attempts=7).ok
    assert api("ConduitOrchestrator/GetOrchestrator").orchestrator.max_attempts == 7
    assert api("ConduitRhai/SetRhaiLimits", max_call_depth=9).ok
    assert api("ConduitRhai/GetRhai").rhai.max_call_depth == 9
    assert [s.name for s in api("ConduitDataSources/ListDataSources").sources] == ["t"]
    assert api("ConduitDataSources/GetDataSource", name="t").source.type == "csv"
    limits = api.message("DataSourceLimits", max_tables=3)
    assert api("ConduitDataSources/SetDataSourceLimits", limits=limits).ok
    assert api("ConduitDataSources/GetDataSourceLimits").limits.max_tables == 3
    assert api("ConduitEvents/GetEvents").events.queue_depth == 4096
    filters = api.message("EventSinkFilters", sample_percent=10)
    assert api("ConduitEvents/SetEventSinkFilters", name="tap", filters=filters).ok
    assert api("ConduitEvents/SetEventSinkEmit", name="tap", emit=["query"]).ok
    sink = api("ConduitEvents/GetEventSink", name="tap").sink
    assert (list(sink.emit), sink.filters.sample_percent) == (["query"], 10.0)
    patch = api.message("MetricsConfig", base="minimal")
    patch.categories.include_set = True
    assert api("ConduitMetrics/PatchMetrics", metrics=patch).ok
    metrics = api("ConduitMetrics/GetMetrics").metrics
    assert metrics.base == "minimal"
    assert metrics.categories.include_set
    (cache,) = api("ConduitCaches/ListCaches").caches
    assert (cache.name, cache.type, cache.HasField("max_entries")) == ("global", "memory", False)
    assert api("ConduitCaches/SetCacheMaxEntries", name="global", max_entries=5).ok
    negative = api.message("CacheNegativeConfig", servfail_ttl_secs=0)
    assert api("ConduitCaches/SetCachePolicyHot", name="global", negative_cache=negative).ok
    found = api("ConduitCaches/GetCache", name="global").cache
    assert (found.max_entries, found.negative_cache.servfail_ttl_secs) == (5, 0)
    # chapter 40, examples 39 and 40
    refused_change = api("ConduitCaches/SetCacheLmdbHot", name="global", when_full="refuse")
    assert "type is 'memory'" in refused_change.errors[0]
    assert refused(lambda: api("ConduitCaches/GetCache", name="nope"))[0] == "NOT_FOUND"
    unknown = api("ConduitCaches/SetCacheMaxEntries", name="nope", max_entries=1)
    assert list(unknown.errors) == ["unknown cache 'nope'"]
    for path in (
        "ConduitOrchestrator/SetOrchestratorLimits",
        "ConduitRhai/SetRhaiLimits",
        "ConduitMetrics/PatchMetrics",
        "ConduitCaches/SetCacheLmdbHot",
        "ConduitDataSources/UpsertDataSource",
        "ConduitEvents/SetEventSinkEmit",
    ):
        assert refused(lambda path=path: api(path))[0] == "INVALID_ARGUMENT"


def test_ch60_examples_39_40_and_health_controls(control: Control) -> None:
    health = {"enabled": True, "interval_ms": 200, "probe_qname": "probe.test."}
    without = control().api()
    scope = {"level": 3}
    call = lambda api, **fields: refused(  # noqa: E731
        lambda: api("BackendHealth/SetHealthControl", **fields)
    )
    assert call(without, action=1, scope=scope) == (
        "FAILED_PRECONDITION",
        "health checking not configured",
    )
    assert call(without)[1] == "action required"
    made = control()
    made.config["pools"][0]["health"] = health
    made.config["pools"][0]["backends"][0]["name"] = "a"
    made.conduit.write(made.config)
    api = made.api()
    assert api("ConduitControl/ReloadFromFile").ok
    assert call(api, action=9)[1] == "invalid action"
    assert call(api, action=1)[1] == "scope required"
    assert call(api, action=1, scope={})[1] == "scope level required"
    assert call(api, action=1, scope={"level": 2})[1] == "pool scope requires pool"
    assert call(api, action=1, scope={"level": 1, "pool": "default"})[1] == (
        "backend scope requires backend"
    )
    assert call(api, action=1, scope={"level": 2, "pool": "q"})[1] == 'unknown pool "q"'
    one = {"level": 1, "pool": "default", "backend": "a"}
    (result,) = api("BackendHealth/SetHealthControl", action=3, scope=one).results
    address = made.config["pools"][0]["backends"][0]["address"]
    assert (result.applied, result.scope_state, result.backend) == (3, 2, address)
    (entry,) = api("BackendHealth/GetBackendHealth").entries
    assert (entry.backend, entry.applied, entry.eligible) == (address, 3, False)
    call_filter = lambda **f: api("BackendHealth/GetBackendHealth", filter=f)  # noqa: E731
    assert refused(lambda: call_filter(backend="a")) == (
        "INVALID_ARGUMENT",
        "pool required when filtering by backend name",
    )
    assert len(call_filter(pool="default", backend="a").entries) == 1
    assert len(call_filter(backend=address).entries) == 1
    assert len(call_filter(pool="other").entries) == 0
    assert refused(lambda: call_filter(pool="default", backend="zz"))[0] == "INVALID_ARGUMENT"
    (back,) = api("BackendHealth/SetHealthControl", action=4, scope=one).results
    assert back.scope_state == 3


def test_ch60_example_8_reflection_needs_no_key(control: Control) -> None:
    made = control({"reflection_enabled": True, "api_keys": ["k1"]})
    channel = made.api().channel
    names = set(ProtoReflectionDescriptorDatabase(channel).get_services())
    assert set(SERVICE_NAMES) <= names
    assert "grpc.reflection.v1alpha.ServerReflection" in names
    stub = reflection_pb2_grpc.ServerReflectionStub(channel)
    request = reflection_pb2.ServerReflectionRequest(file_by_filename="conduit/v1/pools.proto")
    (reply,) = stub.ServerReflectionInfo(iter([request]), timeout=5)
    assert reply.file_descriptor_response.file_descriptor_proto


def test_without_reflection_nobody_lists(control: Control) -> None:
    channel = control().api().channel
    with pytest.raises(grpc.RpcError) as caught:
        ProtoReflectionDescriptorDatabase(channel).get_services()
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


def test_standard_health_service(control: Control) -> None:
    from grpc_health.v1 import health_pb2, health_pb2_grpc

    stub = health_pb2_grpc.HealthStub(control().api().channel)
    reply = stub.Check(health_pb2.HealthCheckRequest(service="conduit.v1.ConduitPools"), timeout=5)
    assert reply.status == health_pb2.HealthCheckResponse.SERVING


def test_unknown_methods(control: Control) -> None:
    made = control({"api_keys": ["k"]})
    path = "/conduit.v1.ConduitPools/NoSuchThing"
    assert refused(lambda: made.api().raw(path))[0] == "UNAUTHENTICATED"
    api = made.api(("x-api-key", "k"))
    assert refused(lambda: api.raw(path))[0] == "UNIMPLEMENTED"


def test_a_patch_of_every_kind_survives_the_wire() -> None:
    from conduit.control.messages import fill, tree_of
    from conduit.v1 import config_pb2

    tree = {
        "schema_version": 1,
        "pools": [{"name": "p", "backends": [{"name": "b", "remove": True}]}],
        "metrics": {
            "enabled": False,
            "categories": {"include": []},
            "granularity": {"default": "coarse", "timing": {"dimensions": []}},
            "collection": {"timing": {"emit": False}},
            "otel": {"headers": {"a": "b"}},
        },
        "caches": [{"name": "c", "type": "lmdb", "lmdb": {"path": "x", "map_size": 9}}],
        "lookup": {"profiles": {"d": {"providers": [{"type": "forward"}]}}},
        "forward": {},
    }
    message = config_pb2.Config()
    assert list(fill(message, tree)) == []
    assert tree_of(message) == tree
    assert list(fill(config_pb2.Config(), {"dataplane": {"workers_max": 3}})) == [
        "dataplane.workers_max"
    ]


def test_an_api_object_needs_its_folder(tmp_path: Path) -> None:
    # two folders, two pools: the stubs of a test are its own
    with grpc.insecure_channel("127.0.0.1:1") as channel:
        assert Api(tmp_path, channel).pool is fresh_pool(str(tmp_path))[0]
