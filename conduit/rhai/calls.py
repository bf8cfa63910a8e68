"""Calls at run time: script functions, natives, methods and function pointers.

Resolution follows chapter 36 section 9.1. Compiled scripts know their own functions; what depends
on types is found here and remembered per place of call (`Site`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

from conduit.rhai.errors import (
    EvalError,
    ParseError,
    Position,
    from_parse_error,
    mismatch,
    not_found,
    runtime,
)
from conduit.rhai.natives import IN_PLACE, REPLACE, Native
from conduit.rhai.text import signature, type_name
from conduit.rhai.values import CONTAINERS, Cell, FnPtr, Map, share, thaw

if TYPE_CHECKING:
    from conduit.rhai.limits import RunState

Positions = list[tuple[Position | None, ...]]

#: The file name of the code that scripts are compiled to.
COMPILED_NAME = "<rhai>"

#: Type names usable in front of a method's name, as `type_of` spells them.
RECEIVER_NAMES = {"int": "i64", "float": "f64"}


class Code:
    """A compiled function or closure body: `function(st, this, *arguments)`.

    `parameters` counts captured variables too for closures, which come first.
    """

    __slots__ = ("anonymous", "function", "name", "node", "parameters", "positions", "scoped")

    def __init__(self, name: str, parameters: int, positions: Positions, node: Any) -> None:
        self.name = name
        self.anonymous = name.startswith("anon$")
        self.parameters = parameters
        self.positions = positions
        self.node = node
        self.function: Callable[..., Any] = _not_compiled
        self.scoped: Callable[..., Any] | None = None


def _not_compiled(*_: Any) -> Any:
    raise EvalError("ErrorSystem", "function used before the script was ready")


class Program:
    """The functions of one script, by name and number of parameters."""

    __slots__ = ("functions", "scoped", "source", "typed")

    def __init__(self, source: str = "") -> None:
        self.source = source
        self.functions: dict[tuple[str, int], Code] = {}
        self.typed: dict[tuple[str, int, str], Code] = {}
        #: Compiles a function a second time, to run in its caller's scope.
        self.scoped: Callable[[Code], Callable[..., Any]] | None = None

    def method(self, st: RunState, name: str, count: int, value: Any) -> Code | None:
        """The script function that `value.name(…)` means."""
        if self.typed:
            code = self.typed.get((name, count, type_name(st, value)))
            if code is not None:
                return code
        return self.functions.get((name, count))


class Site:
    """One place of call: the name, the program it stands in, and what was found before."""

    __slots__ = ("cache", "count", "name", "program")

    def __init__(self, name: str, count: int, program: Program) -> None:
        self.name = name
        self.count = count
        self.program = program
        self.cache: dict[Any, Native] = {}

    def native(self, st: RunState, arguments: tuple[Any, ...]) -> Native:
        """The native for these arguments. Raises EvalError ``ErrorFunctionNotFound``."""
        types = tuple(map(type, arguments))
        native = self.cache.get(types)
        if native is None:
            native = st.engine.find(self.name, types)
            if native is None:
                raise not_found(signature(st, self.name, arguments))
            if len(self.cache) < 64:
                self.cache[types] = native
        return native


def call_position() -> Position | None:
    """The place in the script of the call that is running now, None outside of any run.

    Costs nothing until asked: it is read off the innermost frame of compiled code.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == COMPILED_NAME:
            positions: Positions = frame.f_globals["POSITIONS"]
            line = frame.f_lineno
            return positions[line - 1][0] if 0 < line <= len(positions) else None
        frame = frame.f_back
    return None


# Errors on their way out


def as_eval_error(error: Exception) -> EvalError:
    """What the language makes of an exception: the engine's own stay, a host's become values."""
    if isinstance(error, EvalError):
        return error
    if isinstance(error, ParseError):
        return from_parse_error(error)
    if isinstance(error, RecursionError):
        return EvalError("ErrorStackOverflow", "Stack overflow")
    if isinstance(error, MemoryError):
        return EvalError("ErrorDataTooLarge", "Length of string too large")
    try:
        text = str(error)
    except Exception:  # a host's exception class may fail at its own text
        text = type(error).__name__
    return runtime(text or type(error).__name__)


