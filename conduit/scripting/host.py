"""The engine that runs policy scripts: the language plus everything of chapter 35.

One engine serves the process. What belongs to a run reaches host functions through its scope,
which is a `ScriptRun`; what belongs to a snapshot hangs on that run's `ScriptHome`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Final, cast

from conduit.rhai import ANY, Engine, Map, Module, RunState
from conduit.rhai.text import display
from conduit.scripting.enums import ENUM_TYPES, EnumValue, Rcode, constants, from_number
from conduit.scripting.objects import Log, Lookup, Metrics, ScriptRun
from conduit.scripting.runtime_view import (
    BackendRuntime,
    PoolRuntime,
    RoutingRuntime,
    RuntimeView,
)
from conduit.scripting.transaction_view import TransactionView

#: Python annotations of host methods, as types of the language.
_TYPES: Final[dict[str, Any]] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,
    "Rcode | str": (Rcode, str),
}


@functools.cache
def host_engine() -> Engine:
    """Return the process's engine for policy scripts."""
    engine = Engine()
    _register(engine, TransactionView, "Transaction", leave_out={"set_tag"})
    engine.register_fn("set_tag", _set_tag, TransactionView, str, ANY, context=True)
    _register(engine, RuntimeView, "Runtime")
    _register(engine, RoutingRuntime, "RoutingRuntime")
    _register(engine, PoolRuntime, "PoolRuntime")
    _register(engine, BackendRuntime, "BackendRuntime")
    _register(engine, Lookup, "Lookup")
    _register(engine, Metrics, "Metrics")
    _register(engine, Log, "Log")
    engine.register_fn("inc_labels", _count_labels, Metrics, str, int, Map, context=True)
    engine.register_fn("lookup", _lookup, str, str, context=True)
    engine.register_fn("lookup_ip", _lookup_ip, str, str, context=True)
    _register_older_names(engine)
    for kind in ENUM_TYPES:
        _register_enum(engine, kind)
    return engine


def _register(
    engine: Engine, kind: type, name: str, leave_out: frozenset[str] | set[str] = frozenset()
) -> None:
    """Register every public method of `kind` under its own name, typed by its annotations."""
    engine.register_type(kind, name)
    for method, function in vars(kind).items():
        if method.startswith("_") or method in leave_out or not inspect.isfunction(function):
            continue
        parameters = list(inspect.signature(function).parameters.values())[1:]
        types = [_TYPES[parameter.annotation] for parameter in parameters]
        required = sum(p.default is inspect.Parameter.empty for p in parameters)
        for count in range(required, len(types) + 1):
            engine.register_fn(method, function, kind, *types[:count])


def _register_enum(engine: Engine, kind: type[EnumValue]) -> None:
    name = kind.family.name
    engine.register_type(
        kind,
        name,
        methods={"number": kind.number, "name": kind.name},
        to_string=kind.name,
        to_debug=repr,
        equals=lambda one, other: one.value == other.value,
    )
    module = Module(dict(constants(kind)))
    module.register_fn("from_number", functools.partial(from_number, kind), int)
    engine.register_module(name, module)


def _run_of(state: RunState) -> ScriptRun:
    return cast(ScriptRun, state.scope)


def _set_tag(state: RunState, view: TransactionView, key: str, value: object) -> None:
    view.set_tag(key, value if isinstance(value, bool) else display(state, value))


def _count_labels(state: RunState, metrics: Metrics, name: str, delta: int, labels: Map) -> None:
    metrics.run.count(name, delta, {key: display(state, labels[key]) for key in labels})


def _lookup(state: RunState, table: str, key: str) -> str:
    return _run_of(state).lookup(table, key)


def _lookup_ip(state: RunState, table: str, address: str) -> str:
    return _run_of(state).lookup_ip(table, address)


def _register_older_names(engine: Engine) -> None:
    """Names of older documentation (section 19, O-1)."""
    engine.register_fn("table_lookup", _lookup, str, str, context=True)
    engine.register_fn("question_qname", _question_qname, TransactionView)
    engine.register_fn("log_info", _logger("info"), str, context=True)
    engine.register_fn("log_warn", _logger("warn"), str, context=True)
    engine.register_fn("metric_inc", _older_count, TransactionView, str, context=True)
    engine.register_fn("metric_inc", _older_count, TransactionView, str, int, context=True)
    engine.register_fn(
        "metric_inc_labels", _older_count_labels, TransactionView, str, int, Map, context=True
    )


def _question_qname(view: TransactionView) -> str:
    return cast(str, view.question()["qname"])


def _logger(level: str) -> Callable[[RunState, str], None]:
    return lambda state, message: _run_of(state).log(level, message)


def _older_count(state: RunState, view: TransactionView, name: str, delta: int = 1) -> None:
    _run_of(state).count(name, delta, {})


def _older_count_labels(
    state: RunState, view: TransactionView, name: str, delta: int, labels: Map
) -> None:
    _run_of(state).count(name, delta, {key: display(state, labels[key]) for key in labels})
