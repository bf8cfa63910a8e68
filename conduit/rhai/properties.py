"""Reading and writing `a.p` (chapter 36 section 7.2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from conduit.rhai.calls import as_eval_error
from conduit.rhai.errors import EvalError
from conduit.rhai.indexing import constant_error
from conduit.rhai.text import type_name
from conduit.rhai.values import CONTAINERS, Map, thaw

if TYPE_CHECKING:
    from conduit.rhai.limits import RunState


class PropertySite(dict[type, Callable[[Any], Any]]):
    """One place where a property is read: its name, and the getters of the types met there."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


def read_property(st: RunState, site: PropertySite, value: Any) -> Any:
    """`value.name`, not yet shared; getters are looked up once per type. Raises EvalError."""
    getter = site.get(type(value))
    if getter is not None:
        return getter(value)
    if type(value) is Map:
        return value.get(site.name)
    getter = st.engine.getter(type(value), site.name)
    if getter is not None and len(site) < 64:
        site[type(value)] = getter
    return get_property(st, value, site.name)


def get_property(st: RunState, value: Any, name: str) -> Any:
    """`value.name`, not yet shared. Raises EvalError ``ErrorDotExpr``."""
    kind = type(value)
    if kind is Map:
        return value.get(name)
    engine = st.engine
    getter = engine.getter(kind, name)
    if getter is not None:
        return getter(value)
    indexer = engine.index_getter(kind, str)
    if indexer is not None:
        return indexer(value, name)
    message = (
        f"Unknown property '{name}' - a getter is not registered for type '{type_name(st, value)}'"
    )
    raise EvalError("ErrorDotExpr", message, fields={"property": message})


def set_property(st: RunState, value: Any, name: str, new: Any, const: bool, variable: str) -> Any:
    """Writes `value.name = new`; returns the holder. Errors at choice 1 concern the property, at 2
    the variable.

    Raises EvalError.
    """
    kind = type(value)
    if kind is Map:
        if const:
            raise constant_error(variable, 2)
        value[name] = new
        st.stored(value, new)
        return value
    engine = st.engine
    setter = engine.setter(kind, name)
    if setter is None:
        indexer = engine.index_setter(kind, str, type(new))
        if indexer is not None:
            indexer(value, name, new)
            return value
        message = (
            f"No writable property '{name}' - a setter is not registered for type "
            f"'{type_name(st, value)}' to handle '{type_name(st, new)}'"
        )
        raise EvalError("ErrorDotExpr", message, fields={"property": message}, choice=1)
    if const:
        message = f"Cannot modify property '{name}' of constant"
        raise EvalError("ErrorNonPureMethodCallOnConstant", message, fields={"function": name})
    try:
        setter(value, new)
    except Exception as error:
        failure = as_eval_error(error)
        failure.choice = failure.choice or 1
        raise failure from None
    return value


def fetch_property(st: RunState, value: Any, name: str) -> Any:
    """`value.name` as something that may be changed: a container in a map comes out private."""
    item = get_property(st, value, name)
    if type(item) not in CONTAINERS:
        return item
    if type(value) is not Map:
        # a host's own container changes by its setter or not at all
        return thaw(item)
    if item.frozen:
        if len(item) > 64:
            st.charge(len(item) >> 4)
        item = value[name] = thaw(item)
    return item


def put_back_property(st: RunState, value: Any, name: str, item: Any) -> Any:
    """After a change of `item`, fetched from `value.name`: the holder with it inside."""
    kind = type(value)
    if kind is Map:
        if name in value or item is not None:
            value[name] = item
        return value
    setter = st.engine.setter(kind, name)
    if setter is not None:
        setter(value, item)
        return value
    indexer = st.engine.index_setter(kind, str, type(item))
    if indexer is not None:
        indexer(value, name, item)
    return value
