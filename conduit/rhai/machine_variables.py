"""How compiled scripts reach boxed and missing variables and `this` (chapter 36 section 3.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conduit.rhai.calls import (
    private,
)
from conduit.rhai.errors import (
    EvalError,
)
from conduit.rhai.indexing import constant_error
from conduit.rhai.values import (
    CONTAINERS,
    MISSING,
    Cell,
    share,
)

if TYPE_CHECKING:
    from conduit.rhai.limits import RunState


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
