"""Stubs generated afresh from `schema/proto`.

A process cannot load two descriptors of one file name, so the stubs speak through generic
calls: a method's path, and message classes of a descriptor pool of their own.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from grpc_tools import protoc

PROTOS = Path(__file__).parents[2] / "schema" / "proto"


@functools.cache
def fresh_pool(
    folder: str,
) -> tuple[descriptor_pool.DescriptorPool, descriptor_pb2.FileDescriptorSet]:
    """Compile the wire definitions into `folder`; returns their own pool and descriptors."""
    output = Path(folder) / "conduit.pb"
    files = sorted(str(path) for path in (PROTOS / "conduit" / "v1").glob("*.proto"))
    code = protoc.main(
        ["protoc", f"-I{PROTOS}", f"--descriptor_set_out={output}", "--include_imports", *files]
    )
    assert code == 0
    described = descriptor_pb2.FileDescriptorSet.FromString(output.read_bytes())
    pool = descriptor_pool.DescriptorPool()
    for file in described.file:
        pool.Add(file)
    return pool, described


class Api:
    """Calls of one channel: `api("ConduitPools/ListPools")`, fields as keywords."""

    def __init__(
        self, folder: Path, channel: grpc.Channel, metadata: Sequence[tuple[str, str]] = ()
    ) -> None:
        self.pool, self.described = fresh_pool(str(folder))
        self.channel = channel
        self.metadata = metadata

    def message(self, name: str, /, **fields: Any) -> Any:
        """A message by its short name."""
        kind = self.pool.FindMessageTypeByName(f"conduit.v1.{name}")
        return message_factory.GetMessageClass(kind)(**fields)

    def __call__(self, path: str, *, timeout: float = 10.0, **fields: Any) -> Any:
        service, _, method = path.partition("/")
        found = self.pool.FindServiceByName(f"conduit.v1.{service}").FindMethodByName(method)
        request = message_factory.GetMessageClass(found.input_type)(**fields)
        call = self.channel.unary_unary(
            f"/conduit.v1.{path}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=message_factory.GetMessageClass(found.output_type).FromString,
        )
        return call(request, timeout=timeout, metadata=self.metadata)

    def raw(self, path: str) -> bytes:
        """Call a method with an empty request and return the octets of the response."""
        call = self.channel.unary_unary(
            path,
            request_serializer=lambda octets: octets,
            response_deserializer=lambda octets: octets,
        )
        response: bytes = call(b"", timeout=10, metadata=self.metadata)
        return response

    def methods(self) -> list[tuple[str, str]]:
        """Every rpc as (service, method)."""
        return [
            (service.name, method.name)
            for file in self.described.file
            for service in file.service
            for method in service.method
        ]
