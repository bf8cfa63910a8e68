"""Keys, certificates, the access log, and clients that misbehave."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest

from tests.control.conftest import Authority, Controlled
from tests.control.test_grpc_api import refused
from tests.support.daemon import Conduit, configuration
from tests.support.ports import free_port
from tests.support.stub_upstream import StubUpstream

Control = Callable[..., Controlled]
HEALTH = "ConduitControl/Health"


def log_of(made: Controlled, count: int = 1) -> str:
    return made.conduit.wait_for_line("control rpc rpc=", count=count)


def test_anonymous_calls_are_logged(control: Control) -> None:
    made = control()
    made.api()(HEALTH)
    line = log_of(made)
    assert "rpc=/conduit.v1.ConduitControl/Health" in line
    assert "peer=127.0.0.1:" in line
    assert "tls=false requestor=anonymous grpc_code=Ok latency_ms=" in line


def test_ch60_examples_3_and_4_keys(control: Control) -> None:
    made = control({"api_keys": ["k1", "other"]})
    denied = ("UNAUTHENTICATED",)
    for number, (metadata, requestor) in enumerate(
        [
            ((), "unauthenticated"),
            ((("authorization", "Bearer bad"),), "api_key_rejected"),
            ((("authorization", "BEARER k1"),), "unauthenticated"),
            ((("authorization", "Bearer  k1"),), "api_key_rejected"),
            ((("x-api-key", "k"),), "api_key_rejected"),
        ],
        1,
    ):
        status, message = refused(lambda metadata=metadata: made.api(*metadata)(HEALTH))
        assert (status,) == denied
        assert message == (
            "missing or invalid API key (use Authorization: Bearer <key> or x-api-key)"
        )
        line = log_of(made, number)
        assert f"requestor={requestor} grpc_code=Unauthenticated" in line
    good = [
        (("authorization", "Bearer bad"), ("x-api-key", "k1")),
        (("authorization", "Bearer k1"),),
        (("authorization", "bearer other"),),
    ]
    for number, metadata in enumerate(good, 6):
        assert made.api(*metadata)(HEALTH).status == "serving"
        assert "requestor=api_key grpc_code=Ok" in log_of(made, number)
    assert not any("k1" in line for line in made.conduit.lines)


def test_ch60_example_5_keys_follow_a_reload(control: Control) -> None:
    made = control({"api_keys": ["k1"]})
    old = made.api(("x-api-key", "k1"))
    old(HEALTH)
    made.config["control"]["api_keys"] = ["k2"]
    made.conduit.write(made.config)
    made.conduit.reload()
    assert refused(lambda: old(HEALTH))[0] == "UNAUTHENTICATED"
    assert made.api(("x-api-key", "k2"))(HEALTH).status == "serving"


def secure(
    made: Controlled,
    authority: Authority,
    identity: tuple[Path, Path] | None = None,
    root: Path | None = None,
) -> grpc.Channel:
    """A TLS channel that trusts `root`, with a client certificate or without."""
    chain, key = (None, None) if identity is None else (p.read_bytes() for p in identity)
    credentials = grpc.ssl_channel_credentials((root or authority.path).read_bytes(), key, chain)
    return grpc.secure_channel(f"localhost:{made.port}", credentials)


def tls_block(authority: Authority, *, clients: bool = False, **more: Any) -> dict[str, Any]:
    certificate, key = authority.issue("server")
    tls = {"cert_path": str(certificate), "key_path": str(key)}
    if clients:
        tls["client_ca_path"] = str(authority.path)
    return {"tls": tls, **more}


def test_tls(control: Control, authority: Authority) -> None:
    made = control(tls_block(authority))
    api = made.over(secure(made, authority))
    assert api(HEALTH).status == "serving"
    assert api("ConduitControl/ExportConfig").body
    assert "tls=true requestor=anonymous" in log_of(made)
    # much in both directions
    text = "x" * 3_000_000
    call = lambda: api("ConduitControl/GetTrace", txn_id=text)  # noqa: E731
    assert not call().found
    too_much = lambda: api("ConduitControl/GetTrace", txn_id=text * 2)  # noqa: E731
    assert refused(too_much)[0] == "RESOURCE_EXHAUSTED"


def test_ch60_example_7_plaintext_on_a_tls_port(control: Control, authority: Authority) -> None:
    made = control(tls_block(authority))
    assert refused(lambda: made.api()(HEALTH, timeout=2))[0] in ("UNAVAILABLE", "DEADLINE_EXCEEDED")
    line = made.conduit.wait_for_line("control plane connection failed")
    assert "tls=true" in line
    assert "peer=127.0.0.1:" in line
    assert not any("control rpc rpc=" in text for text in made.conduit.lines)


def test_a_server_certificate_of_another_authority(
    control: Control, authority: Authority, tmp_path: Path
) -> None:
    made = control(tls_block(authority))
    stranger = Authority(tmp_path, "stranger")
    api = made.over(secure(made, authority, root=stranger.path))
    assert refused(lambda: api(HEALTH, timeout=3))[0] == "UNAVAILABLE"
    made.conduit.wait_for_line("control plane connection failed")


def test_ch60_example_6_client_certificates(
    control: Control, authority: Authority, tmp_path: Path
) -> None:
    made = control(tls_block(authority, clients=True, api_keys=["k1"]))
    identity = authority.issue("client")
    good = made.over(secure(made, authority, identity), ("x-api-key", "k1"))
    assert good(HEALTH).status == "serving"
    assert "requestor=mtls grpc_code=Ok" in log_of(made)
    wrong_key = made.over(secure(made, authority, identity), ("x-api-key", "no"))
    assert refused(lambda: wrong_key(HEALTH))[0] == "UNAUTHENTICATED"
    assert "requestor=mtls grpc_code=Unauthenticated" in log_of(made, 2)
    stranger = Authority(tmp_path, "stranger")
    for number, bad in enumerate(
        (None, authority.issue("old", expired=True), stranger.issue("unknown")), 1
    ):
        api = made.over(secure(made, authority, bad), ("x-api-key", "k1"))
        assert refused(lambda api=api: api(HEALTH, timeout=3))[0] == "UNAVAILABLE"
        made.conduit.wait_for_line("control plane connection failed", count=number)
    assert sum("control rpc rpc=" in line for line in made.conduit.lines) == 2


def test_a_slow_handshake_delays_nobody(control: Control, authority: Authority) -> None:
    made = control(tls_block(authority))
    stuck = [socket.create_connection(("127.0.0.1", made.port)) for _ in range(50)]
    try:
        started = time.monotonic()
        assert made.over(secure(made, authority))(HEALTH).status == "serving"
        assert time.monotonic() - started < 3
    finally:
        for sock in stuck:
            sock.close()


def test_nothing_reaches_the_server_but_through_the_front(
    control: Control, authority: Authority
) -> None:
    made = control(tls_block(authority, clients=True))
    paths = {
        line.split()[-1]
        for line in Path("/proc/net/unix").read_text().splitlines()
        if line.endswith("grpc.sock")
    }
    assert paths
    for path in paths:
        assert Path(path).parent.stat().st_mode & 0o077 == 0
        with grpc.insecure_channel(f"unix:{path}") as channel:
            status, _ = refused(lambda: made.over(channel)(HEALTH))
            assert status == "PERMISSION_DENIED"


def _http_answer(context: ssl.SSLContext, sock: socket.socket) -> bytes:
    """What a client of HTTP/1.1 gets; nothing when it is turned away."""
    try:
        with context.wrap_socket(sock, server_hostname="localhost") as wrapped:
            wrapped.sendall(b"GET / HTTP/1.1\r\n\r\n")
            return wrapped.recv(100)
    except OSError:
        return b""


@pytest.mark.parametrize("kind", ["plain", "tls"])
def test_misbehaving_clients_disturb_nobody(
    control: Control, authority: Authority, kind: str
) -> None:
    made = control(tls_block(authority) if kind == "tls" else None)
    api = made.over(secure(made, authority)) if kind == "tls" else made.api()
    address = ("127.0.0.1", made.port)
    idle = [socket.create_connection(address) for _ in range(1000)]
    for garbage in (b"\x00" * 100, b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01" + b"\xff" * 500):
        with socket.create_connection(address) as sock:
            sock.sendall(garbage)
    if kind == "tls":
        context = ssl.create_default_context(cafile=str(authority.path))
        context.set_alpn_protocols(["http/1.1"])
        with socket.create_connection(address) as sock:
            assert not _http_answer(context, sock)
    try:
        started = time.monotonic()
        assert api(HEALTH).status == "serving"
        assert made.conduit.query("www.example.test.").answer
        assert time.monotonic() - started < 3
    finally:
        for sock in idle:
            sock.close()


def test_a_client_that_goes_away_in_mid_call(control: Control) -> None:
    made = control()
    for _ in range(20):
        channel = grpc.insecure_channel(f"127.0.0.1:{made.port}")
        future = channel.unary_unary("/conduit.v1.ConduitControl/ReloadFromFile").future(b"")
        threading.Timer(0.002, future.cancel).start()
        time.sleep(0.005)
        channel.close()
    assert made.api()(HEALTH).status == "serving"
    assert made.conduit.query("www.example.test.").answer


def test_ch60_example_2_a_broken_tls_block(
    stub: StubUpstream, start_conduit: Callable[..., Conduit]
) -> None:
    port = free_port()
    for tls in ({"cert_path": "", "key_path": "k.pem"}, {"cert_path": "no.pem", "key_path": "k"}):
        block = {"listen_address": f"127.0.0.1:{port}", "tls": tls}
        conduit = start_conduit(configuration(stub.address, control=block))
        conduit.wait_for_line("control plane failed")
        assert conduit.query("www.example.test.").answer
        with pytest.raises(OSError):
            socket.create_connection(("127.0.0.1", port), timeout=1)


def test_a_taken_port(stub: StubUpstream, start_conduit: Callable[..., Conduit]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        block = {"listen_address": f"127.0.0.1:{taken.getsockname()[1]}"}
        conduit = start_conduit(configuration(stub.address, control=block))
        line = conduit.wait_for_line("control plane failed")
        assert "error=" in line
        assert conduit.query("www.example.test.").answer


def test_a_second_process_cannot_share_the_port(
    control: Control, stub: StubUpstream, start_conduit: Callable[..., Conduit]
) -> None:
    made = control()
    block = {"listen_address": f"127.0.0.1:{made.port}"}
    start_conduit(configuration(stub.address, control=block)).wait_for_line("control plane failed")
    assert made.api()(HEALTH).status == "serving"


def test_applies_under_load_lose_no_query(control: Control) -> None:
    made = control()
    api = made.api()
    stop = threading.Event()
    failures: list[str] = []
    asked = [0]

    def load(number: int) -> None:
        while not stop.is_set():
            try:
                if not made.conduit.query(f"n{number}-{asked[0]}.example.test.").answer:
                    failures.append("no answer")
            except Exception as error:
                failures.append(str(error))
            asked[0] += 1

    threads = [threading.Thread(target=load, args=(n,)) for n in range(2)]
    for thread in threads:
        thread.start()
    generations = []
    for number in range(100):
        patch = api.message("Config", schema_version=1)
        patch.rhai.max_operations = 1000 + number
        generations.append(api("ConduitControl/ApplyConfig", overlay=patch).generation)
    stop.set()
    for thread in threads:
        thread.join()
    assert generations == list(range(2, 102))
    assert not failures
    assert asked[0] > 50
