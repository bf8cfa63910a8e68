"""Where the settings of `conduitctl` come from (chapter 60 sections 9.1 and 9.2)."""

from __future__ import annotations

from pathlib import Path

import pytest

from conduit.cli.ctl.client_file import client_file_path, load_client_file
from conduit.cli.ctl.errors import CtlError
from conduit.cli.ctl.settings import Settings, Target, parse_endpoint, resolve

ENDPOINTS = {"config": "/none"}


def of_file(folder: Path, text: str, **environment: str) -> Settings:
    path = folder / "c.yaml"
    path.write_text(text)
    return resolve({"config": str(path)}, environment)


def test_the_built_in_endpoint() -> None:
    assert resolve(ENDPOINTS, {}) == Settings("http://127.0.0.1:5199")


def test_order_of_the_endpoint(tmp_path: Path) -> None:
    text = "endpoint: http://file:1"
    assert of_file(tmp_path, text).endpoint == "http://file:1"
    assert of_file(tmp_path, text, CONDUIT_CONTROL=" http://env:1 ").endpoint == "http://env:1"
    assert of_file(tmp_path, text, CONDUIT_CONTROL="  ").endpoint == "http://file:1"
    options = {"config": str(tmp_path / "c.yaml"), "endpoint": "http://flag:1"}
    assert resolve(options, {"CONDUIT_CONTROL": "http://env:1"}).endpoint == "http://flag:1"


def test_order_of_the_key(tmp_path: Path) -> None:
    for name in ("flag", "env", "file"):
        (tmp_path / f"{name}.key").write_text(f" {name}-key\n")
    text = f"api_key: inline\napi_key_file: {tmp_path}/file.key\n"
    path = tmp_path / "c.yaml"
    path.write_text(text)
    options: dict[str, str] = {"config": str(path)}
    env: dict[str, str] = {}
    assert resolve(options, env).api_key == "file-key"
    env["CONDUIT_API_KEY_FILE"] = f"{tmp_path}/env.key"
    assert resolve(options, env).api_key == "env-key"
    options["api_key_file"] = f"{tmp_path}/flag.key"
    assert resolve(options, env).api_key == "flag-key"
    env["CONDUIT_API_KEY"] = " env-inline "
    assert resolve(options, env).api_key == "env-inline"
    options["api_key"] = "flag-inline"
    assert resolve(options, env).api_key == "flag-inline"
    assert of_file(tmp_path, "api_key: 0123").api_key == "0123"


@pytest.mark.parametrize("content", [None, b"", b" \n", b"\xff"])
def test_key_files_that_hold_no_key(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "k"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(CtlError, match="API key file"):
        resolve({**ENDPOINTS, "api_key_file": str(path)}, {})


@pytest.mark.parametrize(
    ("value", "in_file", "expected"),
    [
        ("1", False, True),
        ("TRUE", False, True),
        ("yes", False, True),
        ("on", False, True),
        ("0", True, False),
        ("False", True, False),
        ("no", True, False),
        ("OFF", True, False),
        ("maybe", True, True),
        ("maybe", False, False),
        ("", True, True),
    ],
)
def test_insecure_by_variable(tmp_path: Path, value: str, in_file: bool, expected: bool) -> None:
    text = f"tls: {{insecure_skip_verify: {str(in_file).lower()}}}"
    assert of_file(tmp_path, text, CONDUIT_TLS_INSECURE=value).tls_insecure is expected
    # the flag beats both
    options = {"config": str(tmp_path / "c.yaml"), "tls_insecure": True}
    assert resolve(options, {"CONDUIT_TLS_INSECURE": value}).tls_insecure


def test_paths_of_the_file(tmp_path: Path) -> None:
    text = "tls: {ca: ~/ca.pem, cert: rel.pem, key: /abs/~/key.pem}"
    found = of_file(tmp_path, text, HOME="/home/op")
    assert (found.tls_ca, found.tls_cert, found.tls_key) == (
        "/home/op/ca.pem",
        "rel.pem",
        "/abs/~/key.pem",
    )
    # a flag is the shell's to expand
    assert resolve({**ENDPOINTS, "tls_ca": "~/x"}, {"HOME": "/home/op"}).tls_ca == "~/x"
    environment = {"CONDUIT_TLS_CERT": "e.pem", "CONDUIT_TLS_KEY": "e.key", "CONDUIT_TLS_CA": "c"}
    found = of_file(tmp_path, text, **environment)
    assert (found.tls_ca, found.tls_cert, found.tls_key) == ("c", "e.pem", "e.key")


@pytest.mark.parametrize(
    ("option", "environment", "path"),
    [
        ("x.yaml", {"CONDUITCTL_CONFIG": "y"}, "x.yaml"),
        (None, {"CONDUITCTL_CONFIG": "y", "XDG_CONFIG_HOME": "/x"}, "y"),
        (None, {"XDG_CONFIG_HOME": "/x", "HOME": "/h"}, "/x/conduit/conduitctl.yaml"),
        (None, {"HOME": "/h", "APPDATA": "/a"}, "/h/.config/conduit/conduitctl.yaml"),
        (None, {"XDG_CONFIG_HOME": "", "APPDATA": "/a"}, "/a/conduit/conduitctl.yaml"),
        (None, {}, "./conduitctl.yaml"),
    ],
)
def test_place_of_the_client_file(
    option: str | None, environment: dict[str, str], path: str
) -> None:
    assert client_file_path(option, environment) == path


def test_a_missing_file_is_no_error_and_odd_keys_are_ignored(tmp_path: Path) -> None:
    assert load_client_file(str(tmp_path / "no" / "file"), {}).endpoint is None
    assert of_file(tmp_path, "colour: red\ntls: ~\nendpoint: null\n").endpoint.endswith(":5199")
    assert of_file(tmp_path, "").endpoint.endswith(":5199")


@pytest.mark.parametrize(
    "text",
    ["[", "- a", "text", "endpoint: [a]", "tls: x", "tls: {insecure_skip_verify: maybe}"],
)
def test_malformed_files_are_errors(tmp_path: Path, text: str) -> None:
    with pytest.raises(CtlError, match="client config"):
        of_file(tmp_path, text)


@pytest.mark.parametrize(
    ("endpoint", "target"),
    [
        ("http://127.0.0.1:5199", Target(False, "127.0.0.1", 5199)),
        ("https://example.test", Target(True, "example.test", 443)),
        ("https://[::1]:8443/", Target(True, "::1", 8443)),
    ],
)
def test_endpoints(endpoint: str, target: Target) -> None:
    assert parse_endpoint(endpoint) == target


def test_an_address_with_colons_is_bracketed() -> None:
    assert Target(True, "::1", 1).authority == "[::1]:1"


def test_the_key_stays_out_of_texts() -> None:
    assert "secret" not in repr(Settings("http://h:1", api_key="secret"))
