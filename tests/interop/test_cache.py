"""The answer cache end to end: the CACHE cases of chapter 70, single flight, LMDB restarts."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dns.flags
import dns.message
import dns.rcode
import pytest

from tests.support.client import ask
from tests.support.daemon import Conduit, configuration, with_metrics
from tests.support.ports import free_port
from tests.support.servers import start_dnsmasq
from tests.support.stub_upstream import StubUpstream, answer, rcode, silence

Start = Callable[..., Conduit]
NAME = "www.example.test."


def cached(backend: str, **cache: Any) -> dict[str, Any]:
    return configuration(
        backend,
        metrics=with_metrics(free_port()),
        forward={"timeout_ms": 600, "outstanding_per_backend": 2000},
        orchestrator={"txn_table_capacity": 4096},
        caches=[{"name": "global", "type": "memory", "max_entries": 10000, **cache}],
        lookup={
            "profiles": {
                "default": {
                    "providers": [{"type": "cache", "cache": "global"}, {"type": "forward"}]
                }
            }
        },
    )


def ttl_of(reply: dns.message.Message) -> int:
    return max(rrset.ttl for rrset in reply.answer)


def test_cache_2_miss_then_hit_with_a_lower_ttl(stub: StubUpstream, start_conduit: Start) -> None:
    conduit = start_conduit(cached(stub.address))
    first = conduit.query("WwW.example.test.")
    time.sleep(1.1)
    second = conduit.query("wWw.Example.test.")
    assert second.question[0].name.to_text() == "wWw.Example.test."
    assert [r.to_text() for r in second.answer[0]] == [r.to_text() for r in first.answer[0]]
    assert ttl_of(second) < ttl_of(first)
    assert len(stub.received) == 1
    lookups = "conduit_cache_lookups_total"
    assert conduit.metric(lookups, result="miss") == 1
    assert conduit.metric(lookups, result="hit") == 1
    assert conduit.metric("conduit_responses_total", answer_source="forward") == 1
    assert conduit.metric("conduit_responses_total", answer_source="cache") == 1
    assert conduit.metric("conduit_cache_fills_total", cache="global") == 1
    assert conduit.metric("conduit_cache_entries", cache="global") == 1
    assert conduit.metric("conduit_forward_attempts_total") == 1


def test_cache_3_nxdomain_without_soa(tmp_path: Path, start_conduit: Start) -> None:
    peer = start_dnsmasq(tmp_path / "peer", "--local=/nxcache.test/")
    try:
        conduit = start_conduit(cached(peer.address))
        for _ in range(3):
            assert conduit.query("missing.nxcache.test.").rcode() == dns.rcode.NXDOMAIN
        # names below it are covered (RFC 8020)
        assert conduit.query("deep.missing.nxcache.test.").rcode() == dns.rcode.NXDOMAIN
        assert peer.query_log("query[A] missing.nxcache.test") == 1
        assert peer.query_log("deep.missing") == 0
    finally:
        peer.stop()


def test_cache_4_rotation(stub: StubUpstream, start_conduit: Start) -> None:
    stub.default = answer("192.0.2.81", "192.0.2.82", "192.0.2.83")
    conduit = start_conduit(cached(stub.address, rotate_rrset_on_serve=True))
    orders = set()
    for _ in range(16):
        reply = conduit.query(NAME)
        order = tuple(r.to_text() for r in reply.answer[0])
        assert set(order) == {"192.0.2.81", "192.0.2.82", "192.0.2.83"}
        orders.add(order)
    assert len(orders) >= 2
    assert len(stub.received) == 1


@pytest.mark.parametrize("how", ["SIGTERM", "SIGKILL"])
def test_cache_5_lmdb_hit_after_a_restart(
    stub: StubUpstream, start_conduit: Start, tmp_path: Path, how: str
) -> None:
    config = cached(
        stub.address, type="lmdb", lmdb={"path": str(tmp_path / "store"), "map_size": "64MB"}
    )
    conduit = start_conduit(config)
    first = conduit.query(NAME)
    conduit.send_signal(getattr(signal, how))
    conduit.wait()
    again = start_conduit(config)
    second = again.query(NAME)
    assert second.answer
    assert ttl_of(second) <= ttl_of(first)
    assert len(stub.received) == 1
    assert again.metric("conduit_cache_lmdb_shards", cache="global") > 0


def test_a_second_process_on_one_store_is_refused(
    stub: StubUpstream, start_conduit: Start, tmp_path: Path
) -> None:
    config = cached(
        stub.address, type="lmdb", lmdb={"path": str(tmp_path / "store"), "map_size": "64MB"}
    )
    start_conduit(config)
    second = start_conduit({**config, "metrics": {"enabled": False}}, wait=False)
    assert second.wait() == 1
    assert "cache 'global'" in second.output
    assert "Traceback" not in second.output


def test_a_thousand_clients_make_one_upstream_query(
    stub: StubUpstream, start_conduit: Start
) -> None:
    stub.default = answer(delay=0.4)
    conduit = start_conduit(cached(stub.address))
    host, port = conduit.listener()

    def one(number: int) -> bool:
        return bool(ask(host, port, NAME, timeout=10).answer)

    with ThreadPoolExecutor(60) as threads:
        assert all(threads.map(one, range(1000)))
    assert len(stub.received) == 1
    assert conduit.metric("conduit_cache_singleflight_coalesced_total") >= 1
    assert conduit.metric("conduit_slots_in_use") == 0


def test_a_failing_leader_wakes_every_follower(stub: StubUpstream, start_conduit: Start) -> None:
    stub.default = silence
    conduit = start_conduit(cached(stub.address))
    host, port = conduit.listener()
    started = time.monotonic()
    with ThreadPoolExecutor(20) as threads:
        codes = list(threads.map(lambda n: ask(host, port, NAME, timeout=10).rcode(), range(20)))
    assert set(codes) == {dns.rcode.SERVFAIL}
    # one timeout for the leader, one for the followers who then ask on their own
    assert time.monotonic() - started < 4
    assert conduit.metric("conduit_slots_in_use") == 0


def test_uncacheable_answers_are_not_shared(stub: StubUpstream, start_conduit: Start) -> None:
    stub.default = answer(delay=0.3, ttl=0)
    conduit = start_conduit(cached(stub.address))
    host, port = conduit.listener()
    with ThreadPoolExecutor(5) as threads:
        replies = list(threads.map(lambda n: ask(host, port, NAME, timeout=10), range(5)))
    assert all(reply.answer for reply in replies)
    assert len(stub.received) == 5


def test_do_and_cd_are_separate(stub: StubUpstream, start_conduit: Start) -> None:
    conduit = start_conduit(cached(stub.address))
    for _ in range(2):
        conduit.query(NAME)
        conduit.query(NAME, edns=0, dnssec=True)
    assert len(stub.received) == 2
    conduit.query(NAME, rd=False)
    assert len(stub.received) == 3


def test_badvers_and_servfail(stub: StubUpstream, start_conduit: Start) -> None:
    stub.on("bad.example.test.", rcode("SERVFAIL"))
    conduit = start_conduit(cached(stub.address, negative_cache={"servfail_ttl_secs": 0}))
    for _ in range(2):
        assert conduit.query("bad.example.test.").rcode() == dns.rcode.SERVFAIL
    assert len(stub.queries("bad.example.test.")) == 2


def test_retry_on_a_hit_forwards(stub: StubUpstream, start_conduit: Start) -> None:
    config = cached(stub.address)
    config["rules"] = {
        "rules": [
            {
                "name": "again",
                "hook": "response",
                "selectors": [{"type": "answer_source", "value": "cache"}],
                "actions": [{"type": "retry"}],
            }
        ]
    }
    conduit = start_conduit(config)
    conduit.query(NAME)
    assert conduit.query(NAME).answer
    assert len(stub.received) == 2
    assert conduit.metric("conduit_cache_lookups_total", result="bypass") == 1


def test_on_hit_skip_leaves_response_rules_out(stub: StubUpstream, start_conduit: Start) -> None:
    config = cached(stub.address, on_hit={"response_rules": "skip"})
    config["rules"] = {
        "rules": [
            {
                "name": "no hits",
                "hook": "response",
                "selectors": [{"type": "answer_source", "value": "cache"}],
                "actions": [{"type": "drop"}],
            }
        ]
    }
    conduit = start_conduit(config)
    conduit.query(NAME)
    assert conduit.query(NAME).answer


def test_a_reload_keeps_entries_and_follows_settings(
    stub: StubUpstream, start_conduit: Start
) -> None:
    config = cached(stub.address)
    conduit = start_conduit(config)
    conduit.query(NAME)
    conduit.reload()
    conduit.query(NAME)
    assert len(stub.received) == 1
    config["caches"] = [{"name": "other", "type": "memory"}]
    config["lookup"]["profiles"]["default"]["providers"][0]["cache"] = "other"
    conduit.write(config)
    conduit.reload()
    conduit.query(NAME)
    assert len(stub.received) == 2


def test_a_cache_only_profile_answers_hits_and_servfail_for_misses(
    stub: StubUpstream, start_conduit: Start
) -> None:
    config = cached(stub.address)
    config["lookup"]["profiles"]["only"] = {"providers": [{"type": "cache", "cache": "global"}]}
    config["rules"] = {
        "rules": [
            {
                "name": "tcp-like clients",
                "hook": "request",
                "selectors": [{"type": "qtype", "value": "AAAA"}],
                "actions": [{"type": "set_lookup_profile", "value": "only"}],
            }
        ]
    }
    conduit = start_conduit(config)
    assert conduit.query(NAME, "AAAA").rcode() == dns.rcode.SERVFAIL
    assert not stub.received


def test_udp_and_tcp_clients_share_an_entry_and_large_hits_are_cut(
    stub: StubUpstream, start_conduit: Start
) -> None:
    stub.default = answer(*[f"10.0.{n // 250}.{n % 250}" for n in range(150)])
    conduit = start_conduit(cached(stub.address))
    assert sum(len(r) for r in conduit.query(NAME, tcp=True).answer) == 150
    cut = conduit.query(NAME)
    assert cut.flags & dns.flags.TC
    assert len(cut.to_wire()) <= 512
    assert sum(len(r) for r in conduit.query(NAME, tcp=True).answer) == 150
    assert len(stub.received) == 1
    assert conduit.metric("conduit_responses_truncated_total", answer_source="cache") == 1
