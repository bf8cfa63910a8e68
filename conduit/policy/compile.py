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
#: Makes the compiler once the tables that scripts may ask are loaded.
ScriptCompilerOf = Callable[[Mapping[str, Table]], ScriptCompiler]


class CompileError(Exception):
    """The configuration is valid but cannot be compiled; the text names object and cause.

    For a script, `file`, `line` and `column` (from 1) give the place, and `pointer` is the source
    line with a caret below the place; elsewhere they are empty.
    """

    def __init__(
        self, message: str, *, file: str = "", line: int = 0, column: int = 0, pointer: str = ""
    ) -> None:
        super().__init__(message)
        self.file = file
        self.line = line
        self.column = column
        self.pointer = pointer


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


def compile_policy(
    config: Config, base_dir: str, script_compiler: ScriptCompilerOf | None
) -> Policy:
    """Compile a validated configuration; relative paths are taken from `base_dir`.

    `script_compiler` may be None when no rule has a script. Raises CompileError at the first
    problem.
    """
    try:
        tables = load_tables(config.data_sources, config.data_source_limits, base_dir)
    except TableError as error:
        raise CompileError(str(error)) from error
    rules = config.rules.rules
    compile_script = script_compiler(tables) if script_compiler is not None else None
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


def _compile_steps(rule: Rule, compile_script: ScriptCompiler | None) -> Sequence[Step]:
    steps: list[Step] = []
    for action in rule.actions:
        if action.type == "rhai":
            assert compile_script is not None
            steps.append(compile_script(rule, action))
            continue
        try:
            steps.append(compile_action(action))
        except ValueError as error:
            raise ValueError(f"rule '{rule.name}': {error}") from error
    return steps
