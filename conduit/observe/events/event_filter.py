"""Compiles what one sink wants to see: kinds of frame, filters and extra (chapter 50, 5.4, 5.5).

A plan is part of the runtime snapshot and holds no queue; the hub finds the running sink by name.
Filters run before anything is copied or built.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from conduit.config import Events, Sink, SinkFilters
from conduit.config.address import parse_socket_address
from conduit.observe.events.dnstap import QUERY, RESPONSE, RETRY
from conduit.observe.events.extra_json import ExtraBuilder, compile_extra, target_pool
from conduit.observe.events.sample_filter import Predicate, compile_sampling
from conduit.policy.selectors import compile_selector

if TYPE_CHECKING:
    from conduit.transaction import Transaction

_KINDS: Final = {"query": QUERY, "response": RESPONSE, "retry": RETRY}


class SinkPlan:
    """The compiled filters of one sink; the predicates of each kind hold together."""

    __slots__ = ("_query", "_response", "_retry", "extra", "name", "retry_extra", "sampling")

    def __init__(
        self,
        name: str,
        sampling: Predicate | None,
        query: tuple[Predicate, ...] | None,
        response: tuple[Predicate, ...] | None,
        retry: tuple[Predicate, ...] | None,
        extra: ExtraBuilder,
        retry_extra: ExtraBuilder,
    ) -> None:
        """Give the predicates of each kind; None for a kind that is not exported."""
        self.name = name
        #: Decides once for all frames of a transaction; None takes every transaction.
        self.sampling = sampling
        self._query = query
        self._response = response
        self._retry = retry
        #: Builds the extra of query and response frames.
        self.extra = extra
        #: Builds the extra of retry frames.
        self.retry_extra = retry_extra

    def _samples(self, txn: Transaction) -> bool:
        return self.sampling is None or self.sampling(txn)

    def wants_query(self, txn: Transaction) -> bool:
        """True when the sink takes the query frame of `txn`."""
        return self._query is not None and self._samples(txn) and _all_hold(self._query, txn)

    def wants_response(self, txn: Transaction) -> bool:
        """True when the sink takes the response frame of `txn`."""
        return self._response is not None and self._samples(txn) and _all_hold(self._response, txn)

    def wants_retry(self, txn: Transaction) -> bool:
        """True when the sink takes a frame for the attempt that is about to start."""
        return self._retry is not None and self._samples(txn) and _all_hold(self._retry, txn)


def sampled(plans: tuple[SinkPlan, ...], txn: Transaction) -> tuple[SinkPlan, ...]:
    """Return the plans that take frames of `txn`: most transactions of a sampling sink end here."""
    if len(plans) == 1:
        sampling = plans[0].sampling
        return plans if sampling is None or sampling(txn) else ()
    return tuple([plan for plan in plans if plan.sampling is None or plan.sampling(txn)])


def _all_hold(predicates: tuple[Predicate, ...], txn: Transaction) -> bool:
    for predicate in predicates:  # noqa: SIM110 - a generator would cost more than the loop
        if not predicate(txn):
            return False
    return True


def compile_plans(events: Events) -> tuple[SinkPlan, ...]:
    """Compile the filters of each sink of a validated block, in its order.

    Raises ValueError for what validation would have refused.
    """
    return tuple(compile_plan(sink) for sink in events.sinks)


def compile_plan(sink: Sink) -> SinkPlan:
    """Compile one sink; see `compile_plans`."""
    name = sink.canonical_name
    filters = sink.filters
    if filters is None or filters.is_empty:
        filters = SinkFilters()
    salts = {"sink_name": name}
    common: list[Predicate] = []
    routed: list[Predicate] = []
    retried: list[Predicate] = []
    if filters.tag_required:
        common.append(_has_tag(filters.tag_required))
    sampling = compile_sampling(
        filters.sample_percent, filters.sample_key or "", filters.sample_key_from or "", salts
    )
    common.extend(compile_selector(selector, salts, {}) for selector in filters.selectors)
    if filters.pool:
        routed.append(_pool_is(filters.pool))
        retried.append(_next_pool_is(filters.pool))
    if filters.backend:
        routed.append(_backend_is(filters.backend))
        retried.append(_backend_is(filters.backend))
    # no rcode is known, or only one that policy set: such a selector takes no query
    takes_queries = all(selector.type != "rcode" for selector in filters.selectors)
    emitted = {_KINDS[point] for point in sink.emitted}
    return SinkPlan(
        name,
        sampling,
        _when(QUERY in emitted and takes_queries, common),
        _when(RESPONSE in emitted, [*common, *routed]),
        _when(RETRY in emitted, [*common, *retried]),
        compile_extra(sink.extra_fields, sink.extra_tags, name),
        compile_extra(sink.extra_fields, sink.extra_tags, name, retry=True),
    )


def _when(emitted: bool, predicates: Sequence[Predicate]) -> tuple[Predicate, ...] | None:
    return tuple(predicates) if emitted else None


def _has_tag(key: str) -> Predicate:
    return lambda txn: txn.has_tag(key)


def _pool_is(name: str) -> Predicate:
    return lambda txn: txn.selected_pool == name


def _next_pool_is(name: str) -> Predicate:
    return lambda txn: target_pool(txn) == name


def _backend_is(value: str) -> Predicate:
    """Match a backend by its name or by its address, however the address is spelled."""
    try:
        key = str(parse_socket_address(value))
    except ValueError:
        key = value

    def matches(txn: Transaction) -> bool:
        backend = txn.selected_backend
        return backend is not None and (backend.label == value or backend.key == key)

    return matches
