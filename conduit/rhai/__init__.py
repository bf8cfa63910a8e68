"""A Rhai engine in pure Python: compiles scripts of the Rhai language and runs them safely."""

from conduit.rhai.calls import call_position
from conduit.rhai.conversion import to_python, to_script
from conduit.rhai.engine import Engine, Script
from conduit.rhai.errors import (
    EvalError,
    ParseError,
    Position,
    RhaiError,
    StopScript,
    TerminateScript,
)
from conduit.rhai.limits import Limits, RunState
from conduit.rhai.modules import FileResolver, Module
from conduit.rhai.natives import ANY, IN_PLACE, READ, REPLACE
from conduit.rhai.scope import Scope
from conduit.rhai.values import (
    Array,
    Blob,
    Char,
    FnPtr,
    InclusiveRange,
    Map,
    Range,
    Timestamp,
)

__all__ = [
    "ANY",
    "IN_PLACE",
    "READ",
    "REPLACE",
    "Array",
    "Blob",
    "Char",
    "Engine",
    "EvalError",
    "FileResolver",
    "FnPtr",
    "InclusiveRange",
    "Limits",
    "Map",
    "Module",
    "ParseError",
    "Position",
    "Range",
    "RhaiError",
    "RunState",
    "Scope",
    "Script",
    "StopScript",
    "TerminateScript",
    "Timestamp",
    "call_position",
    "to_python",
    "to_script",
]
