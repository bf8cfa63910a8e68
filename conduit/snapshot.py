"""The runtime snapshot: everything a query needs in compiled form, immutable, and its reference.

A change builds a new snapshot and replaces one attribute; a transaction keeps the snapshot that it
started with to its end. Health, counters, slots and sockets live outside and survive a swap.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from conduit.config import Config
from conduit.lookup.profiles import Profile, asks_cache, compile_profiles
from conduit.observe.events.event_filter import SinkPlan, compile_plans
from conduit.observe.plan import MetricPlan, resolve_plan
from conduit.policy.compile import CompileError, Policy, compile_policy
from conduit.transaction import Transaction
from conduit.upstream.pool import PoolTable, compile_pools

if TYPE_CHECKING:
    from conduit.scripting.reports import ScriptReports

RulePass = Callable[[Transaction], int]


@dataclass(frozen=True)
class RuntimeSnapshot:
    """The compiled configuration of one generation; durations are seconds."""

    __slots__ = (
        "answers_inline",
        "answers_packets",
        "client_tcp_uses_upstream_tcp",
        "config",
        "event_plans",
        "forward_timeout",
        "generation",
        "has_acls",
        "lookup_profiles",
        "max_attempts",
        "max_duration",
        "metric_plan",
        "metrics_enabled",
        "no_answer_rules",
        "outstanding_per_backend",
        "policy",
        "pools",
        "request_rules",
        "response_rules",
        "route_failure_runs_response_rules",
        "script_reports",
        "selection_generation",
        "timing",
        "upstream_transport",
        "warnings",
    )

    config: Config
    #: Process-wide number of this snapshot, 1 after a start.
    generation: int
    #: What backend selection adds to the transaction id; 0 for the first snapshot.
    selection_generation: int
    pools: PoolTable
    lookup_profiles: Mapping[str, Profile]
    policy: Policy
    #: False when no client ACL is configured anywhere.
    has_acls: bool
    #: Rule passes per hook; None when the hook has no rules.
    request_rules: RulePass | None
    response_rules: RulePass | None
    no_answer_rules: RulePass | None
    #: True when caches may answer and no rule runs: the listener's thread answers hits itself.
    answers_inline: bool
    #: True when nothing looks at a query that a cache answers, so that its packet may stand for it.
    answers_packets: bool
    route_failure_runs_response_rules: bool
    max_attempts: int
    max_duration: float
    forward_timeout: float
    outstanding_per_backend: int
    upstream_transport: str
    client_tcp_uses_upstream_tcp: bool
    #: What each dnstap sink takes; empty when nothing is exported.
    event_plans: tuple[SinkPlan, ...]
    metrics_enabled: bool
    metric_plan: MetricPlan
    #: True when durations are measured.
    timing: bool
    #: What the operator should know of the scripts.
    warnings: tuple[str, ...]
    #: Counts and log lines of the scripts; None without scripts.
    script_reports: ScriptReports | None


class SnapshotRef:
    """The one mutable reference to the current snapshot; replacing `current` is the swap."""

    __slots__ = ("current",)

    def __init__(self, current: RuntimeSnapshot) -> None:
        self.current = current


def compile_snapshot(config: Config, generation: int, base_dir: str) -> RuntimeSnapshot:
    """Compile a validated configuration into the snapshot of `generation` (from 1).

    Relative paths in it are taken from `base_dir`. Raises CompileError.
    """
    plan = resolve_plan(config.metrics)
    policy, warnings, reports = _compile_policy(config, base_dir, plan)
    forward = config.forward
    orchestrator = config.orchestrator
    profiles = compile_profiles(config)
    without_rules = policy.request is policy.response is policy.no_answer is None
    answers_inline = without_rules and any(map(asks_cache, profiles.values()))
    has_acls = policy.default_acl is not None or bool(policy.listener_acls)
    return RuntimeSnapshot(
        config=config,
        generation=generation,
        selection_generation=0 if generation == 1 else generation,
        pools=compile_pools(config.pools),
        lookup_profiles=profiles,
        answers_inline=answers_inline,
        answers_packets=answers_inline and not has_acls and not config.events.sinks,
        policy=policy,
        has_acls=has_acls,
        request_rules=policy.request,
        response_rules=policy.response,
        no_answer_rules=policy.no_answer,
        route_failure_runs_response_rules=orchestrator.route_failure_policy == "response_rules",
        max_attempts=orchestrator.max_attempts,
        max_duration=orchestrator.max_txn_duration_ms / 1000,
        forward_timeout=forward.timeout_ms / 1000,
        outstanding_per_backend=forward.outstanding_per_backend,
        upstream_transport=forward.transport,
        client_tcp_uses_upstream_tcp=forward.client_tcp_uses_upstream_tcp,
        event_plans=_event_plans(config),
        warnings=warnings,
        script_reports=reports,
        metrics_enabled=plan.enabled,
        metric_plan=plan,
        timing=plan.timing,
    )


def _event_plans(config: Config) -> tuple[SinkPlan, ...]:
    try:
        return compile_plans(config.events)
    except ValueError as error:
        raise CompileError(f"events.sinks: {error}") from error


def _compile_policy(
    config: Config, base_dir: str, plan: MetricPlan
) -> tuple[Policy, tuple[str, ...], ScriptReports | None]:
    rules = config.rules.rules
    listed = config.metrics.user_metrics if config.metrics is not None and rules else ()
    if not listed and not any(action.type == "rhai" for rule in rules for action in rule.actions):
        return compile_policy(config, base_dir, None), (), None
    # the engine is imported only where a configuration has scripts
    from conduit.scripting.reports import ScriptReports
    from conduit.scripting.scripts import ScriptSet

    reports = ScriptReports()
    scripts = ScriptSet(config, base_dir, reports)
    policy = compile_policy(config, base_dir, scripts.compiler)
    return policy, scripts.finish(plan), reports
