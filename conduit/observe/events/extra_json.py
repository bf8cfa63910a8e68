"""Builds the `extra` of a frame: one compact JSON object, compiled per sink (chapter 50, 5.3)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from conduit.observe.labels import rcode_label

if TYPE_CHECKING:
    from conduit.transaction import Transaction

#: Returns one member, `"key":value`, or None when it has no value.
Member = Callable[["Transaction"], "str | None"]
#: Returns the whole object as UTF-8; empty when the sink wants no extra.
ExtraBuilder = Callable[["Transaction"], bytes]

_ESCAPES: Final = {
    **{code: f"\\u{code:04x}" for code in (*range(0x20), *range(0x7F, 0xA0))},
    ord('"'): '\\"',
    ord("\\"): "\\\\",
    ord("\n"): "\\n",
    ord("\r"): "\\r",
    ord("\t"): "\\t",
}
_search_special: Final = re.compile(r'[\x00-\x1f"\\\x7f-\x9f]').search


def json_string(text: str) -> str:
    """Return `text` as a JSON string: only quote, backslash and control characters escaped."""
    if _search_special(text):
        text = text.translate(_ESCAPES)
    return f'"{text}"'


def target_pool(txn: Transaction) -> str | None:
    """Return the pool that the attempt about to start will use, as far as policy has said."""
    return txn.retry_pool if txn.retry_pool is not None else txn.selected_pool


def _text(key: str, value: str | None) -> str | None:
    return None if value is None else f'"{key}":{json_string(value)}'


def _pool(txn: Transaction) -> str | None:
    return _text("pool", txn.selected_pool)


def _next_pool(txn: Transaction) -> str | None:
    return _text("pool", target_pool(txn))


def _backend(txn: Transaction) -> str | None:
    backend = txn.selected_backend
    return None if backend is None else _text("backend", backend.label)


def _attempt_count(txn: Transaction) -> str:
    return f'"attempt_count":{txn.attempt_count}'


def _next_attempt(txn: Transaction) -> str:
    # an additional attempt is at least the second one, also after an answer from the cache
    return f'"attempt_count":{max(2, txn.attempt_count + 1)}'


def _txn_id(txn: Transaction) -> str:
    return f'"txn_id":{txn.id}'


def _qname(txn: Transaction) -> str | None:
    return _text("qname", txn.query.qname_text)


def _rcode(txn: Transaction) -> str | None:
    return None if txn.rcode is None else f'"rcode":"{rcode_label(txn.rcode)}"'


def _client(txn: Transaction) -> str | None:
    address = txn.client_address
    host = f"[{address}]" if ":" in address else address
    return _text("client", f"{host}:{txn.client_port}")


def _answer_source(txn: Transaction) -> str | None:
    return _text("answer_source", txn.answer_source)


def _cache_instance(txn: Transaction) -> str | None:
    return _text("cache_instance", txn.cache_instance)


def _all_tags(txn: Transaction) -> str | None:
    strings = txn.strings or {}
    # a key of both kinds appears once, with its text
    members = [
        f"{json_string(key)}:true"
        for key, value in (txn.flags or {}).items()
        if value is True and key not in strings
    ]
    members.extend(f"{json_string(key)}:{json_string(text)}" for key, text in strings.items())
    return '"tags":{' + ",".join(members) + "}" if members else None


def _chosen_tags(keys: Sequence[str]) -> Member:
    names = [(key, json_string(key)) for key in dict.fromkeys(keys)]

    def build(txn: Transaction) -> str | None:
        flags, strings = txn.flags or {}, txn.strings or {}
        members = []
        for key, name in names:
            if key in strings:
                members.append(f"{name}:{json_string(strings[key])}")
            elif flags.get(key) is True:
                members.append(f"{name}:true")
        return '"tags":{' + ",".join(members) + "}" if members else None

    return build


_MEMBERS: Final[dict[str, Member]] = {
    "pool": _pool,
    "backend": _backend,
    "attempt_count": _attempt_count,
    "txn_id": _txn_id,
    "qname": _qname,
    "rcode": _rcode,
    "client": _client,
    "answer_source": _answer_source,
    "cache_instance": _cache_instance,
}
_RETRY_MEMBERS: Final[dict[str, Member]] = {"pool": _next_pool, "attempt_count": _next_attempt}


def compile_extra(
    fields: Sequence[str], tags: Sequence[str], sink_name: str, retry: bool = False
) -> ExtraBuilder:
    """Compile `extra_fields` and `extra_tags` of one sink.

    With `retry` the object describes the attempt about to start: its number and its pool. No
    `tags`, or `*`, means all tags (chapter 10 section 6.12). Raises ValueError for an unknown name.
    """
    if not fields:
        return lambda txn: b""
    members: list[Member] = []
    for field in dict.fromkeys(fields):
        if field == "sink_name":
            members.append(_constant(f'"sink_name":{json_string(sink_name)}'))
        elif field == "tags":
            members.append(_all_tags if not tags or "*" in tags else _chosen_tags(tags))
        elif field not in _MEMBERS:
            raise ValueError(f"unknown extra field '{field}'")
        else:
            members.append(_RETRY_MEMBERS.get(field, _MEMBERS[field]) if retry else _MEMBERS[field])
    compiled = tuple(members)

    def build(txn: Transaction) -> bytes:
        found = [text for member in compiled if (text := member(txn)) is not None]
        # a lone surrogate, which YAML can spell, has no UTF-8
        return ("{" + ",".join(found) + "}").encode("utf-8", "replace")

    return build


def _constant(text: str) -> Member:
    return lambda txn: text
