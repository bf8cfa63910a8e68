"""A daemon with a control plane, and certificates."""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.control.stubs import Api
from tests.support.daemon import Conduit, configuration
from tests.support.ports import free_port
from tests.support.stub_upstream import StubUpstream


class Authority:
    """A certificate authority in a folder; `issue` writes NAME.pem and NAME.key."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.path = folder / f"{name}.pem"
        now = datetime.datetime.now(datetime.timezone.utc)
        certificate = (
            self._builder(self.name, self.key, now, 10)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(self.key, hashes.SHA256())
        )
        self.path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def _builder(self, subject: x509.Name, key: Any, start: Any, days: int) -> Any:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(start - datetime.timedelta(days=1))
            .not_valid_after(start + datetime.timedelta(days=days))
        )

    def issue(self, name: str, *, expired: bool = False) -> tuple[Path, Path]:
        """Write a certificate for `localhost` and 127.0.0.1."""
        key = ec.generate_private_key(ec.SECP256R1())
        start = datetime.datetime.now(datetime.timezone.utc)
        if expired:
            start -= datetime.timedelta(days=30)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        certificate = (
            self._builder(subject, key, start, 5)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .sign(self.key, hashes.SHA256())
        )
        paths = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        paths[1].write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return paths


class Controlled:
    """A daemon with a control plane on `port`, and plaintext calls to it."""

    def __init__(self, folder: Path, conduit: Conduit, port: int, config: dict[str, Any]) -> None:
        self.folder = folder
        self.conduit = conduit
        self.port = port
        self.config = config
        self._channels: list[grpc.Channel] = []

    def api(self, *metadata: tuple[str, str]) -> Api:
        """Calls over a channel of their own."""
        return self.over(grpc.insecure_channel(f"127.0.0.1:{self.port}"), *metadata)

    def over(self, channel: grpc.Channel, *metadata: tuple[str, str]) -> Api:
        """Calls over `channel`."""
        self._channels.append(channel)
        return Api(self.folder, channel, metadata)

    def close(self) -> None:
        for channel in self._channels:
            channel.close()


Control = Callable[..., Controlled]


@pytest.fixture
def control(
    tmp_path: Path, stub: StubUpstream, start_conduit: Callable[..., Conduit]
) -> Iterator[Control]:
    """Start a daemon with `control:` and more blocks."""
    started: list[Controlled] = []

    def start(block: dict[str, Any] | None = None, **blocks: Any) -> Controlled:
        port = free_port()
        listen = {"listen_address": f"127.0.0.1:{port}"}
        config = configuration(stub.address, control={**listen, **(block or {})}, **blocks)
        files = blocks.pop("files", {})
        config.pop("files", None)
        conduit = start_conduit(config, files=files)
        conduit.wait_for_line("control plane")
        made = Controlled(tmp_path, conduit, port, config)
        started.append(made)
        return made

    yield start
    for made in started:
        made.close()


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path, "ca")


@pytest.fixture
def runtime() -> str:
    """The control plane stands above the runtimes: one of them is enough."""
    return "sync"
