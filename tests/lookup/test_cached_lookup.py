"""The cache provider inside the pipeline, under a virtual clock: chapter 40 by example number."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dns.flags
import pytest

from conduit.lookup.await_fill import AwaitFill
from conduit.lookup.cache.errors import CacheError
from conduit.lookup.caches import CacheRegistry
from conduit.pipeline import Environment, run
from conduit.snapshot import RuntimeSnapshot
from conduit.transaction import CACHE, FORWARD
from conduit.upstream.exchange import Exchange
from tests.support.scripted import (
    Answer,
    ScriptedRun,
    VirtualClock,
    answer,
    failure,
    make_query,
    snapshot_of,
    timeout,
)

POOLS = "pools: [{name: p, backends: [{address: '192.0.2.1:53'}, {address: '192.0.2.2:53'}]}]\n"
ONE = ("192.0.2.9",)
PROFILE = (
    "lookup: {profiles: {default: {providers: [{type: cache, cache: global}, {type: forward}]}}}\n"
)


class Service:
    """A snapshot, its caches and a clock; `ask` runs one query to its end."""

    def __init__(self, cache: str = "", rest: str = "", pools: str = POOLS) -> None:
        self.clock = VirtualClock()
        caches = f"caches: [{{name: global, type: memory{cache}}}]\n"
        self.snapshot: RuntimeSnapshot = snapshot_of(pools + caches + PROFILE + rest)
        self.caches = CacheRegistry(1, self.clock)
        self.caches.prepare(self.snapshot.config.caches, ".")()
        self.environment = Environment(clock=self.clock, caches=self.caches)
        self.asked = 0

    def begin(
        self, *script: Answer, qname: str = "a.test.", protocol: str = "udp", **query: object
    ) -> ScriptedRun:
        return ScriptedRun(
            self.snapshot,
            script,
            query=make_query(qname, **query),  # type: ignore[arg-type]
            protocol=protocol,
            environment=self.environment,
            clock=self.clock,
        )

    def ask(self, *script: Answer, **query: object) -> ScriptedRun:
        done = self.begin(*script, **query).go()  # type: ignore[arg-type]
        self.asked += len(done.attempts)
        return done


def results(*runs: ScriptedRun) -> dict[str, int]:
    """How often each result of conduit_cache_lookups_total was counted."""
    found: dict[str, int] = {}
    for one in runs:
        for (_, _, result), count in one.recorder.cache_lookups.items():
            found[str(result)] = found.get(str(result), 0) + count
    return found


def test_example_1_without_a_lookup_block_nothing_is_cached() -> None:
    snapshot = snapshot_of(POOLS)
    for _ in range(2):
        done = ScriptedRun(snapshot, [answer(records=ONE)]).go()
        assert done.attempts
        assert not done.recorder.cache_lookups


def test_examples_2_3_4_hit_with_a_lower_ttl_until_the_end() -> None:
    service = Service()
    first = service.ask(answer(records=ONE, ttl=300))
    service.clock.advance(40.9)
    second = service.ask()
    assert results(first, second) == {"miss": 1, "hit": 1}
    assert sum(first.recorder.cache_fills.values()) == 1
    assert (first.txn.answer_source, second.txn.answer_source) == (FORWARD, CACHE)
    assert second.reply is not None
    assert second.reply.answer[0].ttl == 260
    service.clock.advance(300.0 - 40.9)
    third = service.ask(answer(records=ONE, ttl=300))
    assert results(third) == {"miss": 1}
    assert service.asked == 2


def test_example_10_udp_fill_serves_a_tcp_client() -> None:
    service = Service()
    service.ask(answer(records=ONE))
    assert service.ask(protocol="tcp").txn.answer_source == CACHE


@pytest.mark.parametrize(("covers", "source"), [(True, CACHE), (False, FORWARD)])
def test_examples_13_14_descendants_of_a_missing_name(covers: bool, source: str) -> None:
    service = Service(f", negative_cache: {{nxdomain_covers_descendants: {str(covers).lower()}}}")
    service.ask(answer("NXDOMAIN"))
    below = service.ask(*([] if covers else [answer("NXDOMAIN")]), qname="x.y.a.test.")
    assert below.txn.answer_source == source
    assert below.reply is not None
    assert below.reply.question[0].name.to_text() == "x.y.a.test."
    other_type = service.ask(answer("NXDOMAIN"), qname="x.y.a.test.", qtype="AAAA")
    assert other_type.txn.answer_source == FORWARD


def test_example_18_an_ineligible_query_neither_reads_nor_fills() -> None:
    service = Service()
    first = service.begin(answer(records=ONE))
    first.txn.cache_eligible = False
    first.go()
    second = service.ask(answer(records=ONE))
    assert results(first) == {"bypass": 1}
    assert not first.recorder.cache_fills
    assert results(second) == {"miss": 1}


RETRY = (
    "rules: {rules: [{name: again, hook: response, selectors: [{type: rcode, value: SERVFAIL}], "
    "actions: [{type: retry}]}]}\n"
)


def test_example_19_only_the_first_attempt_fills() -> None:
    service = Service(rest=RETRY)
    first = service.ask(answer("SERVFAIL"), answer(records=ONE))
    assert first.rcode == "NOERROR"
    assert results(first) == {"miss": 1, "bypass": 1}
    # the stored SERVFAIL is a hit, on which the rule asks for a retry: that one forwards
    second = service.ask(answer(records=ONE))
    assert results(second) == {"hit": 1, "bypass": 1}
    assert second.rcode == "NOERROR"
    assert second.txn.answer_source == FORWARD


def test_example_20_on_hit_skip_keeps_response_rules_away() -> None:
    drop = (
        "rules: {rules: [{name: d, hook: response, selectors: [{type: qname_suffix, "
        "value: test.}], actions: [{type: drop}]}]}\n"
    )
    service = Service(", on_hit: {response_rules: skip}", drop)
    first = service.ask(answer(records=ONE))
    assert first.txn.reply is None
    second = service.ask()
    assert second.rcode == "NOERROR"


def test_example_21_a_truncated_answer_serves_udp_until_a_whole_one_is_there() -> None:
    service = Service(
        ", truncated_udp: {enabled: true, ttl_secs: 30}",
        "forward: {transport: udp_only}\n",
    )
    service.ask(answer(tc=True))
    stub = service.ask()
    assert stub.reply is not None
    assert stub.reply.flags & dns.flags.TC
    tcp = service.ask(answer(records=ONE), protocol="tcp")
    assert results(tcp) == {"miss": 1}
    whole = service.ask()
    assert whole.reply is not None
    assert not whole.reply.flags & dns.flags.TC
    assert whole.reply.answer
    # the truncated sibling is gone: the whole answer is the only entry
    assert service.caches.caches["global"].store.gauges().entries == 1


def test_example_23_a_large_entry_is_cut_for_udp_and_whole_for_tcp() -> None:
    service = Service()
    many = tuple(f"10.0.{n // 200}.{n % 200 + 1}" for n in range(120))
    service.ask(answer(records=many), protocol="tcp")
    udp = service.ask(edns=0, payload=1232)
    assert udp.txn.reply is not None
    assert len(udp.txn.reply) <= 1232
    assert udp.reply is not None
    assert udp.reply.flags & dns.flags.TC
    ((_, _, _, source),) = udp.recorder.responses_truncated
    assert source == CACHE
    tcp = service.ask(protocol="tcp")
    assert tcp.reply is not None
    assert len(tcp.reply.answer[0]) == 120


class Together:
    """Several transactions at once: each is driven to its first effect, then resumed by hand."""

    def __init__(self, service: Service, count: int) -> None:
        self.service = service
        self.runs = [service.begin(message_id=100 + number) for number in range(count)]
        self.woken: list[int] = []
        self.effects: dict[int, object] = {}
        self.generators: list[Iterator[object]] = [
            iter(run(one.txn, service.environment)) for one in self.runs
        ]
        for number in range(count):
            self.resume(number)

    def resume(self, number: int) -> None:
        effect = next(self.generators[number], None)
        self.effects[number] = effect
        if isinstance(effect, AwaitFill):
            effect.flight.when_done(lambda: self.woken.append(number))

    def finish(self, number: int, step: Answer) -> None:
        """Give the exchange of one transaction its result and go on to its next effect."""
        exchange = self.effects[number]
        assert isinstance(exchange, Exchange)
        self.runs[number].exchanges.append(exchange)
        self.runs[number].txn.effect_result = step(self.runs[number], exchange)
        self.resume(number)

    @property
    def exchanging(self) -> list[int]:
        return [n for n, effect in self.effects.items() if isinstance(effect, Exchange)]

    @property
    def waiting(self) -> list[int]:
        return [n for n, effect in self.effects.items() if isinstance(effect, AwaitFill)]


def test_example_24_ten_at_once_make_one_upstream_query() -> None:
    service = Service()
    many = Together(service, 10)
    assert (many.exchanging, len(many.waiting)) == ([0], 9)
    many.finish(0, answer(records=ONE))
    assert sorted(many.woken) == list(range(1, 10))
    for number in many.woken:
        many.resume(number)
    ids = {one.reply.id for one in many.runs if one.reply is not None and one.reply.answer}
    assert ids == set(range(100, 110))
    coalesced = sum(sum(one.recorder.cache_coalesced.values()) for one in many.runs)
    assert coalesced == 9


def test_example_25_an_uncacheable_answer_is_not_shared() -> None:
    service = Service()
    many = Together(service, 10)
    many.finish(0, answer(records=ONE, ttl=0))
    for number in list(many.woken):
        many.resume(number)
    # each goes its own way, with no further waiting
    assert many.exchanging == list(range(1, 10))
    for number in range(1, 10):
        many.finish(number, answer(records=ONE, ttl=0))
    assert all(one.rcode == "NOERROR" for one in many.runs)
    assert service.caches.caches["global"].store.gauges().entries == 0


@pytest.mark.parametrize("step", [failure("send_error"), timeout], ids=["send error", "timeout"])
def test_example_26_a_failing_leader_wakes_everyone(step: Answer) -> None:
    service = Service()
    many = Together(service, 10)
    many.finish(0, step)
    assert sorted(many.woken) == list(range(1, 10))
    for number in list(many.woken):
        many.resume(number)
    for number in many.exchanging:
        many.finish(number, failure("send_error"))
    assert all(one.rcode == "SERVFAIL" for one in many.runs)
    # nothing is left behind: the next query leads again and its answer is kept
    assert len(service.caches.caches["global"].flights) == 0
    assert results(service.ask(answer(records=ONE))) == {"miss": 1}
    assert service.ask().txn.answer_source == CACHE


def test_a_dropped_leader_wakes_its_followers() -> None:
    service = Service()
    many = Together(service, 3)
    many.generators[0].close()  # type: ignore[attr-defined]
    many.runs[0].txn.fills = ()
    assert sorted(many.woken) == [1, 2]


def test_a_second_cache_in_the_chain_is_filled_as_well() -> None:
    clock = VirtualClock()
    snapshot = snapshot_of(
        POOLS
        + "caches: [{name: near, type: memory}, {name: far, type: memory}]\n"
        + "lookup: {profiles: {default: {providers: [{type: cache, cache: near}, "
        + "{type: cache, cache: far}, {type: forward}]}}}\n"
    )
    caches = CacheRegistry(1, clock)
    caches.prepare(snapshot.config.caches, ".")()
    environment = Environment(clock=clock, caches=caches)
    first = ScriptedRun(snapshot, [answer(records=ONE)], environment=environment, clock=clock).go()
    assert {key[0] for key in first.recorder.cache_fills} == {"near", "far"}
    second = ScriptedRun(snapshot, [], environment=environment, clock=clock).go()
    assert second.txn.cache_instance == "near"


def test_an_answer_that_came_between_look_and_join_is_used() -> None:
    service = Service()
    live = service.caches.caches["global"]

    class Table:
        """Stands before the real table for one call."""

        @property
        def ended(self) -> int:
            return real.ended

        def join(self, key: bytes) -> object:
            # another transaction of the same name runs from miss to fill right here
            live.flights = real
            service.ask(answer(records=ONE))
            return real.join(key)

    real = live.flights
    live.flights = Table()  # type: ignore[assignment]
    assert service.ask().txn.answer_source == CACHE
    assert len(real) == 0


def write(text: str, path: Path) -> None:
    path.write_text(text, encoding="utf-8")


def lmdb(path: Path, **settings: object) -> str:
    rest = "".join(f", {key}: {value}" for key, value in settings.items())
    return (
        f"caches: [{{name: global, type: lmdb, lmdb: {{path: '{path}', map_size: 1MB{rest}}}}}]\n"
        + PROFILE
    )


def opened(tmp_path: Path, clock: VirtualClock) -> tuple[CacheRegistry, Environment, str]:
    caches = CacheRegistry(1, clock)
    text = POOLS + lmdb(tmp_path / "store", shard_count=4)
    caches.prepare(snapshot_of(text).config.caches, ".")()
    return caches, Environment(clock=clock, caches=caches), text


def test_example_37_another_shard_count_starts_empty(tmp_path: Path) -> None:
    clock = VirtualClock()
    caches, environment, text = opened(tmp_path, clock)
    ScriptedRun(snapshot_of(text), [answer(records=ONE)], environment=environment, clock=clock).go()
    before = caches.caches["global"].store
    new = snapshot_of(POOLS + lmdb(tmp_path / "store", shard_count=2))
    caches.prepare(new.config.caches, ".")()
    store = caches.caches["global"].store
    assert store is not before
    assert (store.gauges().entries, store.gauges().lmdb_shards) == (0, 2)
    names = {path.name for path in (tmp_path / "store").iterdir()}
    assert {"shard-0", "shard-1", "conduit-lmdb-shards.json"} <= names
    assert "shard-2" not in names
    assert [path.name for path in tmp_path.iterdir()] == ["store"]
    caches.close()


def test_example_38_a_store_that_cannot_be_opened_changes_nothing(tmp_path: Path) -> None:
    clock = VirtualClock()
    caches, environment, text = opened(tmp_path, clock)
    snapshot = snapshot_of(text)
    ScriptedRun(snapshot, [answer(records=ONE)], environment=environment, clock=clock).go()
    new = snapshot_of(POOLS + lmdb(tmp_path / "other"))
    write("no directory", tmp_path / "other")
    with pytest.raises(CacheError, match="cache 'global'"):
        caches.prepare(new.config.caches, ".")
    hit = ScriptedRun(snapshot, [], environment=environment, clock=clock).go()
    assert hit.txn.answer_source == CACHE
    caches.close()


def test_a_change_that_fails_takes_the_others_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = VirtualClock()
    caches, _, _ = opened(tmp_path, clock)
    store = caches.caches["global"].store
    assert store.gauges().lmdb_sync == "full"
    size = store.gauges().bytes_limit

    def refuse(settings: object) -> None:
        raise CacheError("no")

    new = snapshot_of(
        POOLS + lmdb(tmp_path / "store", sync="none").replace("map_size: 1MB", "map_size: 4MB")
    )
    monkeypatch.setattr(type(store), "set_sync", lambda self, settings: refuse(settings))
    with pytest.raises(CacheError, match="cache 'global': no"):
        caches.prepare(new.config.caches, ".")
    assert store.gauges().bytes_limit == size
    monkeypatch.undo()
    caches.prepare(new.config.caches, ".")()
    assert store.gauges().lmdb_sync == "none"
    assert store.gauges().bytes_limit > size
    caches.close()


def test_counts_of_an_instance_go_on_over_a_change_of_its_store(tmp_path: Path) -> None:
    service = Service(", max_entries: 1")
    for name in ("a.test.", "b.test.", "c.test."):
        service.ask(answer(records=ONE), qname=name)
    live = service.caches.caches["global"]
    assert live.events.when_full == 2
    service.caches.prepare(snapshot_of(POOLS + lmdb(tmp_path / "store")).config.caches, ".")()
    assert live.kind == "lmdb"
    assert live.events.when_full == 2
    service.caches.close()
