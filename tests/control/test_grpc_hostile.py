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
from tests.control.conftest import Controlled
from tests.control.test_grpc_access import HEALTH, log_of
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
