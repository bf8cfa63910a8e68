"""Every metric of the plan from the running service, and the metric examples of chapter 50."""

from __future__ import annotations

import csv
import signal
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dns.exception
import pytest

from tests.support.client import ask
from tests.support.daemon import Conduit, configuration, with_metrics
from tests.support.ports import free_port
from tests.support.stub_upstream import StubUpstream, answer, rcode, silence

Start = Callable[..., Conduit]
ROWS = list(
    csv.DictReader(
        (Path(__file__).parent.parent / "observe" / "metrics.tsv").open(), delimiter="\t"
    )
)


def rule(name: str, suffix: str, hook: str, *actions: dict[str, str]) -> dict[str, Any]:
    return {
        "name": name,
        "hook": hook,
        "selectors": [{"type": "qname_suffix", "value": suffix}],
        "actions": list(actions),
    }


def everything(backend: str, other: str, folder: Path, base: str) -> dict[str, Any]:
    """A service in which every metric has something to count."""
    health = {"enabled": True, "interval_ms": 100, "timeout_ms": 80, "probe_qname": "probe.test."}
    (folder / "open.cidr").write_text("127.0.0.0/8\n")
    return configuration(
        backend,
        metrics={**with_metrics(free_port()), "base": base},
        pools=[
            {
                "name": "default",
                "backends": [{"address": backend, "name": "a"}],
                "health": health,
            },
            {"name": "second", "backends": [{"address": other}]},
        ],
        forward={"timeout_ms": 200},
        data_sources=[{"name": "open", "type": "cidr", "path": str(folder / "open.cidr")}],
        acls={"default_action": "deny", "rules": [{"match": "open", "action": "accept"}]},
        rules={
            "rules": [
                rule("drop", ".drop.test.", "request", {"type": "drop"}),
                rule("script", ".script.test.", "request", {"type": "rhai", "value": "p.rhai"}),
                rule("lmdb", ".l.test.", "request", {"type": "set_lookup_profile", "value": "l"}),
                rule(
                    "retry",
                    ".retry.test.",
                    "response",
                    {"type": "set_retry_pool", "value": "second"},
                    {"type": "retry"},
                ),
            ]
        },
        caches=[
            {"name": "m", "type": "memory", "max_entries": 1},
            {
                "name": "l",
                "type": "lmdb",
                "max_entries": 1,
                "lmdb": {
                    "path": str(folder / "store"),
                    "map_size": "1MB",
                    "shard_count": 1,
                    "when_full": "refuse",
                },
            },
        ],
        lookup={
            "profiles": {
                name: {"providers": [{"type": "cache", "cache": cache}, {"type": "forward"}]}
                for name, cache in (("default", "m"), ("l", "l"))
            }
        },
        events={
            "sinks": [
                {
                    "type": "dnstap",
                    "name": "tap",
                    "destinations": [f"unix:{folder}/nobody.sock"],
                    "emit": ["query", "response"],
                }
            ],
            "queue_depth": 4,
        },
    )


def exercise(conduit: Conduit, stub: StubUpstream) -> str:
    """Make every counter count; returns the page."""
    stub.on("slow.test.", answer("192.0.2.1", delay=0.1))
    stub.on("never.test.", silence)
    big = [f"192.0.2.{number}" for number in range(1, 120)]
    stub.on("big.test.", answer(*big))
    for name in ("a.test.", "a.test.", "b.test.", "x.l.test.", "y.l.test.", "n.script.test."):
        conduit.query(name)
    conduit.query("c.script.test.")
    conduit.query("big.test.")
    conduit.query("x.retry.test.")
    conduit.query("never.test.")
    with pytest.raises(dns.exception.Timeout):
        conduit.query("x.drop.test.", timeout=0.2)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as garbage:
        garbage.sendto(b"\0" * 5, conduit.listener())
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: conduit.query("slow.test."), range(4)))
        time.sleep(0.3)
        # one gauge is there only while a forward is under way
        waiting = pool.submit(conduit.query, "never.test.")
        time.sleep(0.05)
        page = conduit.page()
        waiting.result()
    return page


