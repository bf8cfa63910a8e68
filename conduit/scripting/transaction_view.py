"""The `txn` object of scripts: what it reads and what it may write (chapter 35 section 9).

Reads come from the transaction as it stands: nothing changes it while a script runs, because the
script's own writes wait in its effects until it has succeeded.
"""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING, Final

from conduit.config.address import parse_source_address
from conduit.policy.sampling import BUCKETS, global_bucket, salted_bucket, threshold
from conduit.rhai import Array, Map, StopScript
from conduit.scripting.effects import CLEARED, Effects
from conduit.scripting.enums import (
    DnsOpcode,
    EdnsOptionCode,
    QueryClass,
    Rcode,
    RecordType,
)

if TYPE_CHECKING:
    from conduit.transaction import Transaction

_SERVFAIL: Final = 2
_AA: Final = 0x04
_TC: Final = 0x02


class HostError(Exception):
    """A host call cannot be carried out; the script may catch it."""


class TransactionView:
    """One script run's view of its transaction; copies of it share the same effects."""

    __slots__ = ("_decisions", "_on_response", "_rule_name", "_txn", "effects")

    def __init__(
        self, txn: Transaction, effects: Effects, rule_name: str, on_response: bool
    ) -> None:
        self._txn = txn
        self.effects = effects
        self._rule_name = rule_name
        self._on_response = on_response
        self._decisions: dict[tuple[int, str], bool] = {}

    # client and listener

    def client_addr(self) -> str:
        """Return `ip:port`, IPv6 in brackets."""
        address = self._txn.client_address
        host = f"[{address}]" if ":" in address else address
        return f"{host}:{self.client_port()}"

    def client_ip(self) -> str:
        """Return the client's address."""
        return self._txn.client_address

    def client_port(self) -> int:
        """Return the client's port."""
        return self._txn.client_port

    def client_protocol(self) -> str:
        """Return `udp` or `tcp`."""
        return self._txn.listener.protocol

    def listener(self) -> str:
        """Return the listener's label."""
        return self._txn.listener.label

    # question and response

    def question(self) -> Map:
        """Return the client's question; keys that are not known are absent."""
        query = self._txn.query
        found = Map(
            qname=query.qname_text,
            qtype=RecordType(query.qtype),
            qclass=QueryClass(query.qclass),
            opcode=DnsOpcode(query.opcode),
            id=query.id,
        )
        options = _option_codes(query.wire, query.opt_offset)
        if options:
            found["edns_options"] = Array(EdnsOptionCode(code) for code in options)
        return found

    def response(self) -> Map:
        """Return the present attempt's response; raises HostError on the request hook."""
        if not self._on_response:
            raise HostError("response() is not available in request phase")
        txn = self._txn
        found = self.question()
        if txn.rcode is not None:
            found["rcode"] = Rcode(txn.rcode)
        if txn.selected_pool is not None:
            found["pool"] = txn.selected_pool
        backend = txn.selected_backend
        if backend is not None:
            found["backend"] = backend.key
            found["backend_name"] = backend.label
        if txn.answer_source is not None:
            found["answer_source"] = txn.answer_source
        if txn.cache_instance is not None:
            found["cache_instance"] = txn.cache_instance
        answer = self._answer()
        if answer is not None:
            found["answer_count"] = (answer[6] << 8) | answer[7]
            found["authority_count"] = (answer[8] << 8) | answer[9]
            found["additional_count"] = (answer[10] << 8) | answer[11]
            found["truncated"] = bool(answer[2] & _TC)
            found["authoritative"] = bool(answer[2] & _AA)
        return found

    def response_rcode(self) -> Rcode | None:
        """Return the rcode, or unit on the request hook and when there is none."""
        rcode = self._txn.rcode
        return Rcode(rcode) if self._on_response and rcode is not None else None

    def response_truncated(self) -> bool:
        """Return the TC bit of the answer."""
        answer = self._answer()
        return answer is not None and bool(answer[2] & _TC)

    def response_authoritative(self) -> bool:
        """Return the AA bit of the answer."""
        answer = self._answer()
        return answer is not None and bool(answer[2] & _AA)

    def response_answer_count(self) -> int:
        """Return the number of answer records, -1 without an answer."""
        return self._count(6)

    def response_authority_count(self) -> int:
        """Return the number of authority records, -1 without an answer."""
        return self._count(8)

    def response_additional_count(self) -> int:
        """Return the number of additional records, -1 without an answer."""
        return self._count(10)

    def _answer(self) -> bytes | None:
        answer = self._txn.answer
        return answer if self._on_response and answer is not None and len(answer) >= 12 else None

    def _count(self, offset: int) -> int:
        answer = self._answer()
        return -1 if answer is None else (answer[offset] << 8) | answer[offset + 1]

    # where the answer came from

    def answer_source(self) -> str:
        """Return `cache`, `forward` or the empty string."""
        return (self._txn.answer_source or "") if self._on_response else ""

    def cache_instance(self) -> str:
        """Return the cache that answered, or the empty string."""
        return (self._txn.cache_instance or "") if self._on_response else ""

    def selected_pool(self) -> str:
        """Return the selected pool, without what this run has set."""
        return self._txn.selected_pool or ""

    def selected_backend(self) -> str:
        """Return the address of the selected backend, or the empty string."""
        backend = self._txn.selected_backend
        return backend.key if backend is not None else ""

    def selected_backend_name(self) -> str:
        """Return the name of the selected backend, its address, or the empty string."""
        backend = self._txn.selected_backend
        return backend.label if backend is not None else ""

    def set_lookup_profile(self, name: str) -> None:
        """Choose the lookup profile; no effect on the response hook, where it is locked."""
        if not self._on_response:
            self.effects.lookup_profile = name

    def set_cache_lookup_eligible(self, eligible: bool) -> None:
        """Let cache providers answer this query, or bypass them; no effect on the response hook."""
        if not self._on_response:
            self.effects.cache_eligible = eligible

    # routing

    def set_pool(self, name: str) -> None:
        """Select a pool for the next Route."""
        self.effects.pool = name

    def clear_pool(self) -> None:
        """Go back to the default pool."""
        self.effects.pool = None

    def set_retry_pool(self, name: str) -> None:
        """Stash a pool for the next retry."""
        self.effects.retry_pool = name

    def clear_retry_pool(self) -> None:
        """Drop the stashed pool."""
        self.effects.retry_pool = None

    # egress

    def set_source_v4(self, address: str) -> None:
        """Bind IPv4 forwards to `address`; request hook only."""
        self._request_only("set_source_v4")
        self.effects.source_v4 = _source("set_source_v4", address, "IPv4")

    def set_source_v6(self, address: str) -> None:
        """Bind IPv6 forwards to `address`; request hook only."""
        self._request_only("set_source_v6")
        self.effects.source_v6 = _source("set_source_v6", address, "IPv6")

    def set_retry_source_v4(self, address: str) -> None:
        """Bind the next IPv4 retry to `address`."""
        self.effects.retry_source_v4 = _source("set_retry_source_v4", address, "IPv4")

    def set_retry_source_v6(self, address: str) -> None:
        """Bind the next IPv6 retry to `address`."""
        self.effects.retry_source_v6 = _source("set_retry_source_v6", address, "IPv6")

    def clear_retry_source_v4(self) -> None:
        """Drop the stashed IPv4 source."""
        self.effects.retry_source_v4 = None

    def clear_retry_source_v6(self) -> None:
        """Drop the stashed IPv6 source."""
        self.effects.retry_source_v6 = None

    def _request_only(self, method: str) -> None:
        if self._on_response:
            raise HostError(f"{method}() is not available in response phase")

    # outcomes

    def drop_query(self) -> None:
        """Soft drop."""
        self.effects.soft_drop = True

    def drop_query_now(self) -> None:
        """Hard drop: the script ends here."""
        self.effects.hard_drop = True
        raise StopScript

    def clear_drop(self) -> None:
        """Cancel a soft drop of this rule."""
        self.effects.soft_drop = False

    def request_retry(self) -> None:
        """Soft retry; no effect on the request hook."""
        if self._on_response:
            self.effects.soft_retry = True

    def request_retry_now(self) -> None:
        """Hard retry: the script ends here; no effect on the request hook."""
        if self._on_response:
            self.effects.hard_retry = True
            raise StopScript

    def clear_retry(self) -> None:
        """Cancel a soft retry of this rule."""
        if self._on_response:
            self.effects.soft_retry = False

    def set_rcode(self, rcode: Rcode | str) -> None:
        """Set the transaction's rcode; an unknown name is SERVFAIL."""
        if isinstance(rcode, Rcode):
            self.effects.rcode = rcode.value
            return
        try:
            self.effects.rcode = Rcode.family.parse(rcode)
        except ValueError:
            self.effects.rcode = _SERVFAIL

    # tags

    def set_tag(self, key: str, value: bool | str) -> None:
        """Set a boolean tag, or a string tag."""
        self.effects.write_tag(key, value)

    def clear_tag(self, key: str) -> None:
        """Remove a tag."""
        self.effects.write_tag(key, CLEARED)

    def has_tag(self, key: str) -> bool:
        """Tell whether a tag is there, this run's own writes first."""
        written = self.effects.tags
        if written is not None and key in written:
            value = written[key]
            return value is True or isinstance(value, str)
        return self._txn.has_tag(key)

    # sampling and cadence

    def sample_percent(self, percent: float, key: str = "") -> bool:
        """Sample by transaction id; True also sets the tag `sampled`."""
        clamped = min(100.0, max(0.0, percent)) if percent == percent else 0.0
        hundredths = int(clamped * 100 + 0.5)
        decision = self._decisions.get((hundredths, key))
        if decision is None:
            limit = threshold(hundredths / 100)
            if limit in (0, BUCKETS):
                decision = limit == BUCKETS
            elif key:
                decision = salted_bucket(self._txn.id, key.encode("utf-8")) < limit
            else:
                decision = global_bucket(self._txn.id) < limit
            self._decisions[(hundredths, key)] = decision
            if decision:
                self.effects.write_tag("sampled", True)
        return decision

    def sample_percent_for_qname(self, percent: float) -> bool:
        """Sample with the qname as salt."""
        return self.sample_percent(percent, self._txn.query.qname_text)

    def sample_percent_for_rule(self, percent: float) -> bool:
        """Sample with the rule's name as salt."""
        return self.sample_percent(percent, self._rule_name)

    def every_nth_worker(self, every: int) -> bool:
        """Tell whether the worker's query index is divisible by `every`."""
        return self._txn.worker_index % _cadence(every) == 0

    def every_nth_global(self, every: int) -> bool:
        """Tell whether the global query index is divisible by `every`."""
        return self._txn.id % _cadence(every) == 0

    # clocks and identity

    def elapsed_ms(self) -> int:
        """Return the milliseconds since the transaction started, live."""
        return int((time.monotonic() - self._txn.started) * 1000)

    def last_forward_ms(self) -> int:
        """Return the time of the latest forward attempt in milliseconds."""
        return self._txn.last_rtt_ms

    def get_attempt_count(self) -> int:
        """Return the number of forward attempts started."""
        return self._txn.attempt_count

    def now_unix(self) -> int:
        """Return the UTC seconds when the query was received."""
        return int(self._txn.received)

    def utc_hour(self) -> int:
        """Return the UTC hour when the query was received, 0 to 23."""
        return time.gmtime(self._txn.received).tm_hour

    def utc_weekday(self) -> int:
        """Return the UTC weekday when the query was received, Monday is 1."""
        return time.gmtime(self._txn.received).tm_wday + 1

    def txn_id(self) -> int:
        """Return the transaction id, as in logs and traces."""
        return self._txn.id

    def config_generation(self) -> int:
        """Return the generation of the transaction's snapshot."""
        return self._txn.snapshot.generation

    def rule_name(self) -> str:
        """Return the name of the rule that runs the script."""
        return self._rule_name


def _option_codes(wire: bytes, opt_offset: int) -> list[int]:
    """Return the EDNS option codes of a well-formed query in wire order."""
    if opt_offset < 0:
        return []
    offset = opt_offset + 11
    end = offset + ((wire[offset - 2] << 8) | wire[offset - 1])
    codes: list[int] = []
    while offset + 4 <= end:
        codes.append((wire[offset] << 8) | wire[offset + 1])
        offset += 4 + ((wire[offset + 2] << 8) | wire[offset + 3])
    return codes


def _source(method: str, address: str, family: str) -> str:
    number = socket.AF_INET if family == "IPv4" else socket.AF_INET6
    try:
        return parse_source_address(address, number)
    except ValueError:
        raise HostError(f"{method}: '{address}' is not a valid {family} address") from None


def _cadence(every: int) -> int:
    if every < 1:
        raise HostError("every_nth value must be >= 1")
    return every
