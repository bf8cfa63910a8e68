"""Probe messages: what is sent, and whether a reply answers it (chapter 60 section 11)."""

from __future__ import annotations

from conduit.upstream.health.settings import HealthSettings
from conduit.wire import message_decodes, reply_matches

_CLASS_IN = b"\0\1"


def probe_question(settings: HealthSettings) -> bytes:
    """Return the question of a backend's probes in wire form."""
    return settings.probe.qname + settings.probe.qtype.to_bytes(2, "big") + _CLASS_IN


def build_probe(probe_id: int, settings: HealthSettings) -> bytes:
    """Return a probe: QUERY, RD set, one question, no EDNS."""
    header = probe_id.to_bytes(2, "big") + b"\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00"
    return header + probe_question(settings)


def judge_reply(reply: bytes, probe_id: int, settings: HealthSettings) -> bool | None:
    """Return True for success, False for a refused rcode, None for what answers no probe."""
    if not reply_matches(reply, probe_id, probe_question(settings)):
        return None
    # a reply without a question is no proof that this probe was answered
    if not (reply[4] or reply[5]) or not message_decodes(reply):
        return None
    accepted = settings.acceptable_rcodes
    return not accepted or (reply[3] & 0xF) in accepted
