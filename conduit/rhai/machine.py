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
    call_method,
    call_native,
    call_on_cell,
    call_on_variable,
    call_pointer,
    call_pure,
    call_with_this,
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
from conduit.rhai.indexing import fetch_index, get_index, put_back_index, set_index
from conduit.rhai.machine_errors import (
    catch_value,
    caught_error,
    raise_again,
    stack_overflow,
    throw,
)
from conduit.rhai.machine_modules import (
    call_in_scope,
    call_qualified,
    evaluate,
    export,
    import_module,
    leave_modules,
    qualified,
)
from conduit.rhai.machine_variables import (
    captured,
    keep_global,
    lock,
    locked_read,
    open_for_change,
    read_this,
    set_cell,
    set_this,
    undefined,
    variable_room,
)
from conduit.rhai.properties import (
    fetch_property,
    get_property,
    put_back_property,
    read_property,
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
    from conduit.rhai.calls import Code
    from conduit.rhai.limits import RunState


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
    st.string_room(sum(map(len, parts)))
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
    "read_property": read_property,
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
