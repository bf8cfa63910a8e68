"""What compiled scripts call: the names in their global namespace and nothing else.

There are no Python builtins among them but the few named here, so that even a fault of the compiler
could not hand a script the interpreter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from conduit.rhai import comparison, operators
from conduit.rhai.calls import (
    Program,
    as_eval_error,
    call_method,
    call_native,
    call_on_cell,
    call_on_variable,
    call_pointer,
    call_pure,
    call_with_this,
    in_call,
    line_of,
    placed,
    pointer_method,
    private,
    wrapped,
)
from conduit.rhai.errors import (
    UNCATCHABLE,
    EvalError,
    ParseError,
    from_parse_error,
    mismatch,
    not_found,
)
from conduit.rhai.indexing import constant_error, fetch_index, get_index, put_back_index, set_index
from conduit.rhai.properties import (
    fetch_property,
    get_property,
    put_back_property,
    set_property,
)
from conduit.rhai.scope import Scope
from conduit.rhai.text import debug, display, raw, signature, type_name
from conduit.rhai.tokens import ALL_RESERVED, KEYWORDS, is_identifier
from conduit.rhai.values import (
    CONTAINERS,
    I64_MAX,
    MISSING,
    Array,
    Blob,
    Byte,
    Cell,
    Char,
    FnPtr,
    InclusiveRange,
    Map,
    Range,
    Sequence,
    share,
)

if TYPE_CHECKING:
    from conduit.rhai.calls import Code, Positions
    from conduit.rhai.limits import RunState


# Variables


def undefined(st: RunState, name: str) -> Any:
    """A name that no variable has: a global of the host, or an error."""
    values = st.engine.global_values
    if name in values:
        return share(values[name])
    raise EvalError(
        "ErrorVariableNotFound", f"Variable not found: {name}", fields={"variable": name}
    )


def data_race(name: str) -> EvalError:
    """The error of touching a variable while a chain rooted at it runs calls."""
    return EvalError(
        "ErrorDataRace", "Data race detected", fields={"variable": name}, positionless=True
    )


def locked_read(st: RunState, cell: Cell, name: str) -> Any:
    """Reading a box that is locked or does not exist."""
    if cell is MISSING:
        return undefined(st, name)
    raise data_race(name)


def set_cell(st: RunState, cell: Cell, value: Any, name: str) -> None:
    """`name = value` of a boxed variable."""
    if cell.locked:
        if cell is MISSING:
            if name in st.engine.global_values:
                raise constant_error(name)
            undefined(st, name)
        raise data_race(name)
    if cell.const:
        raise constant_error(name)
    cell.value = value


def open_for_change(st: RunState, cell: Cell, name: str) -> Any:
    """The content of a box that an `op=` is about to change."""
    if cell.locked:
        if cell is MISSING and name in st.engine.global_values:
            raise constant_error(name)
        locked_read(st, cell, name)
    if cell.const:
        raise constant_error(name)
    value = cell.value
    if type(value) in CONTAINERS and value.frozen:
        value = cell.value = private(st, value)
    return value


def lock(st: RunState, cell: Cell, name: str) -> None:
    """Locks a shared variable while the calls of a chain rooted at it run."""
    if cell.locked:
        if cell is MISSING:
            undefined(st, name)
        raise data_race(name)
    cell.locked = True


def read_this(this: Cell | None) -> Any:
    """`this`."""
    if this is None:
        raise EvalError("ErrorUnboundThis", "'this' not bound")
    return this.value


def set_this(this: Cell | None, value: Any) -> None:
    """`this = value`."""
    if this is None:
        raise EvalError("ErrorUnboundThis", "'this' not bound")
    if this.const:
        raise constant_error("")
    this.value = value


def variable_room(st: RunState, count: int) -> None:
    """Checks the number of variables in scope."""
    limit = st.limits.max_variables
    if limit is not None and count > limit:
        raise EvalError("ErrorTooManyVariables", "Too many variables defined")


def captured(st: RunState, cell: Cell, name: str) -> Cell:
    """The box of a variable that a closure captures now."""
    if cell is MISSING:
        if name in st.engine.global_values:
            return Cell(share(st.engine.global_values[name]), const=True)
        undefined(st, name)
    cell.shared = True
    return cell


def keep_global(st: RunState, name: str, value: Any) -> None:
    """A top-level constant, for `global::NAME`."""
    st.globals[name] = value


# Values


def not_bool(st: RunState, value: Any) -> Any:
    """Refuses a condition that is no bool."""
    raise mismatch(type_name(st, value), "bool")


def make_array(st: RunState, items: list[Any]) -> Array:
    """An array of these items."""
    return st.built(Array(items))  # type: ignore[no-any-return]


def make_map(st: RunState, items: dict[str, Any]) -> Map:
    """A map of these entries."""
    return st.built(Map(items))  # type: ignore[no-any-return]


def text_of(st: RunState, value: Any) -> str:
    """The text of an interpolated value."""
    return display(st, value)


def template(st: RunState, parts: list[str]) -> str:
    """An interpolated text."""
    return st.sized_string("".join(parts))


def make_closure(code: Code, cells: tuple[Cell, ...]) -> FnPtr:
    """A closure over these boxes."""
    return FnPtr(code.name, code, cells)


def make_pointer(st: RunState, name: Any) -> FnPtr:
    """`Fn(name)`. Raises EvalError."""
    if type(name) is not str:
        raise not_found(signature(st, "Fn", (name,)))
    if name in KEYWORDS or name in ALL_RESERVED:
        error = ParseError("parse:Reserved", f"'{name}' is a reserved keyword", None)
        failure = from_parse_error(error)
        failure.positionless = False
        raise failure
    if is_identifier(name):
        return FnPtr(name)
    if re.fullmatch(r"[-+*/%<>=!&|^.?:~@#$]+", name):
        error = ParseError("parse:Reserved", f"'{name}' is a reserved symbol", None)
        failure = from_parse_error(error)
        failure.positionless = False
        raise failure
    raise not_found(name)


def call_value(st: RunState, pointer: Any, *arguments: Any) -> Any:
    """`call(f, a)`."""
    if type(pointer) is not FnPtr:
        raise mismatch(type_name(st, pointer), "Fn", 1)
    return call_pointer(st, pointer, arguments, None)


def curry(st: RunState, pointer: Any, *arguments: Any) -> FnPtr:
    """`curry(f, a)`."""
    if type(pointer) is not FnPtr:
        raise mismatch(type_name(st, pointer), "Fn", 1)
    if len(pointer.curried) + len(arguments) > 256:
        raise not_found(signature(st, pointer.name, arguments))
    return FnPtr(pointer.name, pointer.code, pointer.cells, (*pointer.curried, *arguments))


# Loops


def count_up(st: RunState, a: Any, b: Any) -> Iterable[Any]:
    """What `for` goes over for `a..b`."""
    if type(a) is int and type(b) is int:
        return range(a, b)
    return iterate(st, operators.exclusive_range(st, a, b))


def count_up_to(st: RunState, a: Any, b: Any) -> Iterable[Any]:
    """What `for` goes over for `a..=b`."""
    if type(a) is int and type(b) is int:
        return range(a, min(b, I64_MAX) + 1)
    return iterate(st, operators.inclusive_range(st, a, b))


def iterate(st: RunState, value: Any) -> Iterable[Any]:
    """What `for` goes over. Raises EvalError ``ErrorFor``."""
    kind = type(value)
    if kind is Array:
        value.frozen = True
        if len(value) > 64:
            st.charge(len(value) >> 4)
        if value.nested or any(type(item) in CONTAINERS for item in value):
            return map(share, value)
        return value  # type: ignore[no-any-return]
    if kind is str:
        return map(Char, value)
    if kind is Range or kind is InclusiveRange:
        return value.python_range()  # type: ignore[no-any-return]
    if kind is Sequence:
        return value  # type: ignore[no-any-return]
    if kind is Blob:
        return map(Byte, bytes(value))
    iterator = st.engine.iterators.get(kind)
    if iterator is not None:
        return iterator(value)
    raise EvalError("ErrorFor", "For loop expects iterable type")


# Errors


def throw(st: RunState, value: Any) -> None:
    """`throw value`."""
    text = raw(st, value)
    message = f"Runtime error: {text}" if text else "Runtime error"
    raise EvalError("ErrorRuntime", message, value=value)


def caught_error(st: RunState, error: Exception, positions: Positions) -> EvalError:
    """The error that a handler got; raised again if the language does not let it be caught."""
    failure = placed(error, positions, line_of(error.__traceback__))
    if not failure.catchable:
        raise failure.with_traceback(None)
    return failure


def catch_value(st: RunState, failure: EvalError) -> Any:
    """The value of the catch variable."""
    bottom = failure.innermost
    if bottom.kind == "ErrorRuntime":
        return share(bottom.value)
    result = Map({"error": failure.kind, "message": failure.message})
    result.update(failure.fields)
    if st.program.source:
        result["source"] = st.program.source
    if failure.position is not None:
        result["line"], result["position"] = failure.position
    return result


def raise_again(failure: EvalError) -> None:
    """`throw` alone inside a handler."""
    failure.position = None
    failure.positionless = False
    failure.choice = 0
    raise failure.with_traceback(None)


def stack_overflow() -> None:
    """Too many call levels."""
    raise EvalError("ErrorStackOverflow", "Stack overflow")


# Hooks and reflection


def print_text(st: RunState, value: Any = None) -> None:
    """`print(value)`."""
    st.print(display(st, value))


def debug_text(st: RunState, line: int, column: int, *value: Any) -> None:
    """`debug(value)`."""
    st.debug(debug(st, value[0]) if value else "", st.program.source, line, column)


def is_def_var(st: RunState, env: Scope, name: Any) -> bool:
    """`is_def_var(name)`."""
    if type(name) is not str:
        raise mismatch(type_name(st, name), "string")
    return name in env


def is_def_fn(st: RunState, program: Program, *arguments: Any) -> bool:
    """`is_def_fn(name, n)` and `is_def_fn(type, name, n)`."""
    *names, count = arguments
    for name in names:
        if type(name) is not str:
            raise mismatch(type_name(st, name), "string")
    if type(count) is not int:
        raise mismatch(type_name(st, count), "i64")
    if len(names) == 2:
        kind = {"int": "i64", "float": "f64"}.get(names[0], names[0])
        return (names[1], count, kind) in program.typed
    return (names[0], count) in program.functions


# Code from code


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


#: The globals of compiled code.
MACHINE: Final[dict[str, Any]] = {
    "Array": Array,
    "CONSTANT": Cell(const=True),
    "Cell": Cell,
    "Exception": Exception,
    "MISSING": MISSING,
    "Map": Map,
    "Scope": Scope,
    "UNCATCHABLE": UNCATCHABLE,
    "call_in_scope": call_in_scope,
    "call_method": call_method,
    "call_native": call_native,
    "call_on_cell": call_on_cell,
    "call_on_variable": call_on_variable,
    "call_pure": call_pure,
    "call_qualified": call_qualified,
    "call_value": call_value,
    "call_with_this": call_with_this,
    "captured": captured,
    "catch_value": catch_value,
    "caught_error": caught_error,
    "count_up": count_up,
    "count_up_to": count_up_to,
    "curry": curry,
    "debug_text": debug_text,
    "enumerate": enumerate,
    "evaluate": evaluate,
    "export": export,
    "fetch_index": fetch_index,
    "fetch_property": fetch_property,
    "get_index": get_index,
    "get_property": get_property,
    "import_module": import_module,
    "int": int,
    "is_def_fn": is_def_fn,
    "is_def_var": is_def_var,
    "iterate": iterate,
    "keep_global": keep_global,
    "leave_modules": leave_modules,
    "len": len,
    "lock": lock,
    "locked_read": locked_read,
    "make_array": make_array,
    "make_closure": make_closure,
    "make_map": make_map,
    "make_pointer": make_pointer,
    "not_bool": not_bool,
    "op_add": operators.add,
    "op_and": operators.bit_and,
    "op_divide": operators.divide,
    "op_equal": comparison.equal,
    "op_greater": comparison.greater,
    "op_greater_equal": comparison.greater_equal,
    "op_less": comparison.less,
    "op_less_equal": comparison.less_equal,
    "op_multiply": operators.multiply,
    "op_negate": operators.negate,
    "op_not": operators.invert,
    "op_or": operators.bit_or,
    "op_plus": operators.plus,
    "op_power": operators.power,
    "op_range": operators.exclusive_range,
    "op_range_inclusive": operators.inclusive_range,
    "op_remainder": operators.remainder,
    "op_shift_left": operators.shift_left,
    "op_shift_right": operators.shift_right,
    "op_subtract": operators.subtract,
    "op_unequal": comparison.unequal,
    "op_xor": operators.bit_xor,
    "open_for_change": open_for_change,
    "pointer_method": pointer_method,
    "print_text": print_text,
    "private": private,
    "put_back_index": put_back_index,
    "put_back_property": put_back_property,
    "qualified": qualified,
    "raise_again": raise_again,
    "raw_text": raw,
    "read_this": read_this,
    "set_cell": set_cell,
    "set_index": set_index,
    "set_property": set_property,
    "set_this": set_this,
    "share": share,
    "stack_overflow": stack_overflow,
    "str": str,
    "template": template,
    "text_of": text_of,
    "throw": throw,
    "tuple": tuple,
    "type": type,
    "undefined": undefined,
    "variable_room": variable_room,
    "wrapped": wrapped,
}
