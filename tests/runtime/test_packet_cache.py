"""The shortcut for packets that a cache has just answered changes no reply and no count."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import dns.message
import pytest

from conduit.observe import families
from conduit.observe.counters import CounterRegistry
from conduit.runtime.ingress import Admission, Ingress, IngressContext
from conduit.runtime.slots import SlotPool
from conduit.runtime.worker_pool import WorkerPool
from conduit.snapshot import SnapshotRef
from conduit.transaction import Transaction
from tests.lookup.test_cached_lookup import ONE, Service
from tests.support.scripted import FakeListener, answer, make_query


class Recording(FakeListener):
    """Keeps what is sent."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[bytes] = []

    def reply(self, client_context: object, wire: bytes) -> None:
        self.sent.append(wire)


class Front:
    """One ingress worker in front of a service with a filled cache."""

    def __init__(self, service: Service, remember: bool) -> None:
        self.service = service
        self.counters = CounterRegistry()
        self.listener = Recording()
        self.whole_way: list[Transaction] = []
        slots = SlotPool(16)
        pool = WorkerPool(service.environment, slots, self.counters, _no_exchanger, 4)

        def submit(txn: Transaction) -> None:
            self.whole_way.append(txn)
            pool.submit(txn)

        self.snapshots = SnapshotRef(service.snapshot)
        self.ingress = Ingress(
            IngressContext(
                self.snapshots,
                slots,
                self.counters,
                submit,
                service.clock,
                remember_packets=remember,
            ),
            self.listener,
            service.snapshot.config.listeners.listeners[0],
        )

    def ask(self, message: bytes, client: str = "192.0.2.7") -> dns.message.Message:
        count = len(self.listener.sent)
        assert self.ingress.admit(message, client, 5353, None) is not Admission.DISCARDED
        assert len(self.listener.sent) == count + 1
        return dns.message.from_wire(self.listener.sent[-1])


def _no_exchanger() -> object:
    raise AssertionError("a hit needs no exchanger")


def packet(number: int = 1, name: str = "a.test.", **options: object) -> bytes:
    wire: bytes = make_query(name, message_id=number, **options).wire  # type: ignore[arg-type]
    return wire


@pytest.fixture
def service() -> Service:
    made = Service()
    made.ask(answer(records=ONE, ttl=300))
    return made


def test_the_second_packet_takes_the_shortcut(service: Service) -> None:
    front = Front(service, True)
    for number in range(1, 5):
        assert front.ask(packet(number)).id == number
    assert len(front.whole_way) == 1
    bodies = {wire[2:] for wire in front.listener.sent}
    assert len(bodies) == 1


def test_ttls_go_down_by_the_second(service: Service) -> None:
    front = Front(service, True)
    seen = []
    for _ in range(30):
        seen.append(front.ask(packet()).answer[0].ttl)
        service.clock.advance(0.25)
    assert seen == [300 - int(n * 0.25) for n in range(30)]
    assert len(front.whole_way) < 12


def test_an_entry_that_is_gone_is_not_served(service: Service) -> None:
    front = Front(service, True)
    for _ in range(3):
        front.ask(packet())
    store = service.caches.caches["global"].store
    (txn,) = {front.whole_way[-1]}
    assert txn.cache_hit is not None
    store.remove(txn.cache_hit[1])
    front.ingress.admit(packet(), "192.0.2.7", 5353, None)
    assert front.whole_way[-1].cache_hit is None
    assert front.whole_way[-1].fills


def test_a_new_snapshot_forgets_everything(service: Service) -> None:
    front = Front(service, True)
    for _ in range(3):
        front.ask(packet())
    before = len(front.whole_way)
    front.snapshots.current = replace(service.snapshot, generation=2)
    front.ask(packet())
    assert len(front.whole_way) == before + 1


@pytest.mark.parametrize(
    "change",
    [
        lambda: packet(dnssec=True, edns=0),
        lambda: packet(name="A.test."),
        lambda: packet(qtype="AAAA"),
        lambda: packet()[:2] + b"\x00" + packet()[3:],
    ],
    ids=["DO", "letter case", "type", "RD"],
)
def test_other_packets_go_the_whole_way(service: Service, change: Callable[[], bytes]) -> None:
    front = Front(service, True)
    for _ in range(3):
        front.ask(packet())
    before = len(front.whole_way)
    front.ingress.admit(change(), "192.0.2.7", 5353, None)
    assert len(front.whole_way) == before + 1


@pytest.mark.parametrize(
    "rest",
    [
        "events: {sinks: [{type: dnstap, name: t, destinations: ['unix:x']}]}\n",
        "rules: {rules: [{name: r, hook: response, selectors: [], actions: []}]}\n",
        "data_sources: []\nacls: {default_action: allow, rules: []}\n",
    ],
    ids=["events", "rules", "acls"],
)
def test_no_shortcut_where_somebody_looks_on(rest: str) -> None:
    assert not Service(rest=rest).snapshot.answers_packets


def test_rotation_goes_the_whole_way() -> None:
    service = Service(", rotate_rrset_on_serve: true")
    service.ask(answer(records=("192.0.2.1", "192.0.2.2", "192.0.2.3")))
    front = Front(service, True)
    orders = {tuple(r.to_text() for r in front.ask(packet()).answer[0]) for _ in range(40)}
    assert len(orders) > 1
    assert len(front.whole_way) == 40


def test_replies_and_counts_are_those_of_the_whole_way() -> None:
    results = []
    for remember in (False, True):
        service = Service()
        for name in ("a.test.", "b.test.", "c.test."):
            service.ask(answer(records=ONE, ttl=5), qname=name)
        front = Front(service, remember)
        draw = random.Random(7)
        for number in range(400):
            name = draw.choice(("a.test.", "b.test.", "c.test."))
            options: dict[str, object] = {"edns": 0} if draw.random() < 0.3 else {}
            client = "192.0.2.7" if draw.random() < 0.8 else "2001:db8::1"
            front.ask(packet(number, name, **options), client)
            if service.clock.now < 1004:
                service.clock.advance(draw.random() / 40)
        counts = {family: front.counters.totals(family) for family in families.RECORDED}
        timed = {
            family: {key: sum(row[:-1]) for key, row in front.counters.histogram(family).items()}
            for family in families.TIMED
        }
        results.append((front.listener.sent, counts, timed, len(front.whole_way)))
    (plain, plain_counts, plain_timed, all_of_them), (short, counts, timed, few) = results
    assert short == plain
    assert counts == plain_counts
    assert timed == plain_timed
    assert all_of_them == 400
    assert few < 100
