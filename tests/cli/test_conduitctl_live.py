"""`conduitctl` against the daemon itself: one round through the commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from conduit.cli.conduitctl import main
from tests.cli.test_conduitctl_server import failed
from tests.control.conftest import Authority, Control, authority, control, runtime
from tests.support.daemon import with_metrics
from tests.support.ports import free_port

__all__ = ["authority", "control", "runtime"]


class Live:
    """Runs `conduitctl` against a daemon."""

    def __init__(self, folder: Path, endpoint: str) -> None:
        self.folder = folder
        self.env = {"HOME": str(folder), "XDG_CONFIG_HOME": "", "CONDUIT_CONTROL": endpoint}

    def __call__(self, *args: str) -> Result:
        return CliRunner().invoke(main, args, env=self.env)

    def patch(self, **blocks: Any) -> str:
        path = self.folder / "patch.yaml"
        path.write_text(yaml.safe_dump({"schema_version": 1, **blocks}))
        return str(path)


def test_overlay_round(control: Control, tmp_path: Path) -> None:
    started = control()
    live = Live(tmp_path, f"http://127.0.0.1:{started.port}")
    file = str(started.conduit.path)
    name = started.config["pools"][0]["name"]
    address = started.config["pools"][0]["backends"][0]["address"]
    before = live("export").stdout
    assert live("diff", "--file", file).stdout == "no differences\n"

    # chapter 60, example 13
    weight = ("backend", "set-weight", "--pool", name, "--backend", address, "--weight")
    assert live(*weight, "40").stdout == "ok generation=2\n"
    assert live("diff", "--file", file).stdout.splitlines()[0] == (
        f"~ pools[{name}].backends[{address}].weight: 40 -> 100"
    )
    assert live(*weight, "100").stdout == "ok generation=3\n"
    assert live("export").stdout == before

    patch = live.patch(pools=[{"name": name, "backends": [{"address": "127.0.0.9:53"}]}])
    assert live("apply", "--file", patch).stdout == "ok generation=4\n"
    assert live("pool", "list").stdout == f"{name} backends=2\n"
    bad = live.patch(pools=[{"name": name, "backends": [{"name": "z", "weight": 1}]}])
    failed(live("apply", "--file", bad), "apply failed: pool")
    assert live("apply", "--clear").stdout == "ok generation=5\n"
    assert live("export").stdout == before

    # the export is a configuration that starts the same service
    exported = tmp_path / "exported.yaml"
    assert live("export", "--output", str(exported)).exit_code == 0
    assert live("validate", "--file", str(exported)).stdout == "ok\n"
    assert live("diff", "--file", str(exported), "--against", file).stdout == "no differences\n"
    assert live("reload").stdout == "ok generation=6\n"


def test_ch60_examples_16_and_19(control: Control, tmp_path: Path) -> None:
    started = control(
        files={"corp.cidr": "10.0.0.0/8\n"},
        data_sources=[{"name": "corp", "type": "cidr", "path": "corp.cidr"}],
        acls={"rules": [{"match": "corp", "action": "tag", "tag": "c"}]},
        pools=[
            {
                "name": "P",
                "health": {"enabled": True, "interval_ms": 5000},
                "backends": [{"address": "127.0.0.8:5300", "name": "a"}],
            }
        ],
    )
    live = Live(tmp_path, f"http://127.0.0.1:{started.port}")
    body = json.loads(live("acl", "check", "10.1.2.3").stdout)
    assert list(body["results"][0])[1:] == ["decision", "tag", "matched", "action"]
    assert list(body["results"][0].values())[1:] == ["tag", "c", "corp", "tag"]
    offline = live("acl", "check", "10.1.2.3", "--file", str(started.conduit.path))
    assert json.loads(offline.stdout) == {**body, "source": "file"}
    result = live("health", "set", "DOWN", "--pool", "P", "--backend", "a")
    assert result.stdout == "P 127.0.0.8:5300 applied=down scope=frozen\n"
    assert "applied=down scope=frozen eligible=false" in live("health", "show").stdout


def test_keys_and_tls(control: Control, tmp_path: Path, authority: Authority) -> None:
    cert, key = authority.issue("server")
    tls = {"cert_path": str(cert), "key_path": str(key)}
    started = control({"api_keys": ["k"], "tls": tls})
    live = Live(tmp_path, f"https://localhost:{started.port}")
    failed(live("reload"), "the server's certificate is not trusted")
    trusted = ("--tls-ca", str(authority.path))
    failed(live("reload", *trusted), "missing or invalid API key")
    assert live("reload", *trusted, "--api-key", "k").stdout == "ok generation=2\n"


@pytest.mark.parametrize("named", [True, False])
def test_top(control: Control, tmp_path: Path, named: bool) -> None:
    port = free_port()
    started = control(metrics=with_metrics(port))
    live = Live(tmp_path, f"http://127.0.0.1:{started.port}")
    page = ["--metrics", f"http://127.0.0.1:{port}/metrics"] if named else []
    result = live("top", "--once", "--interval", "0.2", *page, "--output", "json")
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    assert (data["generation"], data["queries"]) == (1, 0.0)
    assert [b["pool"] for b in data["backends"]] == [started.config["pools"][0]["name"]]
