"""What compiled scripts call to throw and to catch (chapter 36 section 11)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conduit.rhai.calls import (
    line_of,
    placed,
)
from conduit.rhai.errors import (
    EvalError,
)
from conduit.rhai.text import raw
from conduit.rhai.values import (
    Map,
    share,
)

if TYPE_CHECKING:
    from conduit.rhai.calls import Positions
    from conduit.rhai.limits import RunState


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
    failure.position = failure.origin = None
    failure.positionless = False
    failure.choice = 0
    raise failure.with_traceback(None)


def stack_overflow() -> None:
    """Too many call levels."""
    raise EvalError("ErrorStackOverflow", "Stack overflow")
