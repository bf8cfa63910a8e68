"""Turns decoded dnstap frames into plain dictionaries and one-line texts, for people to read.

Uses dnspython, so it stays off the query path: only the tracer imports it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Final

import dns.exception
import dns.flags
import dns.message
import dns.opcode
import dns.rcode
import dns.rdataclass
import dns.rdatatype
import dns.rrset

from conduit.observe.events.dnstap_decode import FAMILIES, PROTOCOLS, Frame, Message, address_text
from conduit.observe.logging import strip_control

#: A value as JSON and YAML know them.
Plain = str | int | float | bool | None | list["Plain"] | dict[str, "Plain"]

_SECTIONS: Final = ("answer", "authority", "additional")


def describe_frame(frame: Frame) -> dict[str, Plain]:
    """Return everything in a frame as a dictionary of plain values; absent fields are left out."""
    message = frame.message
    found: dict[str, Plain] = {"type": message.type_name}
    for key, octets in (("identity", frame.identity), ("version", frame.version)):
        if octets is not None:
            found[key] = octets.decode("utf-8", "replace")
    if frame.extra is not None:
        found["extra"] = _extra(frame.extra)
    found.update(_socket(message))
    for key, seconds, nanoseconds in (
        ("query_time", message.query_time_sec, message.query_time_nsec),
        ("response_time", message.response_time_sec, message.response_time_nsec),
    ):
        if seconds is not None:
            found[key] = _time_text(seconds, nanoseconds or 0)
    for key, wire in (
        ("query_message", message.query_message),
        ("response_message", message.response_message),
    ):
        if wire is not None:
            found[key] = describe_message(wire)
    return found


def _extra(octets: bytes) -> Plain:
    try:
        parsed: Plain = json.loads(octets)
        return parsed
    except ValueError:
        return octets.decode("utf-8", "replace")


def _socket(message: Message) -> dict[str, Plain]:
    found: dict[str, Plain] = {}
    if message.socket_family is not None:
        found["socket_family"] = FAMILIES.get(message.socket_family, str(message.socket_family))
    if message.socket_protocol is not None:
        found["socket_protocol"] = PROTOCOLS.get(
            message.socket_protocol, str(message.socket_protocol)
        )
    for key, value in (
        ("query_address", address_text(message.query_address)),
        ("query_port", message.query_port),
        ("response_address", address_text(message.response_address)),
        ("response_port", message.response_port),
    ):
        if value is not None:
            found[key] = value
    return found


def _time_text(seconds: int, nanoseconds: int) -> str:
    try:
        day = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    except (OverflowError, OSError, ValueError):
        return f"{seconds}.{nanoseconds:09d}"
    return f"{day}.{nanoseconds:09d}Z"


def describe_message(wire: bytes) -> dict[str, Plain]:
    """Return header, question and sections of a DNS message, or `error` and the octets in hex."""
    try:
        return _sections(dns.message.from_wire(wire, ignore_trailing=True), len(wire))
    except (dns.exception.DNSException, ValueError) as error:
        return {"error": str(error) or type(error).__name__, "octets": wire.hex()}


def _sections(message: dns.message.Message, size: int) -> dict[str, Plain]:
    found: dict[str, Plain] = {
        "id": message.id,
        "opcode": dns.opcode.to_text(message.opcode()),
        "rcode": dns.rcode.to_text(message.rcode()),
        "flags": dns.flags.to_text(message.flags),
        "size": size,
        "question": [
            f"{entry.name} {dns.rdataclass.to_text(entry.rdclass)} "
            f"{dns.rdatatype.to_text(entry.rdtype)}"
            for entry in message.question
        ],
    }
    for name, section in zip(
        _SECTIONS, (message.answer, message.authority, message.additional), strict=True
    ):
        found[name] = _records(section)
    if message.edns >= 0:
        found["edns"] = {
            "version": message.edns,
            # dnspython gives an enum of record classes
            "payload": int(message.payload),
            "flags": dns.flags.edns_to_text(message.ednsflags),
            "options": [option.to_text() for option in message.options],
        }
    return found


def _records(section: list[dns.rrset.RRset]) -> list[Plain]:
    return [line for rrset in section for line in rrset.to_text().splitlines()]


def frame_line(described: Mapping[str, Plain]) -> str:
    """Return a described frame as one line: time, type, client, question, outcome, extra."""
    parts = [
        str(described.get("response_time") or described.get("query_time") or "-"),
        str(described["type"]),
        str(described.get("socket_protocol", "-")).lower(),
        _endpoint(described),
    ]
    if "identity" in described:
        parts.append(f"identity={described['identity']}")
    message = described.get("response_message") or described.get("query_message")
    if isinstance(message, dict):
        parts.extend(_message_parts(message, "response_message" in described))
    if "extra" in described:
        extra = json.dumps(described["extra"], separators=(",", ":"), ensure_ascii=False)
        parts.append(f"extra={extra}")
    return strip_control(" ".join(parts))


def _endpoint(described: Mapping[str, Plain]) -> str:
    address = str(described.get("query_address", "-"))
    host = f"[{address}]" if ":" in address else address
    return f"{host}:{described.get('query_port', '-')}"


def _message_parts(message: Mapping[str, Plain], is_response: bool) -> list[str]:
    if "error" in message:
        return [f"undecodable={message['error']}", f"octets={message['octets']}"]
    parts = [f"id={message['id']}", f"opcode={message['opcode']}"]
    if is_response:
        parts.append(f"rcode={message['rcode']}")
    parts.append(f"flags={str(message['flags']).replace(' ', ',')}")
    question = message["question"]
    if isinstance(question, list):
        parts.append("question=" + (",".join(str(entry) for entry in question) or "-"))
    for name in _SECTIONS:
        records = message[name]
        if isinstance(records, list) and records:
            parts.append(f"{name}=" + json.dumps(records, ensure_ascii=False))
    return parts


def question_names(frame: Frame) -> list[str]:
    """Return the names asked for in a frame's messages, in lower case with the final dot."""
    names: list[str] = []
    for wire in (frame.message.query_message, frame.message.response_message):
        if wire is None:
            continue
        try:
            message = dns.message.from_wire(wire, question_only=True, ignore_trailing=True)
        except (dns.exception.DNSException, ValueError):
            continue
        names.extend(entry.name.to_text().lower() for entry in message.question)
    return names
