"""Clients that hold on to what they were given: the control plane serves everybody else."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)

from conduit.control.server import SERVICE_NAMES
from tests.control.conftest import Authority, Controlled
from tests.control.test_grpc_access import HEALTH, log_of, secure, tls_block
from tests.control.test_grpc_api import refused

Control = Callable[..., Controlled]
PATH = f"/conduit.v1.{HEALTH}"


@contextlib.contextmanager
def unsent_requests(channel: grpc.Channel, count: int, path: str = PATH) -> Iterator[list[object]]:
    """Calls whose headers are sent and whose message never comes."""
    end = threading.Event()

    def never() -> Iterator[bytes]:
        end.wait(30)
        return
        yield b""

    calls = [channel.stream_unary(path).future(never(), timeout=30) for _ in range(count)]
    time.sleep(0.5)
    try:
        yield calls
    finally:
        end.set()
        for call in calls:
            call.cancel()


def test_requests_that_never_come_hold_no_thread(control: Control) -> None:
    made = control()
    with unsent_requests(made.api().channel, 40):
        assert made.api()(HEALTH, timeout=3).status == "serving"


def test_a_caller_without_a_key_is_told_before_it_has_sent_anything(control: Control) -> None:
    made = control({"api_keys": ["k1"]})
    with unsent_requests(made.api().channel, 40) as calls:
        assert made.api(("x-api-key", "k1"))(HEALTH, timeout=3).status == "serving"
        codes = {call.exception(timeout=5).code().name for call in calls}
        assert codes == {"UNAUTHENTICATED"}
    assert "requestor=unauthenticated" in log_of(made, 1)


@pytest.mark.parametrize(("key", "status"), [("", "UNAUTHENTICATED"), ("k1", "INTERNAL")])
def test_what_cannot_be_read_is_asked_for_its_key_first(
    control: Control, key: str, status: str
) -> None:
    made = control({"api_keys": ["k1"]})
    call = made.api().channel.unary_unary("/conduit.v1.ConduitPools/GetPool")
    metadata = (("x-api-key", key),) if key else ()
    assert refused(lambda: call(b"\xff\xff\xff", timeout=5, metadata=metadata))[0] == status
    code = status.capitalize()
    assert "rpc=/conduit.v1.ConduitPools/GetPool peer=127.0.0.1:" in log_of(made)
    assert f"grpc_code={code} " in log_of(made)


def test_open_reflection_streams_hold_back_no_call(control: Control) -> None:
    made = control({"reflection_enabled": True, "api_keys": ["k1"]})
    stub = reflection_pb2_grpc.ServerReflectionStub(made.api().channel)
    end = threading.Event()

    def never() -> Iterator[object]:
        end.wait(30)
        return
        yield None

    streams = [stub.ServerReflectionInfo(never(), timeout=30) for _ in range(20)]
    time.sleep(0.5)
    try:
        assert made.api(("x-api-key", "k1"))(HEALTH, timeout=3).status == "serving"
    finally:
        end.set()
        for stream in streams:
            stream.cancel()


def test_the_standard_health_service_answers_checks_only(control: Control) -> None:
    made = control()
    stub = health_pb2_grpc.HealthStub(made.api().channel)
    for _ in range(10):
        watch = stub.Watch(health_pb2.HealthCheckRequest(), timeout=5)
        assert refused(lambda watch=watch: next(watch))[0] == "UNIMPLEMENTED"
    request = health_pb2.HealthCheckRequest(service="nothing")
    assert refused(lambda: stub.Check(request, timeout=5))[0] == "NOT_FOUND"


def test_reflection_lists_the_nine_services_and_itself(control: Control) -> None:
    channel = control({"reflection_enabled": True}).api().channel
    names = sorted(ProtoReflectionDescriptorDatabase(channel).get_services())
    assert names == sorted((*SERVICE_NAMES, "grpc.reflection.v1alpha.ServerReflection"))
    assert len(names) == 10


def test_a_request_that_is_given_up_or_too_large_is_logged(control: Control) -> None:
    made = control()
    api = made.api()
    with unsent_requests(api.channel, 1) as calls:
        calls[0].cancel()
        assert "grpc_code=Cancelled" in log_of(made)
    text = "x" * 5_000_000
    status, _ = refused(lambda: api("ConduitControl/GetTrace", txn_id=text))
    assert status == "RESOURCE_EXHAUSTED"
    line = log_of(made, 2)
    assert "rpc=/conduit.v1.ConduitControl/GetTrace" in line
    assert "grpc_code=ResourceExhausted" in line


def test_a_deadline_of_the_client_is_logged_as_one(control: Control) -> None:
    made = control()

    def never() -> Iterator[bytes]:
        time.sleep(2)
        return
        yield b""

    call = made.api().channel.stream_unary(PATH)
    assert refused(lambda: call(never(), timeout=0.3))[0] == "DEADLINE_EXCEEDED"
    assert "grpc_code=DeadlineExceeded" in log_of(made)


def test_open_calls_do_not_keep_the_service_from_ending(control: Control) -> None:
    made = control({"reflection_enabled": True})
    stub = reflection_pb2_grpc.ServerReflectionStub(made.api().channel)
    end = threading.Event()

    def never() -> Iterator[object]:
        end.wait(30)
        return
        yield None

    stream = stub.ServerReflectionInfo(never(), timeout=30)
    with unsent_requests(made.api().channel, 3):
        started = time.monotonic()
        made.conduit.process.terminate()
        assert made.conduit.process.wait(10) == 0
        assert time.monotonic() - started < 6
    end.set()
    stream.cancel()


def test_a_client_that_is_gone_is_still_named_in_the_log(
    control: Control, authority: Authority
) -> None:
    made = control(tls_block(authority, clients=True))
    channel = secure(made, authority, authority.issue("client"))
    with unsent_requests(channel, 1):
        channel.close()
        line = log_of(made)
    assert "peer=127.0.0.1:" in line
    assert "tls=true requestor=mtls grpc_code=Cancelled" in line
