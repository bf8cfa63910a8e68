"""`eval`, `f!(…)`, qualified names and modules at run time (chapter 36 sections 9, 12 and 13)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conduit.rhai.calls import (
    Program,
    as_eval_error,
    in_call,
)
from conduit.rhai.errors import (
    EvalError,
    ParseError,
    mismatch,
    not_found,
)
from conduit.rhai.scope import Scope
from conduit.rhai.text import signature, type_name
from conduit.rhai.values import (
    share,
)

if TYPE_CHECKING:
    from conduit.rhai.limits import RunState


from conduit.rhai.machine_errors import stack_overflow


def evaluate(st: RunState, env: Scope, program: Program, start: int, text: Any) -> Any:
    """`eval(text)` among the variables of the caller."""
    if type(text) is not str:
        raise mismatch(type_name(st, text), "string")
    level = st.level + 1
    if level > st.max_level:
        stack_overflow()
    st.level = level
    st.charge(len(text) // 4 + 1)
    try:
        return st.engine.evaluate_text(st, env, program, text.strip(" \t\n\r\f"))
    except (EvalError, ParseError, RecursionError) as error:
        raise in_call(as_eval_error(error), "eval") from None
    finally:
        st.level = level - 1
        del start


def call_in_scope(st: RunState, env: Scope, program: Program, name: str, *arguments: Any) -> Any:
    """`f!(a)`."""
    code = program.functions.get((name, len(arguments)))
    if code is None:
        raise not_found(signature(st, name, arguments))
    assert program.scoped is not None
    return program.scoped(code)(st, None, env, *arguments)


def _module(st: RunState, path: tuple[str, ...]) -> Any:
    first = path[0]
    found = None
    for name, module in reversed(st.modules):
        if name == first:
            found = module
            break
    else:
        found = st.engine.static_modules.get(first)
    for name in path[1:]:
        if found is None:
            break
        found = found.modules.get(name)
    if found is None:
        label = "::".join(path)
        raise EvalError(
            "ErrorModuleNotFound", f"Module not found: {label}", fields={"module": label}
        )
    return found


def qualified(st: RunState, path: tuple[str, ...], name: str) -> Any:
    """`a::b::NAME`."""
    if path == ("global",):
        if name in st.globals:
            return share(st.globals[name])
        label = f"global::{name}"
    else:
        module = _module(st, path)
        if name in module.values:
            return share(module.values[name])
        label = "::".join((*path, name))
    raise EvalError(
        "ErrorVariableNotFound", f"Variable not found: {label}", fields={"variable": label}
    )


def call_qualified(st: RunState, path: tuple[str, ...], name: str, *arguments: Any) -> Any:
    """`a::f(x)`."""
    if path == ("global",):
        label = signature(st, f"global::{name}", arguments)
        code = st.program.functions.get((name, len(arguments)))
        if code is None:
            raise not_found(label)
        return code.function(st, None, *arguments)
    module = _module(st, path)
    return module.call(st, "::".join(path), name, arguments)


def import_module(st: RunState, path: Any, alias: str | None) -> None:
    """`import path as alias`."""
    limit = st.limits.max_modules
    if limit is not None and st.modules_used >= limit:
        raise EvalError("ErrorTooManyModules", "Too many modules imported")
    if type(path) is not str:
        raise mismatch(type_name(st, path), "string", 1)
    st.modules_used += 1
    module = st.engine.import_module(st, path)
    if alias is not None:
        st.modules.append((alias, module))


def leave_modules(st: RunState, size: int) -> None:
    """Modules imported in a block end with it."""
    del st.modules[size:]


def export(st: RunState, name: str, value: Any) -> None:
    """`export`."""
    st.exports[name] = value
