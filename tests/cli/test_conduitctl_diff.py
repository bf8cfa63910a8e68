"""`conduitctl diff`: changes with key paths, restart marks, nothing secret."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from conduit.config import load_file
from conduit.control.export import export_yaml
from conduit.v1 import control_pb2 as control
from tests.cli.test_conduitctl_server import Ctl, ctl, failed, server

__all__ = ["ctl", "server"]

ROOT = Path(__file__).parents[2]


def base() -> dict[str, Any]:
    return {
        "schema_version": 1,
        "listeners": {"listeners": [{"address": "127.0.0.1:53", "protocol": "udp"}]},
        "pools": [
            {
                "name": "p",
                "backends": [
                    {"address": "10.0.0.1:53", "name": "a"},
                    {"address": "10.0.0.2:53", "weight": 100},
                ],
            }
        ],
        "control": {"api_keys": ["old-secret"]},
        "rules": {"rules": [rule("one"), rule("two")]},
    }


def rule(name: str) -> dict[str, Any]:
    return {"name": name, "hook": "request", "selectors": [], "actions": [{"type": "drop"}]}


def offline(ctl: Ctl, before: dict[str, Any], after: dict[str, Any], *options: str) -> Any:
    old, new = ctl.folder / "old.yaml", ctl.folder / "new.yaml"
    old.write_text(yaml.safe_dump(before))
    new.write_text(yaml.safe_dump(after))
    return ctl("diff", "--file", str(new), "--against", str(old), *options)


def test_lines_of_all_kinds(ctl: Ctl) -> None:
    new = base()
    new["pools"][0]["backends"][0]["weight"] = 50
    new["pools"][0]["backends"][1] = {"address": "10.0.0.3:53"}
    new["pools"][0]["max_inflight"] = 9
    new["forward"] = {"timeout_ms": 900}
    new["orchestrator"] = {"max_attempts": 5}
    new["rules"]["rules"].reverse()
    new["caches"] = [{"name": "c", "type": "memory", "memory": {"shard_count": 4}}]
    result = offline(ctl, base(), new)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert "~ pools[p].backends[a].weight: 100 -> 50" in lines
    assert '- pools[p].backends[10.0.0.2:53]: (was {"address": "10.0.0.2:53", "weight": 100})' in (
        lines
    )
    assert '+ pools[p].backends[10.0.0.3:53]: {"address": "10.0.0.3:53", "weight": 100}' in lines
    assert "+ pools[p].max_inflight: 9  (restart)" in lines
    assert "~ forward.timeout_ms: 2000 -> 900  (restart)" in lines
    assert "~ orchestrator.max_attempts: 3 -> 5" in lines
    assert "~ rules.rules: order: one, two -> two, one" in lines
    assert any(line.startswith("+ caches[c]: {") for line in lines)
    assert lines[-1] == "8 changes, 2 need a restart"


def test_defaults_that_are_spelt_out_are_no_difference(ctl: Ctl) -> None:
    new = base()
    new["pools"][0]["backends"][0]["weight"] = 100
    new["shutdown"] = {"drain": True}
    new["dataplane"] = {}
    new["forward"] = {"timeout_ms": 2000}
    result = offline(ctl, base(), new, "--exit-code")
    assert (result.exit_code, result.stdout) == (0, "no differences\n")


def test_secrets_are_compared_and_not_shown(ctl: Ctl) -> None:
    old, new = base(), base()
    new["control"]["api_keys"] = ["new-secret"]
    old["metrics"] = {"otel": {"endpoint": "http://h", "headers": {"k": "old-secret"}}}
    new["metrics"] = {"otel": {"endpoint": "http://h", "headers": {"k": "new-secret"}}}
    for options in ([], ["--output", "json"]):
        result = offline(ctl, old, new, *options)
        assert "secret" not in result.stdout
        assert "control.api_keys" in result.stdout
        assert "metrics.otel.headers" in result.stdout
    # as a whole block too
    del old["control"], old["metrics"]
    assert "secret" not in offline(ctl, old, new).stdout


def test_as_data_and_as_exit_code(ctl: Ctl) -> None:
    new = base()
    new["logging"] = {"level": "debug"}
    result = offline(ctl, base(), new, "--output", "json", "--exit-code")
    assert result.exit_code == 3
    assert json.loads(result.stdout) == {
        "changes": [
            {
                "change": "changed",
                "path": "logging.level",
                "before": "info",
                "after": "debug",
                "restart": True,
            }
        ],
        "restarts": 1,
    }


def test_against_the_running_service(ctl: Ctl) -> None:
    path = ctl.folder / "c.yaml"
    path.write_text(yaml.safe_dump(base()))
    body = export_yaml(load_file(str(path)).config)
    ctl.server.answers["ExportConfig"] = control.ExportConfigResponse(body=body)
    assert ctl("diff", "--file", str(path)).stdout == "no differences\n"
    ctl.server.answers["ExportConfig"] = control.ExportConfigResponse(
        body=body.replace("name: one", "name: uno")
    )
    lines = ctl("diff", "--file", str(path)).stdout.splitlines()
    assert [line[: line.index(":")] for line in lines[:2]] == [
        "- rules.rules[uno]",
        "+ rules.rules[one]",
    ]
    ctl.server.answers["ExportConfig"] = control.ExportConfigResponse(body="[")
    failed(ctl("diff", "--file", str(path)), "the service's export cannot be read")


@pytest.mark.parametrize(
    "path", sorted((ROOT / "conf").rglob("*.yaml")), ids=lambda path: str(path.name)
)
def test_examples_equal_their_export(ctl: Ctl, path: Path) -> None:
    exported = ctl.folder / "export.yaml"
    exported.write_text(export_yaml(load_file(str(path)).config))
    result = ctl("diff", "--file", str(exported), "--against", str(path))
    assert (result.exit_code, result.stdout) == (0, "no differences\n")


def test_files_that_cannot_be_read(ctl: Ctl) -> None:
    path = ctl.folder / "c.yaml"
    path.write_text("pools: []")
    failed(ctl("diff", "--file", str(path), "--against", str(path)), "schema_version")
    failed(ctl("diff", "--file", str(path) + ".no", "--against", str(path)), "reading config")