@pytest.mark.parametrize("base", ["minimal", "standard"])
def test_every_metric_of_the_plan(
    stub: StubUpstream, start_conduit: Start, tmp_path: Path, base: str
) -> None:
    with StubUpstream() as other:
        script = 'metrics.inc("seen", 1); txn.no_such_thing();'
        good = 'metrics.inc("seen", 1);'
        conduit = start_conduit(
            everything(stub.address, other.address, tmp_path, base),
            files={"p.rhai": f"if txn.txn_id() % 2 == 0 {{ {script} }} else {{ {good} }}"},
        )
        page = exercise(conduit, stub)
    found: dict[str, set[str]] = {}
    kinds: dict[str, str] = {}
    for line in page.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            kinds[name] = kind
        elif not line.startswith("#"):
            name, _, rest = line.partition("{")
            labels = rest.rpartition("}")[0]
            keys = {part.partition("=")[0] for part in _split(labels)} - {"le"}
            found.setdefault(name.split(" ")[0], set()).update(keys)
    for row in ROWS:
        name = row["name"].replace("<name>", "seen")
        wanted = row["smallest_base"] in (base, "minimal", "any")
        sample = f"{name}_count" if row["type"] == "histogram" else name
        assert (sample in found) is wanted, (name, base)
        if not wanted:
            continue
        assert kinds[name] == row["type"]
        if base == "standard" and row["labels"] not in ("-", "<script-defined>"):
            assert found[sample] == set(row["labels"].split(",")), name


def _split(labels: str) -> list[str]:
    """Split a label list at the commas between labels."""
    return [part for part in labels.replace('",', '"\n').split("\n") if part]


def watched(backend: str, **metrics: Any) -> dict[str, Any]:
    return configuration(
        backend,
        metrics={**with_metrics(free_port()), **metrics},
        forward={"timeout_ms": 200},
    )


def lines_of(conduit: Conduit, name: str) -> list[str]:
    return [line for line in conduit.page().splitlines() if line.startswith(name)]


def test_ch50_example_09_timing_without_labels(stub: StubUpstream, start_conduit: Start) -> None:
    conduit = start_conduit(watched(stub.address, granularity={"timing": []}))
    conduit.query("a.test.")
    assert lines_of(conduit, "conduit_forward_duration_seconds_count") == [
        "conduit_forward_duration_seconds_count 1"
    ]


def test_ch50_example_11_balanced_failures(stub: StubUpstream, start_conduit: Start) -> None:
    stub.default = silence
    conduit = start_conduit(watched(stub.address, granularity={"default": "balanced"}))
    conduit.query("a.test.")
    assert lines_of(conduit, "conduit_forward_errors_total") == [
        'conduit_forward_errors_total{pool="default",reason="timeout"} 1'
    ]


def test_ch50_example_14_odd_types_over_ipv6(stub: StubUpstream, start_conduit: Start) -> None:
    config = watched(stub.address)
    config["listeners"] = {"listeners": [{"address": "[::1]:0", "protocol": "udp"}]}
    conduit = start_conduit(config)
    conduit.query("a.test.", "HTTPS")
    assert conduit.metric("conduit_queries_total", qtype="TYPE65", qclass="IN", ip_family="v6") == 1


def test_ch50_example_15_bucket_bounds(stub: StubUpstream, start_conduit: Start) -> None:
    conduit = start_conduit(watched(stub.address))
    conduit.query("a.test.")
    page = conduit.page()
    bounds = [
        line.partition('le="')[2].partition('"')[0]
        for line in page.splitlines()
        if line.startswith("conduit_forward_duration_seconds_bucket")
    ]
    assert bounds == ["0.001", "0.01", "0.05", "0.1", "0.5", "1", "5", "10", "+Inf"]
    assert "_created" not in page


def test_ch50_example_16_the_scrape_server(stub: StubUpstream, start_conduit: Start) -> None:
    conduit = start_conduit(watched(stub.address))
    conduit.page()
    line = conduit.wait_for_line("prometheus metrics listening")
    url = "http://" + line.partition("address=")[2].split(" ")[0]
    with pytest.raises(urllib.error.HTTPError) as head:
        urllib.request.urlopen(urllib.request.Request(f"{url}/metrics", method="HEAD"), timeout=5)
    assert head.value.code == 405
    with pytest.raises(urllib.error.HTTPError) as other:
        urllib.request.urlopen(f"{url}/other", timeout=5)
    assert other.value.code == 404
    with urllib.request.urlopen(f"{url}/metrics?x=1", timeout=5) as page:
        assert page.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"


def test_ch50_example_17_a_fresh_process(stub: StubUpstream, start_conduit: Start) -> None:
    conduit = start_conduit(watched(stub.address, base="minimal"))
    page = conduit.page()
    assert "\nconduit_config_generation 1\n" in page
    assert "conduit_queries_total" not in page


