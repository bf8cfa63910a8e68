"""Runs a script and brings its result into the notation of the vectors (chapter 36 section 24)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from conduit.rhai import (
    Array,
    Blob,
    Char,
    Engine,
    EvalError,
    FnPtr,
    Limits,
    Map,
    ParseError,
    Range,
    Scope,
)


@dataclass
class Outcome:
    """What a run gave: `expect` as in the vectors, the full error text, the printed texts."""

    expect: dict[str, Any]
    message: str | None = None
    output: list[str] = field(default_factory=list)


def limits_of(vector: dict[str, int]) -> Limits:
    """The limits that a vector names, the others as the chapter says."""
    named: dict[str, Any] = {"max_operations": 2_000_000, **vector}
    if "max_expr_depth" in named:
        named["max_function_expr_depth"] = named["max_expr_depth"]
    return Limits(**named)


def encoded(value: Any, top: bool = True) -> Any:
    """A value as the vectors write it."""
    kind = type(value)
    if kind is float and not math.isfinite(value):
        return "NaN" if value != value else "inf" if value > 0 else "-inf"
    if kind is Char:
        return str(value) if top else {"$char": str(value)}
    if kind is Array:
        return [encoded(item, False) for item in value]
    if kind is Map:
        return {key: encoded(item, False) for key, item in value.items()}
    if kind is Blob:
        return value.hex() if top else {"$blob": value.hex()}
    if kind is FnPtr:
        return value.name if top else {"$fn": value.name}
    return str(value) if isinstance(value, Range) else value


def same(left: Any, right: Any) -> bool:
    """Equality that tells 1 from 1.0 and true, and 0.0 from -0.0."""
    if type(left) is not type(right):
        return False
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[k], right[k]) for k in left)
    return repr(left) == repr(right) if isinstance(left, float) else bool(left == right)


def engine_for(limits: Limits | None = None, output: list[str] | None = None) -> Engine:
    """An engine that collects what scripts print."""
    engine = Engine(limits or limits_of({}))
    texts = [] if output is None else output
    engine.on_print = texts.append
    engine.on_debug = lambda text, *_: texts.append(text)
    return engine


def run(script: str, limits: Limits | None = None, scope: Scope | None = None) -> Outcome:
    """Runs a script in a fresh engine."""
    output: list[str] = []
    engine = engine_for(limits, output)
    try:
        value = engine.eval(script, scope)
    except ParseError as error:
        return Outcome({"error": error.kind}, str(error), output)
    except EvalError as error:
        bottom = error.innermost
        return Outcome({"error": bottom.parse_kind or bottom.kind}, str(error), output)
    kind = engine.type_name(type(value)).replace("range=", "range")
    return Outcome({"type": kind, "value": encoded(value)}, None, output)


def value_of(script: str, limits: Limits | None = None) -> Any:
    """The value of a script as the vectors write it; the error kind if it fails."""
    outcome = run(script, limits)
    return outcome.expect.get("value") if "type" in outcome.expect else outcome.expect["error"]
