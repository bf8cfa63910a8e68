"""Services of one section each: reads of the effective configuration, typed changes.

Chapter 60 section 8, chapter 40 section 12.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias, TypeVar

import grpc
from google.protobuf.message import Message

from conduit.control import primitives
from conduit.control.config_tree import config_tree
from conduit.control.messages import fill, tree_of
from conduit.control.services.outcome import ChangingService, optional, refuse
from conduit.v1 import (
    caches_pb2,
    caches_pb2_grpc,
    config_pb2,
    control_pb2,
    data_sources_pb2,
    data_sources_pb2_grpc,
    events_pb2,
    events_pb2_grpc,
    metrics_control_pb2,
    metrics_control_pb2_grpc,
    orchestrator_pb2,
    orchestrator_pb2_grpc,
    pools_pb2,
    pools_pb2_grpc,
    rhai_pb2,
    rhai_pb2_grpc,
)

M = TypeVar("M", bound=Message)
Applied: TypeAlias = control_pb2.ApplyConfigResponse
Context: TypeAlias = grpc.ServicerContext

_INVALID: Final = grpc.StatusCode.INVALID_ARGUMENT
_NOT_FOUND: Final = grpc.StatusCode.NOT_FOUND


def _filled(message: M, model: Any) -> M:
    """Return `message` with what a configuration object holds."""
    if model is not None:
        # what the wire has no field for stays behind
        list(fill(message, config_tree(model)))
    return message


class PoolsService(ChangingService, pools_pb2_grpc.ConduitPoolsServicer):
    """The service `ConduitPools`."""

    def ListPools(self, request: Any, context: Context) -> pools_pb2.ListPoolsResponse:
        pools = self.configurator.effective().pools
        return pools_pb2.ListPoolsResponse(
            pools=[
                pools_pb2.PoolSummary(name=pool.name, backend_count=len(pool.backends))
                for pool in pools
            ]
        )

    def GetPool(
        self, request: pools_pb2.GetPoolRequest, context: Context
    ) -> pools_pb2.GetPoolResponse:
        if not request.name:
            refuse(context, _INVALID, "pool name is required")
        pools = self.configurator.effective().pools
        pool = next((p for p in pools if p.name == request.name), None)
        if pool is None:
            refuse(context, _NOT_FOUND, f"unknown pool '{request.name}'")
        message = _filled(config_pb2.Pool(), pool)
        for entry, backend in zip(message.backends, pool.backends, strict=True):
            entry.weight = backend.effective_weight
        return pools_pb2.GetPoolResponse(pool=message)

    def SetBackendWeight(
        self, request: pools_pb2.SetBackendWeightRequest, context: Context
    ) -> Applied:
        return self.change(
            context,
            "SetBackendWeight",
            lambda: primitives.set_backend_weight(request.pool, request.backend, request.weight),
        )

    def AddBackend(self, request: pools_pb2.AddBackendRequest, context: Context) -> Applied:
        backend = tree_of(request.backend) if request.HasField("backend") else None
        return self.change(
            context, "AddBackend", lambda: primitives.add_backend(request.pool, backend)
        )

    def RemoveBackend(self, request: pools_pb2.RemoveBackendRequest, context: Context) -> Applied:
        return self.change(
            context,
            "RemoveBackend",
            lambda: primitives.remove_backend(request.pool, request.backend),
        )


class OrchestratorService(ChangingService, orchestrator_pb2_grpc.ConduitOrchestratorServicer):
    """The service `ConduitOrchestrator`."""

    def GetOrchestrator(
        self, request: Any, context: Context
    ) -> orchestrator_pb2.GetOrchestratorResponse:
        block = self.configurator.effective().orchestrator
        return orchestrator_pb2.GetOrchestratorResponse(
            orchestrator=_filled(config_pb2.OrchestratorConfig(), block)
        )

    def SetOrchestratorLimits(
        self, request: orchestrator_pb2.SetOrchestratorLimitsRequest, context: Context
    ) -> Applied:
        return self.change(
            context,
            "SetOrchestratorLimits",
            lambda: primitives.set_orchestrator_limits(
                optional(request, "max_attempts"), optional(request, "max_txn_duration_ms")
            ),
        )


class DataSourcesService(ChangingService, data_sources_pb2_grpc.ConduitDataSourcesServicer):
    """The service `ConduitDataSources`."""

    def ListDataSources(
        self, request: Any, context: Context
    ) -> data_sources_pb2.ListDataSourcesResponse:
        return data_sources_pb2.ListDataSourcesResponse(
            sources=[
                data_sources_pb2.DataSourceSummary(name=s.name, type=s.type, path=s.path)
                for s in self.configurator.effective().data_sources
            ]
        )

    def GetDataSource(
        self, request: data_sources_pb2.GetDataSourceRequest, context: Context
    ) -> data_sources_pb2.GetDataSourceResponse:
        if not request.name:
            refuse(context, _INVALID, "data source name is required")
        sources = self.configurator.effective().data_sources
        source = next((s for s in sources if s.name == request.name), None)
        if source is None:
            refuse(context, _NOT_FOUND, f"unknown data source '{request.name}'")
        return data_sources_pb2.GetDataSourceResponse(
            source=_filled(config_pb2.DataSource(), source)
        )

    def UpsertDataSource(
        self, request: data_sources_pb2.UpsertDataSourceRequest, context: Context
    ) -> Applied:
        source = tree_of(request.source) if request.HasField("source") else None
        return self.change(
            context, "UpsertDataSource", lambda: primitives.upsert_data_source(source)
        )

    def RemoveDataSource(
        self, request: data_sources_pb2.RemoveDataSourceRequest, context: Context
    ) -> Applied:
        return self.change(
            context, "RemoveDataSource", lambda: primitives.remove_data_source(request.name)
        )

    def GetDataSourceLimits(
        self, request: Any, context: Context
    ) -> data_sources_pb2.GetDataSourceLimitsResponse:
        block = self.configurator.effective().data_source_limits
        return data_sources_pb2.GetDataSourceLimitsResponse(
            limits=_filled(config_pb2.DataSourceLimits(), block)
        )

    def SetDataSourceLimits(
        self, request: data_sources_pb2.SetDataSourceLimitsRequest, context: Context
    ) -> Applied:
        limits = tree_of(request.limits) if request.HasField("limits") else None
        return self.change(
            context, "SetDataSourceLimits", lambda: primitives.set_data_source_limits(limits)
        )


class EventsService(ChangingService, events_pb2_grpc.ConduitEventsServicer):
    """The service `ConduitEvents`."""

    def GetEvents(self, request: Any, context: Context) -> events_pb2.GetEventsResponse:
        block = self.configurator.effective().events
        return events_pb2.GetEventsResponse(events=_filled(config_pb2.EventsConfig(), block))

    def GetEventSink(
        self, request: events_pb2.GetEventSinkRequest, context: Context
    ) -> events_pb2.GetEventSinkResponse:
        if not request.name:
            refuse(context, _INVALID, "event sink name is required")
        sinks = self.configurator.effective().events.sinks
        if not sinks:
            refuse(context, _NOT_FOUND, "no events section in effective config")
        sink = next((s for s in sinks if s.canonical_name == request.name), None)
        if sink is None:
            refuse(context, _NOT_FOUND, f"unknown event sink '{request.name}'")
        return events_pb2.GetEventSinkResponse(sink=_filled(config_pb2.EventSink(), sink))

    def SetEventSinkFilters(
        self, request: events_pb2.SetEventSinkFiltersRequest, context: Context
    ) -> Applied:
        filters = tree_of(request.filters) if request.HasField("filters") else None
        return self.change(
            context,
            "SetEventSinkFilters",
            lambda: primitives.set_event_sink_filters(request.name, filters),
        )

    def SetEventSinkEmit(
        self, request: events_pb2.SetEventSinkEmitRequest, context: Context
    ) -> Applied:
        return self.change(
            context,
            "SetEventSinkEmit",
            lambda: primitives.set_event_sink_emit(
                request.name,
                list(request.emit),
                list(request.extra_fields) if request.extra_fields_set else None,
                list(request.extra_tags) if request.extra_tags_set else None,
            ),
        )


class RhaiService(ChangingService, rhai_pb2_grpc.ConduitRhaiServicer):
    """The service `ConduitRhai`."""

    def GetRhai(self, request: Any, context: Context) -> rhai_pb2.GetRhaiResponse:
        block = self.configurator.effective().rhai
        return rhai_pb2.GetRhaiResponse(rhai=_filled(config_pb2.RhaiConfig(), block))

    def SetRhaiLimits(self, request: rhai_pb2.SetRhaiLimitsRequest, context: Context) -> Applied:
        return self.change(
            context,
            "SetRhaiLimits",
            lambda: primitives.set_rhai_limits(
                optional(request, "max_operations"),
                optional(request, "max_call_depth"),
                optional(request, "hook_timeout_ms"),
            ),
        )


class MetricsService(ChangingService, metrics_control_pb2_grpc.ConduitMetricsServicer):
    """The service `ConduitMetrics`."""

    def GetMetrics(self, request: Any, context: Context) -> metrics_control_pb2.GetMetricsResponse:
        block = self.configurator.effective().metrics
        return metrics_control_pb2.GetMetricsResponse(
            metrics=_filled(config_pb2.MetricsConfig(), block)
        )

    def PatchMetrics(
        self, request: metrics_control_pb2.PatchMetricsRequest, context: Context
    ) -> Applied:
        patch = tree_of(request.metrics) if request.HasField("metrics") else None
        return self.change(context, "PatchMetrics", lambda: primitives.patch_metrics(patch))


class CachesService(ChangingService, caches_pb2_grpc.ConduitCachesServicer):
    """The service `ConduitCaches`."""

    def ListCaches(self, request: Any, context: Context) -> caches_pb2.ListCachesResponse:
        return caches_pb2.ListCachesResponse(
            caches=[
                caches_pb2.CacheSummary(
                    name=cache.name, type=cache.type, max_entries=cache.max_entries or None
                )
                for cache in self.configurator.effective().caches
            ]
        )

    def GetCache(
        self, request: caches_pb2.GetCacheRequest, context: Context
    ) -> caches_pb2.GetCacheResponse:
        if not request.name:
            refuse(context, _INVALID, "cache name is required")
        caches = self.configurator.effective().caches
        cache = next((c for c in caches if c.name == request.name), None)
        if cache is None:
            refuse(context, _NOT_FOUND, f"unknown cache '{request.name}'")
        message = _filled(config_pb2.CacheInstance(), cache)
        if not cache.max_entries:
            message.ClearField("max_entries")
        return caches_pb2.GetCacheResponse(cache=message)

    def SetCacheMaxEntries(
        self, request: caches_pb2.SetCacheMaxEntriesRequest, context: Context
    ) -> Applied:
        return self.change(
            context,
            "SetCacheMaxEntries",
            lambda: primitives.set_cache_max_entries(request.name, request.max_entries),
        )

    def SetCacheLmdbHot(
        self, request: caches_pb2.SetCacheLmdbHotRequest, context: Context
    ) -> Applied:
        return self.change(
            context,
            "SetCacheLmdbHot",
            lambda: primitives.set_cache_lmdb_hot(
                request.name,
                optional(request, "when_full"),
                optional(request, "sample_size"),
                optional(request, "sync"),
                optional(request, "sync_interval"),
                optional(request, "map_size_bytes"),
            ),
        )

    def SetCachePolicyHot(
        self, request: caches_pb2.SetCachePolicyHotRequest, context: Context
    ) -> Applied:
        blocks = {
            name: tree_of(getattr(request, name)) if request.HasField(name) else None
            for name in ("negative_cache", "on_hit", "truncated_udp")
        }
        return self.change(
            context,
            "SetCachePolicyHot",
            lambda: primitives.set_cache_policy_hot(
                request.name,
                **blocks,
                rotate_rrset_on_serve=optional(request, "rotate_rrset_on_serve"),
            ),
        )