def line_of(traceback: TracebackType | None) -> int:
    """The compiled line where the frame at the head of a traceback was left."""
    if traceback is None:
        return 0
    while True:
        following = traceback.tb_next
        # statements that were moved into an inner function belong to the same body
        if following is None or not following.tb_frame.f_code.co_name.startswith("outlined"):
            return traceback.tb_lineno
        traceback = following


def placed(error: Exception, positions: Positions, line: int) -> EvalError:
    """The error, with the position of the compiled line it came from if it has none."""
    failure = as_eval_error(error)
    if failure.position is None and failure.origin is None and 0 < line <= len(positions):
        choices = positions[line - 1]
        failure.origin = choices[min(failure.choice, len(choices) - 1)]
        if not failure.positionless:
            failure.position = failure.origin
    return failure


def wrapped(error: Exception, code: Code) -> EvalError:
    """What leaves a function instead of `error`, which was just caught in it."""
    failure = placed(error, code.positions, line_of(error.__traceback__))
    if not failure.catchable:
        # these stay as they are but are reported at the call
        failure.position = failure.origin = None
        failure.positionless = False
        failure.choice = 0
        return failure
    return in_call(failure, code.name)


def in_call(error: EvalError, name: str) -> EvalError:
    """A call error around `error`."""
    anonymous = name.startswith("anon$")
    return EvalError(
        "ErrorInFunctionCall",
        "in closure call" if anonymous else f"in call to function '{name}'",
        fields={"function": name, "source": ""},
        inner=error,
    )


# Calls by name


def call_native(st: RunState, site: Site, *arguments: Any) -> Any:
    """`f(a)` of a native; every argument is a copy."""
    native = site.native(st, arguments)
    if native.mode:
        return native.call(st, private(st, arguments[0]), *arguments[1:])
    if native.context:
        return native.function(st, *arguments)
    return native.function(*arguments)


def call_on_variable(st: RunState, site: Site, first: Any, *rest: Any) -> tuple[Any, Any]:
    """`f(v, a)` of a native, which may change the plain variable v: (its value, the result)."""
    native = site.native(st, (first, *rest))
    if native.mode:
        return native.call_pair(st, private(st, first), *rest)
    return first, native.call(st, first, *rest)


def call_on_cell(st: RunState, site: Site, cell: Cell, *rest: Any) -> Any:
    """`f(v, a)` where v is boxed: changes it unless it is constant or shared."""
    native = site.native(st, (cell.value, *rest))
    if not native.mode:
        return native.call(st, cell.value, *rest)
    if cell.const or cell.shared:
        return native.call(st, private(st, share(cell.value)), *rest)
    cell.value = private(st, cell.value)
    cell.value, result = native.call_pair(st, cell.value, *rest)
    return result


def private(st: RunState, value: Any) -> Any:
    """`value`, or a copy of it if it is a container that others may see."""
    if type(value) in CONTAINERS and value.frozen:
        if len(value) > 64:
            st.charge(len(value) >> 4)
        return thaw(value)
    return value


# Methods


def _key_function(value: Any, name: str) -> FnPtr | None:
    pointer = value.get(name)
    return pointer if type(pointer) is FnPtr else None


def call_pure(st: RunState, site: Site, value: Any, *arguments: Any) -> Any:
    """`value.m(a)` where no function of that name changes its receiver."""
    if type(value) is Map and type(value.get(site.name)) is FnPtr:
        return call_pointer(st, value[site.name], arguments, Cell(share(value)))
    if arguments:
        native = site.native(st, (value, *arguments))
    else:
        found = site.cache.get(type(value))
        if found is None:
            found = site.native(st, (value,))
            site.cache[type(value)] = found
        native = found
    if native.context:
        return native.function(st, value, *arguments)
    return native.function(value, *arguments)


