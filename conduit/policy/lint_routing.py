"""Lint of routing: pools no query reaches, retries with nowhere to go, limits that cut them short.

The rules behind it: chapter 20 section 11 (a backend that a query already used in a pool is not
used again in that pool) and section 10 (limits are tested before each attempt).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from conduit.config import Config, Orchestrator, Rule
from conduit.config.address import parse_socket_address
from conduit.config.model_traffic import Forward
from conduit.policy.lint_finding import Finding, rule_path
from conduit.policy.lint_tables import ScriptTexts

_RETRIES: Final = frozenset({"retry", "retry_now"})
_DEFAULT_LIMITS: Final = (
    Forward().timeout_ms,
    Orchestrator().max_attempts,
    Orchestrator().max_txn_duration_ms,
)


class Routing:
    """Which pools queries can go to at first, and where retries can lead."""

    __slots__ = ("backends", "config", "first", "reachable", "retry_targets", "retrying", "scripts")

    def __init__(self, config: Config, scripts: ScriptTexts) -> None:
        self.config = config
        self.scripts = scripts
        #: Number of different backends by pool name.
        self.backends = {
            pool.name: len({_key(backend.address) for backend in pool.backends})
            for pool in config.pools
        }
        default = config.default_pool_name()
        first = {default} if default is not None else set()
        targets: set[str] = set()
        for rule in config.rules.rules:
            for action in rule.actions:
                if action.type == "set_pool":
                    (first if rule.hook == "request" else targets).add(action.value)
                elif action.type == "set_retry_pool":
                    targets.add(action.value)
        by_script = {name for name in self.backends if scripts.may_name(name)}
        #: Pools of first attempts; the default pool always counts.
        self.first = first | by_script
        #: Pools that any rule or script sets for a retry.
        self.retry_targets = targets | by_script
        self.reachable = self.first | self.retry_targets
        #: Places of the rules that ask for a retry.
        self.retrying = [
            index for index, rule in enumerate(config.rules.rules) if _last_retry(rule) is not None
        ]

    @property
    def most_attempts(self) -> int:
        """The number of attempts after which every reachable backend has been used."""
        return sum(self.backends.get(name, 0) for name in self.reachable)


def routing_findings(routing: Routing) -> Iterator[Finding]:
    """Yield findings about pools, retries and the limits of attempts."""
    yield from _limits(routing)
    default = routing.config.default_pool_name()
    for index, pool in enumerate(routing.config.pools):
        if pool.name not in routing.reachable:
            yield Finding(
                ("pools", index, "name"),
                f"pool '{pool.name}' is never used: no rule"
                f"{' or script' if routing.scripts.any else ''} names it, and the default pool "
                f"is '{default}'",
                "pool-unused",
            )
    for index in routing.retrying:
        yield from _retry(routing, index, routing.config.rules.rules[index])


def _retry(routing: Routing, index: int, rule: Rule) -> Iterator[Finding]:
    position = _last_retry(rule)
    if position is None:
        return
    path = rule_path(index, "actions", position, "type")
    if routing.config.orchestrator.max_attempts == 1:
        yield Finding(
            path,
            f"rule '{rule.name}' asks for a retry, but orchestrator.max_attempts is 1: the answer "
            "is thrown away and the client gets SERVFAIL",
            "retry-without-attempts",
        )
        return
    if any(action.type == "rhai" for action in rule.actions):
        # a script of this rule may choose another pool by a name that it computes
        return
    targets = _targets(routing, rule, position)
    if targets and all(
        _nothing_left(routing, first, target) for first in routing.first for target in targets
    ):
        yield Finding(
            path,
            f"rule '{rule.name}' asks for a retry, but pool '{min(targets)}' has no other backend "
            "to try: the client gets SERVFAIL (add a backend, or set_retry_pool before the retry)",
            "retry-without-target",
        )


def _nothing_left(routing: Routing, first: str, target: str) -> bool:
    return first == target and routing.backends.get(target, 0) < 2


def _last_retry(rule: Rule) -> int | None:
    """Return the place of the action that makes a rule retry, None when it does not."""
    if rule.hook != "response":
        return None
    found: int | None = None
    for position, action in enumerate(rule.actions):
        if action.type in _RETRIES:
            found = position
            if action.type == "retry_now":
                break
        elif action.type == "clear_retry":
            found = None
        elif action.type == "drop_now":
            return None
    return found


def _targets(routing: Routing, rule: Rule, retry_at: int) -> set[str]:
    """Return the pools that the retry of a rule may lead to, at least one."""
    retry_pool: str | None = None
    pool: str | None = None
    # actions behind a retry_now do not run
    hard = rule.actions[retry_at].type == "retry_now"
    for action in rule.actions[: retry_at if hard else None]:
        if action.type == "set_retry_pool":
            retry_pool = action.value
        elif action.type == "clear_retry_pool":
            retry_pool = None
        elif action.type == "set_pool":
            pool = action.value
        elif action.type == "clear_pool":
            pool = routing.config.default_pool_name()
    if retry_pool is not None:
        return {retry_pool}
    # a retry pool that an earlier rule stored wins over the selected one
    return routing.retry_targets | ({pool} if pool is not None else routing.first)


def _limits(routing: Routing) -> Iterator[Finding]:
    limits = routing.config.orchestrator
    timeout = routing.config.forward.timeout_ms
    retries = bool(routing.retrying) or routing.scripts.any
    most = routing.most_attempts
    if (
        retries
        and limits.max_attempts > most > 1
        and limits.max_attempts != Orchestrator().max_attempts
    ):
        yield Finding(
            ("orchestrator", "max_attempts"),
            f"max_attempts {limits.max_attempts} can never be used up: a query uses no backend "
            f"twice in one pool, and the pools in use have {most} backends together",
            "attempts-exceed-backends",
        )
    attempts = max(1, min(limits.max_attempts, most)) if retries else 1
    duration = limits.max_txn_duration_ms
    given = (timeout, limits.max_attempts, duration)
    # a file that sets none of them is not to blame for the built-in values
    # a wait takes a little longer than its timeout, so a limit of the same length is over then
    if given != _DEFAULT_LIMITS and timeout and timeout * attempts >= duration:
        first_cut = -(-duration // timeout) + 1
        cut = (
            f"attempt {first_cut} is never made"
            if first_cut <= attempts
            else "response rules are not run after the last timeout"
        )
        yield Finding(
            ("orchestrator", "max_txn_duration_ms"),
            f"{attempts} attempt{'s' if attempts > 1 else ''} of forward.timeout_ms {timeout} take "
            f"{timeout * attempts} ms and max_txn_duration_ms is {duration}: when all time out, "
            f"{cut}",
            "attempts-exceed-duration",
        )


def _key(address: str) -> str:
    try:
        return str(parse_socket_address(address))
    except ValueError:
        return address
