"""Start, reload, drain and stop of the daemon (chapters 10 sections 2 and 10, 20 section 4.7)."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dns.exception
import dns.message
import pytest

from tests.support.child import Child
from tests.support.client import ask
from tests.support.daemon import Conduit, configuration, with_metrics
from tests.support.ports import free_port
from tests.support.servers import Server
from tests.support.stub_upstream import StubUpstream, answer

Start = Callable[..., Conduit]


def test_ch10_example_26_reload_generations_and_last_good(
    stub: StubUpstream, start_conduit: Start
) -> None:
    config = configuration(stub.address, metrics=with_metrics(free_port()))
    conduit = start_conduit(config)
    assert conduit.metric("conduit_config_generation") == 1
    conduit.reload()
    line = conduit.wait_for_line("config applied")
    assert "generation=2" in line
    assert "source=sighup" in line
    conduit.write("schema_version: 1\npools: [\n")
    conduit.send_signal(signal.SIGHUP)
    line = conduit.wait_for_line("SIGHUP config reload failed")
    assert f"errors={conduit.path}:" in line
    assert conduit.metric("conduit_config_generation") == 2
    assert conduit.query("www.example.test.").answer
    conduit.write(config)
    conduit.reload()
    assert conduit.metric("conduit_config_generation") == 3


def test_reload_reports_every_validation_error(stub: StubUpstream, start_conduit: Start) -> None:
    conduit = start_conduit(configuration(stub.address))
    conduit.write(
        configuration(stub.address, orchestrator={"max_attempts": 0}, shutdown={"drian": True})
    )
    conduit.send_signal(signal.SIGHUP)
    line = conduit.wait_for_line("SIGHUP config reload failed")
    assert "drian" in line
    conduit.write(configuration("not an address", orchestrator={"max_attempts": 0}))
    conduit.send_signal(signal.SIGHUP)
    line = conduit.wait_for_line("SIGHUP config reload failed", count=2)
    assert "orchestrator.max_attempts must be >= 1" in line
    assert "invalid socket address" in line


def test_reload_changes_pools_and_limits_but_not_listeners(
    stub: StubUpstream, start_conduit: Start
) -> None:
    with StubUpstream() as second:
        conduit = start_conduit(configuration(stub.address))
        assert conduit.query("one.example.test.").answer
        changed = configuration(second.address, forward={"timeout_ms": 250})
        changed["listeners"]["listeners"][0]["address"] = "127.0.0.1:1"
        conduit.write(changed)
        conduit.reload()
        assert conduit.query("two.example.test.").answer
        assert stub.queries("one.example.test.")
        assert second.queries("two.example.test.")
        assert not stub.queries("two.example.test.")
        conduit.wait_for_line("pool: backends changed pool=default")
        conduit.wait_for_line(
            "listeners: pending (restart required) — snapshot updated, sockets not rebound"
        )
        conduit.wait_for_line(
            "forward egress: pending (restart required) — snapshot updated, sockets not rebound"
        )
        # the timeout is hot all the same
        second.default = answer(delay=1.0)
        started = time.monotonic()
        conduit.query("slow.example.test.")
        assert time.monotonic() - started < 0.9


def test_a_query_keeps_the_snapshot_it_started_with(
    stub: StubUpstream, start_conduit: Start
) -> None:
    stub.on("slow.example.test.", answer(delay=0.7))
    conduit = start_conduit(configuration(stub.address))
    result: list[dns.message.Message] = []
    thread = threading.Thread(target=lambda: result.append(conduit.query("slow.example.test.")))
    thread.start()
    while not stub.queries("slow.example.test."):
        time.sleep(0.01)
    conduit.write(configuration(stub.address, forward={"timeout_ms": 1}))
    conduit.reload()
    thread.join()
    assert result[0].answer


def test_twenty_reloads_during_5000_queries_lose_none(nsd: Server, start_conduit: Start) -> None:
    config = configuration(nsd.address, metrics=with_metrics(free_port()))
    conduit = start_conduit(config)
    host, port = conduit.listener()
    lost: list[int] = []
    done = threading.Event()

    def client(number: int) -> None:
        query = dns.message.make_query("www.example.test.", "A").to_wire()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.settimeout(3)
            sock.connect((host, port))
            for n in range(1250):
                sock.send(n.to_bytes(2, "big") + query[2:])
                try:
                    while sock.recv(4096)[:2] != n.to_bytes(2, "big"):
                        pass
                except TimeoutError:
                    lost.append(number)

    threads = [threading.Thread(target=client, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()

    def reload_repeatedly() -> None:
        for n in range(20):
            conduit.write({**config, "orchestrator": {"max_attempts": 2 + n % 2}})
            conduit.reload()
        done.set()

    reload_repeatedly()
    for thread in threads:
        thread.join()
    assert not lost
    assert done.is_set()
    assert conduit.metric("conduit_config_generation") == 21
    assert conduit.metric("conduit_queries_total") == 5000
    assert conduit.metric("conduit_responses_total", rcode="NOERROR") == 5000


def test_fifty_sighup_in_a_row_end_in_one_final_state(
    stub: StubUpstream, start_conduit: Start
) -> None:
    conduit = start_conduit(configuration(stub.address))
    for _ in range(50):
        conduit.send_signal(signal.SIGHUP)
        time.sleep(0.005)
    conduit.wait_for_line("config applied")
    time.sleep(0.3)
    conduit.write(configuration(stub.address, forward={"timeout_ms": 77}))
    conduit.reload()
    assert conduit.query("www.example.test.").answer
    assert conduit.stop() == 0


def test_ch10_example_40_drain_waits_for_the_query_in_flight(
    stub: StubUpstream, start_conduit: Start
) -> None:
    stub.on("slow.example.test.", answer(delay=0.8))
    conduit = start_conduit(configuration(stub.address, shutdown={"drain_timeout_ms": 4000}))
    result: list[dns.message.Message] = []
    thread = threading.Thread(target=lambda: result.append(conduit.query("slow.example.test.")))
    thread.start()
    while not stub.received:
        time.sleep(0.01)
    conduit.send_signal(signal.SIGTERM)
    conduit.wait_for_line("stopping services")
    # listeners stay open and keep accepting during the drain
    assert conduit.query("while.example.test.").answer
    assert conduit.wait() == 0
    thread.join()
    assert result[0].answer
    conduit.wait_for_line("services stopped")


def wait_in_flight(stub: StubUpstream, conduit: Conduit) -> threading.Thread:
    """Put one query in flight that is never answered."""

    def ask_once() -> None:
        try:
            conduit.query("slow.example.test.", timeout=6)
        except (dns.exception.DNSException, OSError):
            pass

    stub.on("slow.example.test.", answer(delay=5))
    thread = threading.Thread(target=ask_once, daemon=True)
    thread.start()
    while not stub.received:
        time.sleep(0.01)
    return thread


LONG: dict[str, Any] = {"timeout_ms": 10_000}


def test_ch20_example_38_drain_timeout_zero_is_one_check(
    stub: StubUpstream, start_conduit: Start
) -> None:
    conduit = start_conduit(
        configuration(stub.address, forward=LONG, shutdown={"drain_timeout_ms": 0})
    )
    wait_in_flight(stub, conduit)
    started = time.monotonic()
    conduit.send_signal(signal.SIGTERM)
    assert conduit.wait() == 0
    assert time.monotonic() - started < 2.5
    assert "remaining=1" in conduit.wait_for_line("drain timed out")


def test_ch20_example_38_a_second_signal_ends_the_drain(
    stub: StubUpstream, start_conduit: Start
) -> None:
    conduit = start_conduit(
        configuration(stub.address, forward=LONG, shutdown={"drain_timeout_ms": 60_000})
    )
    wait_in_flight(stub, conduit)
    conduit.send_signal(signal.SIGTERM)
    conduit.wait_for_line("stopping services")
    time.sleep(0.1)
    assert conduit.process.poll() is None
    started = time.monotonic()
    conduit.send_signal(signal.SIGINT)
    assert conduit.wait() == 0
    assert time.monotonic() - started < 2.5
    conduit.wait_for_line("drain aborted by a second signal")


def test_drain_false_does_not_wait(stub: StubUpstream, start_conduit: Start) -> None:
    conduit = start_conduit(configuration(stub.address, forward=LONG, shutdown={"drain": False}))
    wait_in_flight(stub, conduit)
    started = time.monotonic()
    conduit.send_signal(signal.SIGTERM)
    assert conduit.wait() == 0
    assert time.monotonic() - started < 2.5


def test_drain_settings_are_read_from_the_live_snapshot(
    stub: StubUpstream, start_conduit: Start
) -> None:
    conduit = start_conduit(
        configuration(stub.address, forward=LONG, shutdown={"drain_timeout_ms": 60_000})
    )
    conduit.write(configuration(stub.address, forward=LONG, shutdown={"drain_timeout_ms": 100}))
    conduit.reload()
    wait_in_flight(stub, conduit)
    conduit.send_signal(signal.SIGTERM)
    assert conduit.wait() == 0
    conduit.wait_for_line("drain timed out")


def test_sigterm_during_a_reload_and_reload_during_a_drain(
    stub: StubUpstream, start_conduit: Start
) -> None:
    conduit = start_conduit(configuration(stub.address, shutdown={"drain_timeout_ms": 500}))
    wait_in_flight(stub, conduit)
    for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGHUP, signal.SIGHUP):
        conduit.send_signal(number)
    assert conduit.wait() == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("schema_version: 2\npools: []\n", "unsupported schema_version 2"),
        ("pools: []\n", "schema_version"),
        ("schema_version: 1\n", "pools"),
        ("schema_version: 1\npools: [\n", "conduit.yaml:"),
    ],
)
def test_ch10_example_02_03_bad_files_end_with_exit_code_1(
    tmp_path: Path, start_conduit: Start, text: str, expected: str
) -> None:
    conduit = start_conduit({}, wait=False)
    conduit.wait()
    conduit.write(text)
    with Child([*conduit.command]) as again:
        assert again.wait() == 1
        assert expected in again.output
        assert "Traceback" not in again.output
        assert "Error: " in again.output


def test_an_unreadable_file_names_the_path_and_the_cause(tmp_path: Path) -> None:
    import sys

    with Child([sys.executable, "-m", "conduit.cli.daemon", str(tmp_path / "nope.yaml")]) as child:
        assert child.wait() == 1
        assert "reading config" in child.output
        assert "nope.yaml" in child.output
        assert "Traceback" not in child.output


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("nonsense", "cannot listen on udp nonsense"),
        ("192.0.2.1:53", "cannot listen on udp 192.0.2.1:53"),
    ],
)
def test_ch10_example_08_bad_listener_addresses_fail_at_start(
    stub: StubUpstream, start_conduit: Start, address: str, expected: str
) -> None:
    config = configuration(stub.address)
    config["listeners"]["listeners"] = [{"address": address, "protocol": "udp"}]
    conduit = start_conduit(config, wait=False)
    assert conduit.wait() == 1
    assert expected in conduit.output
    assert "Traceback" not in conduit.output


def test_an_address_in_use_fails_the_start_with_advice(
    stub: StubUpstream, start_conduit: Start
) -> None:
    config = configuration(stub.address)
    config["listeners"]["listeners"] = [{"address": stub.address, "protocol": "udp"}]
    conduit = start_conduit(config, wait=False)
    assert conduit.wait() == 1
    assert "another process" in conduit.output


def test_no_listeners_runs_and_serves_nothing(stub: StubUpstream, start_conduit: Start) -> None:
    conduit = start_conduit({"schema_version": 1, "pools": [], "listeners": {"listeners": []}})
    conduit.wait_for_line("no DNS is served")
    assert conduit.stop() == 0


def test_a_scrape_address_in_use_is_not_fatal_at_start(
    stub: StubUpstream, start_conduit: Start
) -> None:
    port = free_port()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen(1)
        conduit = start_conduit(configuration(stub.address, metrics=with_metrics(port)))
        conduit.wait_for_line("prometheus metrics bind failed at startup")
        assert conduit.query("www.example.test.").answer


def test_ch10_example_37_moving_the_scrape_listener_to_a_port_in_use_is_rejected(
    stub: StubUpstream, start_conduit: Start
) -> None:
    conduit = start_conduit(configuration(stub.address, metrics=with_metrics(free_port())))
    port = free_port()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen(1)
        conduit.write(configuration(stub.address, metrics=with_metrics(port)))
        conduit.send_signal(signal.SIGHUP)
        line = conduit.wait_for_line("SIGHUP config reload failed")
        assert str(port) in line
    assert conduit.metric("conduit_config_generation") == 1
    free = free_port()
    conduit.write(configuration(stub.address, metrics=with_metrics(free)))
    conduit.reload()
    conduit.wait_for_line("prometheus metrics rebound to new address")


def test_paths_are_relative_to_the_working_directory_at_start_and_reload(
    stub: StubUpstream, tmp_path: Path
) -> None:
    import sys

    import yaml

    (tmp_path / "c.yaml").write_text(yaml.safe_dump(configuration(stub.address)))
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with Child(
        [sys.executable, "-m", "conduit.cli.daemon", "c.yaml"], cwd=tmp_path, env=env
    ) as child:
        child.wait_for_line("dataplane listeners started")
        child.send_signal(signal.SIGHUP)
        child.wait_for_line("config applied")


def test_rust_log_overrides_the_level(stub: StubUpstream, start_conduit: Start) -> None:
    conduit = start_conduit(
        configuration(stub.address, logging={"level": "warn"}),
        env={"RUST_LOG": "info,conduit_core=debug"},
    )
    reply = conduit.query("www.example.test.")
    assert reply.answer
    line = conduit.wait_for_line("query complete")
    for field in (
        "qname=www.example.test.",
        "rcode=NOERROR",
        "pool=default",
        f"backend={stub.address}",
        "cache=-",
        "attempts=1",
    ):
        assert field in line
    assert "DEBUG conduit_core: query complete txn_id=" in line


def test_notifications_to_the_service_manager(
    stub: StubUpstream, start_conduit: Start, tmp_path: Path
) -> None:
    path = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(path)
        manager.settimeout(10)
        conduit = start_conduit(
            configuration(stub.address), env={"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "400000"}
        )

        def next_message(wanted: str) -> str:
            while True:
                text = manager.recv(4096).decode()
                if not text.startswith("WATCHDOG") or wanted == "WATCHDOG":
                    return text

        assert next_message("READY") == "READY=1"
        # READY means served: the sockets are bound
        host, port = conduit.listener()
        assert ask(host, port, "www.example.test.").answer
        assert next_message("WATCHDOG") == "WATCHDOG=1"
        conduit.send_signal(signal.SIGHUP)
        text = next_message("RELOADING")
        assert text.startswith("RELOADING=1\nMONOTONIC_USEC=")
        assert next_message("READY") == "READY=1"
        conduit.send_signal(signal.SIGTERM)
        assert next_message("STOPPING") == "STOPPING=1"
        assert conduit.wait() == 0