def call_method(
    st: RunState, site: Site, value: Any, const: bool, *arguments: Any
) -> tuple[Any, Any]:
    """`value.m(a)` of a native that may change its receiver: (the receiver, the result)."""
    if type(value) is Map and type(value.get(site.name)) is FnPtr:
        cell = Cell(private(st, value), const)
        result = call_pointer(st, value[site.name], arguments, cell)
        return cell.value, result
    return _native_method(st, site, value, const, arguments)


def _native_method(
    st: RunState, site: Site, value: Any, const: bool, arguments: tuple[Any, ...]
) -> tuple[Any, Any]:
    native = site.native(st, (value, *arguments))
    if const and not native.pure:
        raise EvalError(
            "ErrorNonPureMethodCallOnConstant",
            f"Non-pure method '{site.name}' cannot be called on constant",
            fields={"function": site.name},
        )
    if native.mode == IN_PLACE:
        if const:
            # a pure one may still hand out its items by reference; the constant keeps its own
            share(value)
        value = private(st, value)
        if native.context:
            return value, native.function(st, value, *arguments)
        return value, native.function(value, *arguments)
    if native.mode == REPLACE:
        return native.call_pair(st, value, *arguments)
    if native.context:
        return value, native.function(st, value, *arguments)
    return value, native.function(value, *arguments)


def call_with_this(st: RunState, site: Site, cell: Cell, *arguments: Any) -> Any:
    """`x.m(a)` in full: x is in `cell`, which holds what becomes of it."""
    value = cell.value
    if type(value) is Map:
        pointer = _key_function(value, site.name)
        if pointer is not None:
            cell.value = private(st, value)
            return call_pointer(st, pointer, arguments, cell)
    code = site.program.method(st, site.name, len(arguments), value)
    if code is not None:
        cell.value = private(st, value)
        return code.function(st, cell, *map(share, arguments))
    cell.value, result = _native_method(st, site, value, cell.const, arguments)
    return result


def pointer_method(st: RunState, site: Site, cell: Cell, *arguments: Any) -> Any:
    """`x.call(…)`: of a function pointer, or of the pointer in the first argument on x."""
    value = cell.value
    if type(value) is FnPtr:
        return call_pointer(st, value, arguments, None)
    if type(value) is Map:
        pointer = _key_function(value, "call")
        if pointer is not None:
            cell.value = private(st, value)
            return call_pointer(st, pointer, arguments, cell)
    if not arguments:
        raise mismatch(type_name(st, value), "Fn")
    if type(arguments[0]) is not FnPtr:
        raise mismatch(type_name(st, arguments[0]), "Fn", 1)
    cell.value = private(st, value)
    return call_pointer(st, arguments[0], arguments[1:], cell)


# Function pointers


def call_pointer(
    st: RunState, pointer: FnPtr, arguments: tuple[Any, ...], this: Cell | None
) -> Any:
    """Calls what the pointer means, with its curried arguments first. Raises EvalError."""
    if pointer.curried:
        arguments = (*pointer.curried, *arguments)
    code = pointer.code
    if code is not None:
        if len(pointer.cells) + len(arguments) != code.parameters:
            raise not_found(signature(st, pointer.name, arguments))
        return code.function(st, this, *pointer.cells, *map(share, arguments))
    name = pointer.name
    program = st.program
    if this is not None and program.typed:
        code = program.method(st, name, len(arguments), this.value)
    else:
        code = program.functions.get((name, len(arguments)))
    if code is not None:
        return code.function(st, this, *map(share, arguments))
    if this is not None:
        native = st.engine.find(name, (type(this.value), *map(type, arguments)))
        if native is not None:
            this.value = private(st, this.value)
            this.value, result = native.call_pair(st, this.value, *arguments)
            return result
        raise not_found(signature(st, name, (this.value, *arguments)))
    native = st.engine.find(name, tuple(map(type, arguments)))
    if native is not None:
        if native.mode:
            arguments = (private(st, share(arguments[0])), *arguments[1:])
        return native.call(st, *arguments)
    raise not_found(signature(st, name, arguments))
