"""Rule actions compiled to steps over a transaction (chapter 30 section 5).

A step returns `GO_ON`, or the hard outcome that ends its rule at once. Soft drop and soft retry
are flags of the transaction that the end of the rule resolves.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from conduit.config import Action
from conduit.config.address import parse_source_address
from conduit.wire.enums import parse_rcode

if TYPE_CHECKING:
    from conduit.transaction import Transaction

GO_ON: Final = 0
DROP_NOW: Final = 1
RETRY_NOW: Final = 2

Step = Callable[["Transaction"], int]


def compile_action(action: Action) -> Step:
    """Compile one validated built-in action (any but `rhai`); raises ValueError otherwise."""
    with_value = _WITH_VALUE.get(action.type)
    if with_value is not None:
        return with_value(action.value)
    step = _PLAIN.get(action.type)
    if step is None:
        raise ValueError(f"unknown action type '{action.type}'")
    return step


def split_tag(text: str) -> tuple[str, str]:
    """Return key and value of a `set_tag` text: split at the first `=`, `true` without one."""
    key, sign, value = text.partition("=")
    return (key, value) if sign else (text, "true")


def _attribute_setter(attribute: str) -> Callable[[str], Step]:
    def compile_step(value: str) -> Step:
        def step(txn: Transaction) -> int:
            setattr(txn, attribute, value)
            return GO_ON

        return step

    return compile_step


def _source_setter(attribute: str, family: int) -> Callable[[str], Step]:
    set_text = _attribute_setter(attribute)
    return lambda value: set_text(parse_source_address(value, family))


def _attribute_clearer(attribute: str) -> Step:
    def step(txn: Transaction) -> int:
        setattr(txn, attribute, None)
        return GO_ON

    return step


def _set_tag(value: str) -> Step:
    key, text = split_tag(value)

    def step(txn: Transaction) -> int:
        txn.set_string(key, text)
        return GO_ON

    return step


def _clear_tag(value: str) -> Step:
    def step(txn: Transaction) -> int:
        txn.clear_tag(value)
        return GO_ON

    return step


def _set_rcode(value: str) -> Step:
    rcode = parse_rcode(value)

    def step(txn: Transaction) -> int:
        txn.rcode = rcode
        return GO_ON

    return step


def _set_lookup_profile(value: str) -> Step:
    def step(txn: Transaction) -> int:
        txn.set_lookup_profile(value)
        return GO_ON

    return step


def _drop(txn: Transaction) -> int:
    txn.soft_drop = True
    return GO_ON


def _clear_drop(txn: Transaction) -> int:
    txn.soft_drop = False
    return GO_ON


def _retry(txn: Transaction) -> int:
    txn.soft_retry = True
    return GO_ON


def _clear_retry(txn: Transaction) -> int:
    txn.soft_retry = False
    return GO_ON


def _drop_now(txn: Transaction) -> int:
    return DROP_NOW


def _retry_now(txn: Transaction) -> int:
    return RETRY_NOW


_WITH_VALUE: Final = {
    "set_pool": _attribute_setter("selected_pool"),
    "set_retry_pool": _attribute_setter("retry_pool"),
    "set_source_v4": _source_setter("source_v4", socket.AF_INET),
    "set_source_v6": _source_setter("source_v6", socket.AF_INET6),
    "set_retry_source_v4": _source_setter("retry_source_v4", socket.AF_INET),
    "set_retry_source_v6": _source_setter("retry_source_v6", socket.AF_INET6),
    "set_tag": _set_tag,
    "clear_tag": _clear_tag,
    "set_rcode": _set_rcode,
    "set_lookup_profile": _set_lookup_profile,
}
_PLAIN: Final = {
    "clear_pool": _attribute_clearer("selected_pool"),
    "clear_retry_pool": _attribute_clearer("retry_pool"),
    "clear_retry_source_v4": _attribute_clearer("retry_source_v4"),
    "clear_retry_source_v6": _attribute_clearer("retry_source_v6"),
    "drop": _drop,
    "drop_now": _drop_now,
    "clear_drop": _clear_drop,
    "retry": _retry,
    "retry_now": _retry_now,
    "clear_retry": _clear_retry,
}
