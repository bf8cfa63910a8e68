"""The probe schedule on a virtual clock (chapter 60 section 11)."""

from __future__ import annotations

import random

from conduit.upstream.health.probe import build_probe, judge_reply
from conduit.upstream.health.schedule import ProbeSchedule
from conduit.upstream.health.settings import HealthTarget
from conduit.upstream.health.state import BackendHealth
from tests.upstream.health.build import targets


class NoJitter(random.Random):
    def randint(self, low: int, high: int) -> int:
        return low


def entries(health: str = "", backends: str = "") -> list[BackendHealth]:
    found: list[HealthTarget] = targets(health, backends)
    return [BackendHealth(target, False) for target in found]


def test_the_first_probe_is_due_at_once() -> None:
    schedule = ProbeSchedule(NoJitter())
    schedule.follow(entries(), 10.0)
    assert schedule.next_event(10.0) == 0.0
    assert len(schedule.take_due(10.0)) == 2


def test_the_interval_counts_from_the_send() -> None:
    schedule = ProbeSchedule(NoJitter())
    schedule.follow(entries("", "{address: '10.0.0.1:53'}"), 0.0)
    (slot,) = schedule.take_due(0.0)
    schedule.sent(slot, 7, 0.0)
    schedule.close(slot)
    assert schedule.next_event(0.3) == 0.7
    assert schedule.take_due(0.99) == []
    assert schedule.take_due(1.0) == [slot]


def test_ch60_example_24_a_timeout_longer_than_the_interval() -> None:
    schedule = ProbeSchedule(NoJitter())
    schedule.follow(entries("timeout_ms: 5000", "{address: '10.0.0.1:53'}"), 0.0)
    (slot,) = schedule.take_due(0.0)
    schedule.sent(slot, 7, 0.0)
    # past the due time nothing happens while the probe is open
    assert schedule.take_due(4.999) == []
    assert schedule.take_due(5.0) == [slot]
    assert slot.open
    assert slot.due <= 5.0


def test_jitter_is_up_to_twenty_percent() -> None:
    schedule = ProbeSchedule(random.Random(1))
    schedule.follow(entries("", "{address: '10.0.0.1:53'}"), 0.0)
    (slot,) = schedule.take_due(0.0)
    waits = set()
    for _ in range(2000):
        schedule.postpone(slot, 0.0)
        waits.add(round(slot.due, 3))
    assert min(waits) == 1.0
    assert max(waits) == 1.2


def test_a_dead_backend_does_not_delay_another() -> None:
    schedule = ProbeSchedule(NoJitter())
    schedule.follow(entries("timeout_ms: 60000"), 0.0)
    first, second = schedule.take_due(0.0)
    schedule.sent(first, 1, 0.0)
    schedule.sent(second, 2, 0.0)
    schedule.close(second)
    assert schedule.take_due(1.0) == [second]


def test_follow_keeps_open_probes_and_drops_what_is_gone() -> None:
    schedule = ProbeSchedule(NoJitter())
    kept, gone = entries()
    schedule.follow([kept, gone], 0.0)
    for slot in schedule.take_due(0.0):
        schedule.sent(slot, 5, 0.0)
    (removed,) = schedule.follow([kept], 0.5)
    assert removed.entry is gone
    assert schedule.take_due(9.0) == [schedule.slots[0]]
    assert schedule.slots[0].open


def test_no_backends_means_no_event() -> None:
    assert ProbeSchedule().next_event(0.0) is None


def test_probe_messages() -> None:
    settings = targets("probe_qname: ExAmple.test, probe_qtype: A")[0].settings
    probe = build_probe(0x1234, settings)
    assert probe == (b"\x12\x34\x01\x00\x00\x01\0\0\0\0\0\0\x07example\x04test\x00\x00\x01\x00\x01")


def test_ch60_example_22_23_judging_replies() -> None:
    plain = targets("probe_qtype: A")[0].settings
    strict = targets("probe_qtype: A, acceptable_rcodes: [NOERROR]")[0].settings
    probe = build_probe(7, plain)
    servfail = probe[:2] + b"\x81\x82" + probe[4:]
    assert judge_reply(servfail, 7, plain) is True
    assert judge_reply(servfail, 7, strict) is False
    assert judge_reply(servfail, 8, plain) is None
    assert judge_reply(probe, 7, plain) is None
    assert judge_reply(servfail[:12], 7, plain) is None
    no_question = probe[:2] + b"\x81\x80" + b"\0" * 8
    assert judge_reply(no_question, 7, plain) is None
    assert judge_reply(servfail.replace(b"\0\0\x01\0\x01", b"\0\0\x02\0\x01"), 7, plain) is None
