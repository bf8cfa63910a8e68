"""`conduitctl` without a server: validate, acl check (chapter 60 section 9)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from conduit.cli.conduitctl import main

ROOT = Path(__file__).parents[2]
CONFIG = """
schema_version: 1
listeners:
  listeners:
    - {address: "127.0.0.1:53", protocol: udp}
    - {address: "127.0.0.1:53", protocol: tcp, name: t, acls: {rules: []}}
pools: []
data_sources: [{name: corp, type: cidr, path: corp.cidr}]
acls: {default_action: deny, rules: [{match: corp, action: tag, tag: c}]}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "corp.cidr").write_text("10.0.0.0/8\n")
    path = tmp_path / "c.yaml"
    path.write_text(CONFIG)
    return path


def test_validate_prints_ok() -> None:
    result = CliRunner().invoke(main, ["validate", "--file", str(ROOT / "conf/conduit.yaml")])
    assert (result.exit_code, result.stdout) == (0, "ok\n")


def test_validate_lists_every_error(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("schema_version: 2\npools: [{name: p, backends: []}]\n")
    result = CliRunner().invoke(main, ["validate", "--file", str(path)])
    assert result.exit_code == 1
    assert "unsupported schema_version 2" in result.stderr
    assert "has no backends" in result.stderr
    assert result.stderr.endswith("Error: validation failed\n")


def test_ch60_example_20_health_is_validated_while_disabled(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(
        "schema_version: 1\npools: [{name: p, health: {enabled: false, interval_ms: 50},"
        " backends: [{address: '127.0.0.1:53'}]}]\n"
    )
    result = CliRunner().invoke(main, ["validate", "--file", str(path)])
    assert result.exit_code == 1
    assert "below the 100ms floor" in result.stderr


def test_validate_compiles_too(config: Path) -> None:
    (config.parent / "corp.cidr").write_text("nonsense\n")
    result = CliRunner().invoke(main, ["validate", "--file", str(config)])
    assert result.exit_code == 1
    assert "data source 'corp'" in result.stderr
    assert "line 1: invalid CIDR prefix or address 'nonsense'" in result.stderr
    assert result.stderr.endswith("Error: compile failed\n")


def test_ch60_example_16_acl_check(config: Path) -> None:
    result = CliRunner().invoke(main, ["acl", "check", "10.1.2.3", "--file", str(config)])
    assert result.exit_code == 0
    body = json.loads(result.stdout)
    assert list(body) == ["ip", "source", "results"]
    assert list(body["results"][0].items()) == [
        ("listener", "udp:127.0.0.1:53"),
        ("decision", "tag"),
        ("tag", "c"),
        ("matched", "corp"),
        ("action", "tag"),
    ]
    assert body["results"][1] == {
        "listener": "t",
        "decision": "admit",
        "matched": "default",
        "action": "allow",
    }


def test_acl_check_of_one_listener_and_its_errors(config: Path) -> None:
    run = CliRunner().invoke
    options = ["--file", str(config)]
    one = run(main, ["acl", "check", "192.0.2.1", "--listener", "udp:127.0.0.1:53", *options])
    (result,) = json.loads(one.stdout)["results"]
    assert (result["decision"], result["matched"], result["action"]) == ("drop", "default", "deny")
    unknown = run(main, ["acl", "check", "192.0.2.1", "--listener", "x", *options])
    assert (unknown.exit_code, unknown.stderr) == (1, "Error: unknown listener 'x'\n")
    bad = run(main, ["acl", "check", "nonsense", *options])
    assert (bad.exit_code, bad.stderr) == (1, "Error: invalid ip address 'nonsense'\n")


def test_usage_errors_exit_with_2() -> None:
    assert CliRunner().invoke(main, ["validate"]).exit_code == 2
    assert CliRunner().invoke(main, ["nonsense"]).exit_code == 2
