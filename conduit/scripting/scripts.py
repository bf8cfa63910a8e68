"""Compiles the scripts of a configuration and makes steps of them (chapter 35 sections 3 to 7)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from conduit.config import Action, Config, Rule, resolve_path
from conduit.observe.plan import MetricPlan
from conduit.policy.actions import GO_ON, Step
from conduit.policy.compile import CompileError
from conduit.policy.tables import Table
from conduit.rhai import Limits, ParseError, RhaiError, Script
from conduit.scripting.host import host_engine
from conduit.scripting.objects import Log, Lookup, Metrics, ScriptHome, ScriptRun
from conduit.scripting.reports import ScriptReports
from conduit.scripting.runtime_view import RuntimeView
from conduit.scripting.scan import MetricRegistry, ScanError, check_tables

if TYPE_CHECKING:
    from conduit.transaction import Transaction

#: Follows `Script terminated: `; the reason label of an error is chosen by it.
TIMEOUT_TEXT: Final = "script hook timeout"
_DEFAULT_TIMEOUT_MS: Final = 50
_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

#: The variables of a scope, in order, and what makes each of them.
VARIABLES: Final[Mapping[str, Callable[[ScriptRun], object]]] = {
    "txn": lambda run: run.view,
    "runtime": lambda run: _runtime_of(run.txn),
    "lookup": Lookup,
    "metrics": Metrics,
    "log": Log,
}


def _broken(path: str, message: str) -> CompileError:
    return CompileError(f"script '{path}': {message}", file=path)


def _does_not_parse(path: str, text: str, error: ParseError) -> CompileError:
    message = f"script '{path}': {error}"
    if error.position is None:
        return CompileError(message, file=path)
    line, column = error.position
    source = text.split("\n")[line - 1].rstrip("\r")
    # tabs stay tabs, so that the caret stands right in any terminal
    indent = "".join("\t" if character == "\t" else " " for character in source[: column - 1])
    return CompileError(
        message, file=path, line=line, column=column, pointer=f"{source}\n{indent}^"
    )


class ScriptSet:
    """The scripts of one snapshot, each compiled once per rule."""

    def __init__(self, config: Config, base_dir: str, reports: ScriptReports) -> None:
        self._config = config
        self._base_dir = base_dir
        self.reports = reports
        self.metrics = MetricRegistry()
        self._limits = _limits_of(config)
        self._compiled: dict[tuple[str, str], Step] = {}
        self._texts: dict[str, str] = {}

    def compiler(self, tables: Mapping[str, Table]) -> Callable[[Rule, Action], Step]:
        """Return what compiles one `rhai` action; that raises CompileError."""

        def compile_action(rule: Rule, action: Action) -> Step:
            if not action.value:
                raise CompileError(f"rule '{rule.name}': rhai action requires script path in value")
            path = resolve_path(self._base_dir, action.value)
            step = self._compiled.get((rule.name, path))
            if step is None:
                step = self._compile(rule, path, tables)
                self._compiled[(rule.name, path)] = step
            return step

        return compile_action

    def _compile(self, rule: Rule, path: str, tables: Mapping[str, Table]) -> Step:
        text = self._read(path)
        try:
            check_tables(text, tables, path)
            self.metrics.add(text, path)
        except ScanError as error:
            raise CompileError(f"{error.shape}: {error}") from error
        try:
            script = host_engine().compile(text, path)
        except ParseError as error:
            raise _does_not_parse(path, text, error) from error
        home = ScriptHome(
            path, rule.name, rule.hook == "response", tables, self.metrics, self.reports
        )
        return _step(script, home, self._limits, text)

    def _read(self, path: str) -> str:
        text = self._texts.get(path)
        if text is None:
            try:
                with open(path, encoding="utf-8", newline="") as file:
                    text = file.read()
            except OSError as error:
                message = f"failed to read script: {error.strerror or error}"
                raise _broken(path, message) from error
            except UnicodeDecodeError as error:
                message = f"failed to read script: invalid UTF-8: {error.reason}"
                raise _broken(path, message) from error
            self._texts[path] = text
        return text

    def finish(self, plan: MetricPlan) -> tuple[str, ...]:
        """Check `metrics.user_metrics` against the scripts; returns warnings.

        Raises CompileError.
        """
        metrics = self._config.metrics
        known = self.metrics.metrics
        seen: set[str] = set()
        for entry in metrics.user_metrics if metrics is not None else ():
            if not entry.name:
                raise CompileError("metric '': user_metrics entry name must not be empty")
            start = f"metric '{entry.name}': "
            if entry.name in seen:
                raise CompileError(start + "duplicate user_metrics name")
            seen.add(entry.name)
            if entry.name not in known:
                raise CompileError(
                    f"{start}unknown user metric '{entry.name}' — not registered by any Rhai script"
                )
        if not plan.enabled:
            return ()
        return tuple(
            f"{metric.path}:{metric.line}: script counts metric '{name}', which this metrics "
            f"configuration does not collect; list it in metrics.user_metrics to collect it"
            for name, metric in sorted(known.items())
            if not plan.user_recorded.get(name, plan.standard_tier)
        )


def _limits_of(config: Config) -> Limits:
    rhai = config.rhai
    return Limits(
        max_operations=rhai.max_operations,
        max_call_levels=rhai.max_call_depth,
        timeout_ms=rhai.hook_timeout_ms or _DEFAULT_TIMEOUT_MS,
        timeout_text=TIMEOUT_TEXT,
    )


def _step(script: Script, home: ScriptHome, limits: Limits, text: str) -> Step:
    """Return the step that runs `script` as one action of its rule."""
    words = set(_WORD.findall(text))
    # a variable that the text does not name can only be met by `eval`
    variables = tuple(
        (name, make) for name, make in VARIABLES.items() if name in words or "eval" in words
    )
    run_script = host_engine().run
    reports = home.reports
    path, rule = home.path, home.rule

    def step(txn: Transaction) -> int:
        run = ScriptRun(txn, home)
        for name, make in variables:
            run.push(name, make(run))
        try:
            run_script(script, run, limits=limits)
        except RhaiError as error:
            reports.failed(txn.recorder, path, rule, str(error))
            return GO_ON
        return run.effects.apply(txn)

    return step


def _runtime_of(txn: Transaction) -> RuntimeView:
    """The one view of pools and backends that all scripts of a rule pass share."""
    view = txn.hook_scratch
    if not isinstance(view, RuntimeView):
        view = txn.hook_scratch = RuntimeView(txn)
    return view
