"""Functions that work on every value or on the script itself (chapter 36 section 15.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from conduit.rhai.errors import StopScript, arithmetic
from conduit.rhai.natives import ANY, REPLACE
from conduit.rhai.packages.standard import STANDARD
from conduit.rhai.text import debug, display
from conduit.rhai.text import type_name as name_of_type
from conduit.rhai.values import TYPE_NAMES, Array, FnPtr, Map

if TYPE_CHECKING:
    from conduit.rhai.limits import RunState

fn = STANDARD.fn


@fn("type_of", ANY, context=True)
def type_of(st: RunState, value: Any) -> str:
    return name_of_type(st, value)


@fn("to_string", ANY, context=True)
def to_string(st: RunState, value: Any) -> str:
    return display(st, value)


@fn("to_debug", ANY, context=True)
def to_debug(st: RunState, value: Any) -> str:
    return st.sized_string(debug(st, value))


@fn("take", ANY, pure=False, mode=REPLACE)
def take(value: Any) -> tuple[None, Any]:
    return None, value


@fn("exit")
def leave() -> NoReturn:
    raise StopScript()


@fn("exit", ANY)
def leave_with(value: Any) -> NoReturn:
    raise StopScript(value)


@fn("name", FnPtr, getter=True)
def pointer_name(f: FnPtr) -> str:
    return f.name


@fn("is_anonymous", FnPtr, getter=True)
def is_anonymous(f: FnPtr) -> bool:
    return f.is_anonymous


@fn("tag", ANY)
def tag(value: Any) -> int:
    """Tags are not kept: every value has the default one (O-11)."""
    del value
    return 0


@fn("set_tag", ANY, int, pure=False)
def set_tag(value: Any, number: int) -> None:
    del value
    if not -(2**31) <= number < 2**31:
        raise arithmetic(
            f"{number} is too large to fit into a tag (must be between {-(2**31)} and {2**31 - 1})"
        )


for _kind in TYPE_NAMES:
    if _kind is not Map:
        STANDARD.getters[(_kind, "tag")] = tag


def _metadata(st: RunState, name: str | None, count: int | None) -> Array:
    program = st.program
    result = Array()
    entries = [(code, None) for code in program.functions.values()]
    typed = [(code, key[2]) for key, code in program.typed.items()]
    for code, receiver in [*entries, *typed]:
        node = code.node
        if (name is not None and node.name != name) or (
            count is not None and len(node.parameters) != count
        ):
            continue
        entry = Map(
            name=node.name,
            access="private" if node.private else "public",
            is_anonymous=False,
            params=Array(node.parameters),
        )
        if receiver is not None:
            entry["this_type"] = receiver
        result.append(entry)
    return st.built(result)  # type: ignore[no-any-return]


@fn("get_fn_metadata_list", context=True)
def metadata(st: RunState) -> Array:
    return _metadata(st, None, None)


@fn("get_fn_metadata_list", str, context=True)
def metadata_of(st: RunState, name: str) -> Array:
    return _metadata(st, name, None)


@fn("get_fn_metadata_list", str, int, context=True)
def metadata_of_one(st: RunState, name: str, count: int) -> Array:
    return _metadata(st, name, count)
