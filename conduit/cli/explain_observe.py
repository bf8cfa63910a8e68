"""Observers put around the compiled snapshot: they note what happens and change nothing.

The pipeline, the rule walk, the actions and backend selection are those of the daemon; an observer
calls the real thing and compares the transaction before and after.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, cast

from conduit.cli.explain_record import (
    CONTINUE,
    DROP,
    RETRY,
    ActionFacts,
    AttemptFacts,
    Effect,
    RouteFailure,
    RulePass,
    Step,
    Stop,
)
from conduit.cli.explain_selectors import examine, rcode_text
from conduit.cli.explain_upstream import VirtualClock
from conduit.observe.counters import Key
from conduit.policy.actions import GO_ON
from conduit.policy.actions import Step as ActionStep
from conduit.policy.outcome import DROP as PASS_DROP
from conduit.policy.outcome import RETRY as PASS_RETRY
from conduit.policy.rules import CompiledRule, RuleSet
from conduit.scripting.reports import ScriptReports
from conduit.snapshot import RulePass as RunRules
from conduit.snapshot import RuntimeSnapshot
from conduit.transaction import Transaction
from conduit.upstream.backend import Backend
from conduit.upstream.exchange import TIMEOUT
from conduit.upstream.pool import Pool, PoolTable

# rules that retry a failed Route again and again would do so until the time limit
_ZONE_TRANSFERS: Final = frozenset({251, 252})

#: Fields of a transaction that rules and scripts change, with the name shown.
_FIELDS: Final = {
    "soft_drop": "drop",
    "soft_retry": "retry",
    "selected_pool": "pool",
    "retry_pool": "retry_pool",
    "source_v4": "source_v4",
    "source_v6": "source_v6",
    "retry_source_v4": "retry_source_v4",
    "retry_source_v6": "retry_source_v6",
    "lookup_profile": "lookup_profile",
    "cache_eligible": "cache_eligible",
    "rcode": "rcode",
    "extended_error": "extended_error",
}


class Journal:
    """The steps of one query in order, and what can be concluded from them."""

    __slots__ = ("_clock", "_snapshot", "notes", "steps")

    def __init__(self, snapshot: RuntimeSnapshot, clock: VirtualClock) -> None:
        self._snapshot = snapshot
        self._clock = clock
        self.steps: list[Step] = []
        self.notes: list[str] = []

    def add(self, step: Step) -> None:
        """Append a step."""
        self.steps.append(step)

    def route_failed(self, pool: str | None, reason: str) -> None:
        """Note a Route without a backend."""
        self.add(RouteFailure(pool, reason))

    def note_stop(self, txn: Transaction) -> None:
        """Append why the pipeline leaves its retry loop here, when that needs telling."""
        last = self.steps[-1] if self.steps else None
        expired = self._clock() - txn.started > self._snapshot.max_duration
        stop: Stop | None = None
        if isinstance(last, AttemptFacts):
            stop = self._after_attempt(last, expired)
        elif last is None or (isinstance(last, RulePass) and _leads_to_lookup(last)):
            stop = self._before_attempt(txn, expired)
        elif isinstance(last, RouteFailure) and expired:
            stop = _DURATION
        if stop is not None:
            self.add(stop)

    def _after_attempt(self, attempt: AttemptFacts, expired: bool) -> Stop | None:
        if not attempt.answered and attempt.outcome != TIMEOUT:
            return Stop("forward_error", "response rules do not run after this kind of failure")
        if expired:
            return _DURATION
        return None

    def _before_attempt(self, txn: Transaction, expired: bool) -> Stop | None:
        if txn.answer is not None or txn.drop_reason is not None:
            return None
        if not self._attempted and txn.listener.is_tcp and txn.query.qtype in _ZONE_TRANSFERS:
            return Stop("zone_transfer", "zone transfers over TCP are not forwarded")
        if expired:
            return _DURATION
        if txn.lookup_profile not in self._snapshot.lookup_profiles:
            return Stop("unknown_profile", f"there is no lookup profile '{txn.lookup_profile}'")
        limit = self._snapshot.max_attempts
        if self._failed_routes >= limit:
            return Stop(
                "attempts_exhausted",
                f"a failed Route is retried until orchestrator.max_attempts {limit}",
            )
        if txn.attempt_count >= limit:
            return Stop("attempts_exhausted", f"orchestrator.max_attempts {limit} is reached")
        return Stop("no_provider", "no provider of the lookup profile gave an answer")

    @property
    def _failed_routes(self) -> int:
        return sum(isinstance(step, RouteFailure) for step in self.steps)

    @property
    def _attempted(self) -> bool:
        return any(isinstance(step, AttemptFacts) for step in self.steps)


_DURATION: Final = Stop("duration_exhausted", "orchestrator.max_txn_duration_ms has passed")


def _leads_to_lookup(step: RulePass) -> bool:
    if step.hook == "request":
        return step.outcome == CONTINUE
    return step.hook == "response" and step.outcome == RETRY


def observe(snapshot: RuntimeSnapshot, journal: Journal) -> RuntimeSnapshot:
    """Return `snapshot` with observers around its rules and pools."""
    policy = snapshot.policy
    return replace(
        snapshot,
        request_rules=_observed_rules("request", policy.request, snapshot, journal),
        response_rules=_observed_rules("response", policy.response, snapshot, journal),
        no_answer_rules=_observed_rules("no_answer", policy.no_answer, snapshot, journal),
        pools=cast(PoolTable, _ObservedPools(snapshot.pools, journal)),
    )


def _observed_rules(
    hook: str, rules: RuleSet | None, snapshot: RuntimeSnapshot, journal: Journal
) -> RunRules | None:
    return None if rules is None else _ObservedRules(hook, rules, snapshot, journal)


class _ObservedRules:
    """Runs the rule pass of one hook and notes every rule up to the first match."""

    __slots__ = ("_hook", "_journal", "_rules", "_snapshot")

    def __init__(
        self, hook: str, rules: RuleSet, snapshot: RuntimeSnapshot, journal: Journal
    ) -> None:
        self._hook = hook
        self._rules = rules
        self._snapshot = snapshot
        self._journal = journal

    def __call__(self, txn: Transaction) -> int:
        if self._hook == "no_answer":
            self._journal.note_stop(txn)
        matched = self._rules.find(txn)
        configured = self._snapshot.config.rules.rules
        tables = self._snapshot.policy.tables
        before = self._rules.rules if matched is None else self._rules.rules[: matched.index]
        step = RulePass(
            self._hook,
            rcode_text(txn.rcode),
            len(self._rules.rules),
            tuple(examine(configured[r.position], r.position, txn, tables) for r in before),
            None,
            [],
        )
        self._journal.add(step)
        if matched is None:
            return self._rules(txn)
        rule = configured[matched.position]
        step.matched = examine(rule, matched.position, txn, tables)
        step.actions = [ActionFacts(action.type, action.value) for action in rule.actions]
        outcome = CompiledRule(
            matched.index,
            matched.position,
            matched.name,
            (),
            _observed_steps(matched.steps, step.actions, self._snapshot.script_reports),
        ).run(txn)
        step.outcome = {PASS_DROP: DROP, PASS_RETRY: RETRY}.get(outcome, CONTINUE)
        return outcome


def _observed_steps(
    steps: Sequence[ActionStep], actions: Sequence[ActionFacts], reports: ScriptReports | None
) -> list[ActionStep]:
    def observed(step: ActionStep, action: ActionFacts) -> ActionStep:
        def run(txn: Transaction) -> int:
            before = state_of(txn)
            counted = _counted(txn)
            events: list[str] = []
            if reports is not None:
                reports.observer = events.append
            result = step(txn)
            action.ran = True
            action.ended_rule = result != GO_ON
            action.effects = difference(before, state_of(txn))
            events += [
                f"counts {count - counted.get(key, 0)} in metric {_metric(key)}"
                for key, count in _counted(txn).items()
                if count != counted.get(key, 0)
            ]
            action.events = tuple(events)
            return result

        return run

    return [observed(step, action) for step, action in zip(steps, actions, strict=True)]


def _counted(txn: Transaction) -> dict[Key, int]:
    return {} if txn.recorder is None else dict(txn.recorder.user)


def _metric(key: Key) -> str:
    name, labels = key
    assert isinstance(labels, tuple)
    shown = ", ".join(f"{label}={value}" for label, value in labels)
    return f"{name}{{{shown}}}" if shown else str(name)


#: Values by field name and, of tags, key.
State = dict[tuple[str, str | None], str | None]


def state_of(txn: Transaction) -> State:
    """Return what rules and scripts can change of a transaction, as texts."""
    state: State = {}
    for attribute, name in _FIELDS.items():
        value = getattr(txn, attribute)
        if isinstance(value, bool):
            value = "yes" if value else "no"
        elif attribute == "rcode":
            value = rcode_text(value)
        state[name, None] = None if value is None else str(value)
    for key, flag in (txn.flags or {}).items():
        state["flag", key] = "true" if flag else "false"
    for key, text in (txn.strings or {}).items():
        state["tag", key] = text
    if txn.answer is not None:
        state["answer", None] = f"{len(txn.answer)} octets"
    return state


def difference(before: State, after: State) -> tuple[Effect, ...]:
    """Return the fields that differ, in the order of `before`."""
    return tuple(
        Effect(name, key, before.get((name, key)), after.get((name, key)))
        for name, key in dict.fromkeys((*before, *after))
        if before.get((name, key)) != after.get((name, key))
    )


class _ObservedPool:
    """Stands for a pool: notes a selection that found nothing, gives everything else through."""

    __slots__ = ("_journal", "_pool")

    def __init__(self, pool: Pool, journal: Journal) -> None:
        self._pool = pool
        self._journal = journal

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pool, name)

    def select(self, *arguments: Any, **options: Any) -> Backend | None:
        backend = self._pool.select(*arguments, **options)
        if backend is None:
            self._journal.route_failed(self._pool.name, "no_backend_left")
        return backend


class _ObservedPools:
    """Stands for the pool table: gives observed pools and notes names that lead to none."""

    __slots__ = ("_journal", "_table")

    def __init__(self, table: PoolTable, journal: Journal) -> None:
        self._table = table
        self._journal = journal

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)

    @property
    def default(self) -> _ObservedPool | None:
        pool = self._table.default
        if pool is None:
            self._journal.route_failed(None, "no_pool")
            return None
        return _ObservedPool(pool, self._journal)

    def get(self, name: str) -> _ObservedPool | None:
        pool = self._table.get(name)
        if pool is None:
            self._journal.route_failed(name, "unknown_pool")
            return None
        return _ObservedPool(pool, self._journal)
