"""Compiles the policy part of a configuration: tables, rules of each hook, client ACLs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from conduit.config import Action, Config, Listener, Rule
from conduit.policy.acl import AclPolicy, compile_acls
from conduit.policy.actions import Step, compile_action
from conduit.policy.denial_log import DenialLog
from conduit.policy.rules import RuleSet, compile_hook
from conduit.policy.tables import Table, TableError, load_tables

#: Compiles a `rhai` action of one rule to a step; raises CompileError for a broken script.
ScriptCompiler = Callable[[Rule, Action], Step]


class CompileError(Exception):
    """The configuration is valid but cannot be compiled; the text names object and cause."""


@dataclass(frozen=True)
class Policy:
    """Everything the query path asks of policy, immutable."""

    tables: Mapping[str, Table]
    request: RuleSet | None
    response: RuleSet | None
    no_answer: RuleSet | None
    #: Policy of listeners without `acls` of their own; None admits everyone, uncounted.
    default_acl: AclPolicy | None
    #: Policies of listeners with `acls` of their own, by address and protocol as configured.
    listener_acls: Mapping[tuple[str, str], AclPolicy | None]
    denials: DenialLog

    def acl_of(self, listener: Listener) -> AclPolicy | None:
        """Return the policy of a listener entry; one that is gone inherits the default."""
        return self.listener_acls.get((listener.address, listener.protocol), self.default_acl)


def compile_policy(config: Config, base_dir: str, compile_script: ScriptCompiler) -> Policy:
    """Compile a validated configuration; relative paths are taken from `base_dir`.

    Raises CompileError at the first problem.
    """
    try:
        tables = load_tables(config.data_sources, config.data_source_limits, base_dir)
    except TableError as error:
        raise CompileError(str(error)) from error
    rules = config.rules.rules
    try:
        steps = {rule.name: _compile_steps(rule, compile_script) for rule in rules}
        request, response, no_answer = (
            compile_hook(rules, hook, tables, steps)
            for hook in ("request", "response", "no_answer")
        )
        default_acl = compile_acls(config.acls, tables)
        listener_acls = {
            (entry.address, entry.protocol): compile_acls(entry.acls, tables)
            for entry in config.listeners.listeners
            if entry.acls is not None
        }
    except ValueError as error:
        raise CompileError(str(error)) from error
    return Policy(
        tables,
        request,
        response,
        no_answer,
        default_acl,
        listener_acls,
        DenialLog(config.logging.query_access),
    )


def _compile_steps(rule: Rule, compile_script: ScriptCompiler) -> Sequence[Step]:
    steps: list[Step] = []
    for action in rule.actions:
        if action.type == "rhai":
            steps.append(compile_script(rule, action))
            continue
        try:
            steps.append(compile_action(action))
        except ValueError as error:
            raise ValueError(f"rule '{rule.name}': {error}") from error
    return steps
