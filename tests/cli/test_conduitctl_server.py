"""The connection of `conduitctl`: credentials, TLS, failures; and the stub server for its tests."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
import pytest
from click.testing import CliRunner, Result
from google.protobuf import descriptor_pool, message_factory
from google.protobuf.message import Message

from conduit.cli.conduitctl import main
from conduit.v1 import control_pb2, pools_pb2
from tests.control.conftest import Authority
from tests.support.ports import free_port

Answer = Message | tuple[grpc.StatusCode, str]


class StubServer(grpc.GenericRpcHandler):  # type: ignore[misc]
    """A control plane that answers what a test set, by method name, and keeps the requests."""

    def __init__(self, credentials: grpc.ServerCredentials | None = None) -> None:
        self.answers: dict[str, Answer] = {}
        self.requests: list[tuple[str, Any]] = []
        self.metadata: dict[str, str] = {}
        self._server = grpc.server(
            futures.ThreadPoolExecutor(2), options=[("grpc.so_reuseport", 0)]
        )
        self._server.add_generic_rpc_handlers((self,))
        if credentials is None:
            self.port = self._server.add_insecure_port("127.0.0.1:0")
        else:
            self.port = self._server.add_secure_port("127.0.0.1:0", credentials)
            # an address that no certificate of the tests names
            self._server.add_secure_port(f"127.0.0.2:{self.port}", credentials)
        self._server.start()

    def service(self, call: Any) -> grpc.RpcMethodHandler | None:
        _, service, method = call.method.split("/")
        found = descriptor_pool.Default().FindServiceByName(service).methods_by_name[method]

        def answer(request: Any, context: grpc.ServicerContext) -> Any:
            self.requests.append((method, request))
            self.metadata = dict(context.invocation_metadata())
            made = self.answers[method]
            if isinstance(made, tuple):
                context.abort(*made)
            return made

        return grpc.unary_unary_rpc_method_handler(
            answer,
            message_factory.GetMessageClass(found.input_type).FromString,
            lambda message: message.SerializeToString(),
        )

    @property
    def request(self) -> Any:
        """The only request so far."""
        ((_, request),) = self.requests
        return request

    def close(self) -> None:
        self._server.stop(0).wait(5)


class Ctl:
    """Runs `conduitctl` against a stub server in an environment of its own."""

    def __init__(self, server: StubServer, folder: Path) -> None:
        self.server = server
        self.folder = folder
        self.env: dict[str, str | None] = {
            "HOME": str(folder),
            "CONDUIT_CONTROL": f"http://127.0.0.1:{server.port}",
            **dict.fromkeys(
                (
                    "XDG_CONFIG_HOME",
                    "APPDATA",
                    "CONDUITCTL_CONFIG",
                    "CONDUIT_API_KEY",
                    "CONDUIT_API_KEY_FILE",
                    "CONDUIT_TLS_CA",
                    "CONDUIT_TLS_CERT",
                    "CONDUIT_TLS_KEY",
                    "CONDUIT_TLS_INSECURE",
                )
            ),
        }

    def __call__(self, *args: str, env: Mapping[str, str] | None = None) -> Result:
        return CliRunner().invoke(main, args, env={**self.env, **(env or {})})


@pytest.fixture
def server() -> Iterator[StubServer]:
    made = StubServer()
    yield made
    made.close()


@pytest.fixture
def ctl(server: StubServer, tmp_path: Path) -> Ctl:
    server.answers["ListPools"] = pools_pb2.ListPoolsResponse()
    return Ctl(server, tmp_path)


def failed(result: Result, text: str) -> None:
    """Assert a failure at run time whose message holds `text`."""
    assert result.exit_code == 1, result.output
    assert result.stderr.startswith("Error: ")
    assert text in result.stderr
    assert result.stdout == ""


# credentials


def test_no_key_sends_no_credential(ctl: Ctl) -> None:
    assert ctl("pool", "list").exit_code == 0
    assert "authorization" not in ctl.server.metadata


def test_ch60_example_17_an_inline_key_beats_a_key_file(ctl: Ctl) -> None:
    (ctl.folder / "f").write_text("from-file\n")
    path = str(ctl.folder / "f")
    env = {"CONDUIT_API_KEY": "e"}
    assert ctl("--api-key-file", path, "pool", "list", env=env).exit_code == 0
    assert ctl.server.metadata["authorization"] == "Bearer e"
    ctl("pool", "list", "--api-key-file", path)
    assert ctl.server.metadata["authorization"] == "Bearer from-file"


def test_a_key_that_cannot_be_sent(ctl: Ctl) -> None:
    failed(ctl("pool", "list", "--api-key", "schlüssel"), "not visible ASCII")
    assert ctl.server.requests == []


# failures


def test_ch60_example_1_no_control_plane(ctl: Ctl) -> None:
    endpoint = f"http://127.0.0.1:{free_port()}"
    result = ctl("reload", "--endpoint", endpoint)
    failed(result, f"Error: connect to control plane {endpoint}: Connection refused")


def test_a_status_is_told_with_its_name(ctl: Ctl) -> None:
    ctl.server.answers["ReloadFromFile"] = (grpc.StatusCode.UNAUTHENTICATED, "no key")
    failed(ctl("reload"), "Error: no key (Unauthenticated)")


@pytest.mark.parametrize(
    ("endpoint", "text"),
    [
        ("ftp://h:1", 'unsupported control endpoint scheme "ftp"; use http:// or https://'),
        ("127.0.0.1:5199", 'unsupported control endpoint scheme ""; use http:// or https://'),
        ("http://", "expected http://host:port"),
        ("http://h:99999", "invalid control endpoint"),
    ],
)
def test_endpoints_that_are_none(ctl: Ctl, endpoint: str, text: str) -> None:
    failed(ctl("reload", "--endpoint", endpoint), text)


def test_a_proxy_of_the_environment_is_not_asked(ctl: Ctl) -> None:
    proxy = f"http://127.0.0.1:{free_port()}"
    assert ctl("pool", "list", env={"http_proxy": proxy, "grpc_proxy": proxy}).exit_code == 0


# TLS


@pytest.fixture
def tls(tmp_path: Path) -> Iterator[tuple[Ctl, Authority]]:
    authority = Authority(tmp_path, "ca")
    cert, key = authority.issue("server")
    credentials = grpc.ssl_server_credentials([(key.read_bytes(), cert.read_bytes())])
    server = StubServer(credentials)
    server.answers["ListPools"] = pools_pb2.ListPoolsResponse(
        pools=[pools_pb2.PoolSummary(name="x" * 30, backend_count=1) for _ in range(5000)]
    )
    made = Ctl(server, tmp_path)
    made.env["CONDUIT_CONTROL"] = f"https://localhost:{server.port}"
    yield made, authority
    server.close()
    assert not [t for t in threading.enumerate() if t.name == "conduitctl-tls" and t.is_alive()]


def test_tls_verifies_by_default(tls: tuple[Ctl, Authority]) -> None:
    ctl, _ = tls
    failed(ctl("pool", "list"), "connect to control plane https://localhost:")
    assert ctl.server.requests == []


def test_tls_with_its_authority(tls: tuple[Ctl, Authority]) -> None:
    ctl, authority = tls
    result = ctl("pool", "list", "--tls-ca", str(authority.path), "--api-key", "k")
    assert result.exit_code == 0, result.output
    # more than one TLS record, so that nothing waits inside the tunnel
    assert len(result.stdout.splitlines()) == 5000
    assert ctl.server.metadata["authorization"] == "Bearer k"


def test_tls_of_another_name(tls: tuple[Ctl, Authority]) -> None:
    ctl, authority = tls
    endpoint = f"https://127.0.0.2:{ctl.server.port}"
    args = ["pool", "list", "--endpoint", endpoint, "--tls-ca", str(authority.path)]
    failed(ctl(*args), "IP address mismatch")
    assert ctl(*args, "--tls-insecure").exit_code == 0


def test_tls_ca_is_the_only_authority(tls: tuple[Ctl, Authority]) -> None:
    ctl, _ = tls
    (ctl.folder / "other").mkdir()
    stranger = Authority(ctl.folder / "other", "stranger")
    failed(ctl("pool", "list", "--tls-ca", str(stranger.path)), "not trusted")
    failed(ctl("pool", "list", "--tls-ca", "nope.pem"), "nope.pem")


@pytest.mark.parametrize("how", ["flag", "variable", "file"])
def test_insecure_skips_chain_and_name(tls: tuple[Ctl, Authority], how: str) -> None:
    ctl, _ = tls
    args = ["pool", "list", "--endpoint", f"https://127.0.0.1:{ctl.server.port}"]
    if how == "flag":
        result = ctl(*args, "--tls-insecure")
    elif how == "variable":
        result = ctl(*args, env={"CONDUIT_TLS_INSECURE": "Yes"})
    else:
        (ctl.folder / "f.yaml").write_text("tls: {insecure_skip_verify: true}")
        args += ["--config", str(ctl.folder / "f.yaml")]
        result = ctl(*args)
        failed(ctl(*args, env={"CONDUIT_TLS_INSECURE": "off"}), "certificate")
    assert result.exit_code == 0, result.output


def test_expired_certificates_fail_unless_insecure(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "ca")
    cert, key = authority.issue("server", expired=True)
    server = StubServer(grpc.ssl_server_credentials([(key.read_bytes(), cert.read_bytes())]))
    server.answers["ListPools"] = pools_pb2.ListPoolsResponse()
    ctl = Ctl(server, tmp_path)
    ctl.env["CONDUIT_CONTROL"] = f"https://localhost:{server.port}"
    failed(ctl("pool", "list", "--tls-ca", str(authority.path)), "expired")
    assert ctl("pool", "list", "--tls-insecure").exit_code == 0
    server.close()


def test_client_identity(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "ca")
    cert, key = authority.issue("server")
    own_cert, own_key = authority.issue("client")
    credentials = grpc.ssl_server_credentials(
        [(key.read_bytes(), cert.read_bytes())],
        root_certificates=authority.path.read_bytes(),
        require_client_auth=True,
    )
    server = StubServer(credentials)
    server.answers["ReloadFromFile"] = control_pb2.ReloadFromFileResponse(ok=True, generation=3)
    ctl = Ctl(server, tmp_path)
    ctl.env["CONDUIT_CONTROL"] = f"https://localhost:{server.port}"
    ctl.env["CONDUIT_TLS_CA"] = str(authority.path)
    failed(ctl("reload"), "connect to control plane")
    identity = ("--tls-cert", str(own_cert), "--tls-key", str(own_key))
    assert ctl("reload", *identity).stdout == "ok generation=3\n"
    assert ctl("reload", *identity, "--tls-insecure").exit_code == 0
    failed(
        ctl("reload", "--tls-cert", str(own_cert)),
        "client TLS identity requires both cert and key",
    )
    failed(ctl("reload", "--tls-cert", "nope.pem", "--tls-key", str(own_key)), "nope.pem")
    server.close()


def test_plaintext_ignores_tls_settings(ctl: Ctl) -> None:
    assert ctl("pool", "list", "--tls-cert", "nope", "--tls-ca", "nope").exit_code == 0


def test_commands_without_a_server_read_no_client_file(ctl: Ctl) -> None:
    (ctl.folder / "bad.yaml").write_text("[")
    config = ctl.folder / "c.yaml"
    config.write_text(
        "schema_version: 1\npools: []\n"
        "listeners: {listeners: [{address: '127.0.0.1:53', protocol: udp}]}\n"
    )
    bad = {"CONDUITCTL_CONFIG": str(ctl.folder / "bad.yaml")}
    assert ctl("validate", "--file", str(config), env=bad).exit_code == 0
    assert ctl("acl", "check", "::1", "--file", str(config), env=bad).exit_code == 0
    assert ctl("diff", "--file", str(config), "--against", str(config), env=bad).exit_code == 0
    failed(ctl("pool", "list", env=bad), "client config")