def test_ch50_example_18_names_of_listeners_and_backends(
    stub: StubUpstream, start_conduit: Start
) -> None:
    config = watched(stub.address)
    config["listeners"]["listeners"][0]["name"] = "edge"
    config["pools"][0]["backends"][0]["name"] = "r1"
    conduit = start_conduit(config)
    conduit.query("a.test.")
    assert conduit.metric("conduit_queries_total", listener="edge") == 1
    assert conduit.metric("conduit_forward_attempts_total", backend="r1") == 1
    assert lines_of(conduit, "conduit_backend_info") == [
        f'conduit_backend_info{{address="{stub.address}",backend="r1",name="r1",pool="default"}} 1'
    ]


def test_ch50_example_19_drops(stub: StubUpstream, start_conduit: Start) -> None:
    config = watched(stub.address)
    config["rules"] = {"rules": [rule("drop", ".drop.test.", "request", {"type": "drop"})]}
    conduit = start_conduit(config)
    for _ in range(2):
        with pytest.raises(dns.exception.Timeout):
            conduit.query("a.drop.test.", timeout=0.2)
    assert conduit.metric("conduit_queries_total") == 2
    assert conduit.metric("conduit_queries_dropped_total", reason="request_rules") == 2
    assert conduit.metric("conduit_responses_total") == 0


def test_ch50_example_20_retry_to_another_pool(stub: StubUpstream, start_conduit: Start) -> None:
    stub.default = rcode("SERVFAIL")
    with StubUpstream() as second:
        config = watched(stub.address)
        config["pools"].append({"name": "secondary", "backends": [{"address": second.address}]})
        config["rules"] = {
            "rules": [
                {
                    "name": "r",
                    "hook": "response",
                    "selectors": [{"type": "rcode", "value": "SERVFAIL"}],
                    "actions": [
                        {"type": "set_retry_pool", "value": "secondary"},
                        {"type": "retry"},
                    ],
                }
            ]
        }
        conduit = start_conduit(config)
        conduit.query("a.test.")
    assert conduit.metric("conduit_retries_total", pool="secondary") == 1
    for pool in ("default", "secondary"):
        assert conduit.metric("conduit_queries_by_pool_total", pool=pool) == 1


def test_ch50_example_22_a_taken_scrape_port_rejects_the_reload(
    stub: StubUpstream, start_conduit: Start
) -> None:
    config = watched(stub.address)
    conduit = start_conduit(config)
    before = conduit.page()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        config["metrics"] = with_metrics(taken.getsockname()[1])
        conduit.write(config)
        conduit.send_signal(signal.SIGHUP)
        conduit.wait_for_line("SIGHUP config reload failed")
    assert "conduit_config_generation 1" in before
    assert "\nconduit_config_generation 1\n" in conduit.page()


def test_ch50_example_26_rust_log_wins(stub: StubUpstream, start_conduit: Start) -> None:
    config = watched(stub.address, enabled=False)
    quiet = start_conduit(config)
    quiet.query("a.test.")
    config["logging"] = {"level": "error"}
    loud = start_conduit(config, env={"RUST_LOG": "conduit=debug"}, wait=False)
    deadline = time.monotonic() + 10
    while not any("Starting listening" in line for line in loud.lines):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    loud.wait_for_line("dataplane listeners started")
    loud.query("a.test.")
    line = loud.wait_for_line("query complete")
    assert "txn_id=1" in line
    assert "attempts=1" in line
    assert not any("query complete" in line for line in quiet.lines)


def test_ch50_example_27_log_levels_need_a_restart(
    stub: StubUpstream, start_conduit: Start
) -> None:
    config = watched(stub.address)
    conduit = start_conduit(config)
    config["logging"] = {"level": "debug"}
    conduit.write(config)
    conduit.reload()
    conduit.query("a.test.")
    assert conduit.metric("conduit_config_generation") == 2
    assert not any("query complete" in line for line in conduit.lines)


def test_scrapes_under_load_never_fail(stub: StubUpstream, start_conduit: Start) -> None:
    conduit = start_conduit(watched(stub.address))
    host, port = conduit.listener()
    stop = time.monotonic() + 2

    def load(number: int) -> int:
        count = 0
        while time.monotonic() < stop:
            ask(host, port, f"n{number}-{count}.test.")
            count += 1
        return count

    with ThreadPoolExecutor(3) as pool:
        sent = [pool.submit(load, number) for number in range(3)]
        scrapes = 0
        while time.monotonic() < stop:
            assert "conduit_queries_total" in conduit.page() or not scrapes
            scrapes += 1
            time.sleep(0.05)
        total = sum(one.result() for one in sent)
    assert scrapes >= 10
    assert conduit.metric("conduit_queries_total") == total
    assert conduit.metric("conduit_responses_total") == total
