"""The `conduit-check` command: output, exit status, the executable in the checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from conduit.cli.check import main

ROOT = Path(__file__).resolve().parent.parent.parent
GOOD = """\
schema_version: 1
listeners: {listeners: [{address: "127.0.0.1:0", protocol: udp}]}
pools: [{name: default, backends: [{address: "127.0.0.1:5300"}]}]
"""


@pytest.fixture
def good(tmp_path: Path) -> str:
    path = tmp_path / "good.yaml"
    path.write_text(GOOD)
    return str(path)


@pytest.fixture
def bad(tmp_path: Path) -> str:
    path = tmp_path / "bad.yaml"
    path.write_text(GOOD + "forward: {timeoutms: 5}\norchestrator: {max_attempts: 0}\n")
    return str(path)


def test_valid_file(good: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([good]) == 0
    assert capsys.readouterr().out == "1 file checked, 1 valid: 0 errors, 0 warnings\n"


def test_errors_and_warnings(good: str, bad: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([bad, good]) == 1
    assert capsys.readouterr().out == (
        f"{bad}:5:30: orchestrator.max_attempts: orchestrator.max_attempts must be >= 1\n"
        f"{bad}:4:11: warning: forward.timeoutms: unknown key 'timeoutms' is ignored; "
        "did you mean 'timeout_ms'? [unknown-key]\n"
        "2 files checked, 1 valid: 1 error, 1 warning\n"
    )


def test_unreadable_file(good: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    absent = str(tmp_path / "absent.yaml")
    assert main([absent, good]) == 2
    out = capsys.readouterr().out
    assert out.startswith(f'{absent}: reading config "{absent}": No such file or directory\n')
    assert main([str(tmp_path)]) == 2


def test_json(bad: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([bad, "--format", "json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert (report["errors"], report["warnings"]) == (1, 1)
    assert report["files"] == [{"path": bad, "readable": True, "errors": 1, "warnings": 1}]
    assert report["findings"][0] == {
        "file": bad,
        "line": 5,
        "column": 30,
        "key": "orchestrator.max_attempts",
        "message": "orchestrator.max_attempts must be >= 1",
        "severity": "error",
        "stage": "validation",
        "code": None,
    }


def test_options_may_stand_between_files(
    good: str, bad: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([good, "--format", "json", bad]) == 1
    assert len(json.loads(capsys.readouterr().out)["files"]) == 2


@pytest.mark.parametrize(
    ("hook", "selector", "fragment"),
    [
        ("request", "{type: qname_suffix, value: corp.test.}", "write '.corp.test.'"),
        ("request", "{type: qname_exact, value: a.test}", "names end with a dot"),
        ("request", "{type: qname_suffix, value: .test}", "names end with a dot"),
        ("request", "{type: rcode, value: SERVFAIL}", "never matches on hook 'request'"),
        ("response", "{type: cache_instance, value: x}", "names no cache instance"),
    ],
)
def test_advice(
    hook: str, selector: str, fragment: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "advice.yaml"
    rule = f"{{name: r, hook: {hook}, selectors: [{selector}], actions: []}}"
    path.write_text(GOOD + f"rules: {{rules: [{rule}]}}\n")
    assert main([str(path)]) == 0
    line = capsys.readouterr().out.splitlines()[0]
    assert fragment in line
    assert line.startswith(f"{path}:4:")
    assert ": warning: rules.rules[0].selectors[0]." in line


def test_advice_on_unreachable_rules(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "advice.yaml"
    rules = [
        f"{{name: {name}, hook: {hook}, selectors: [], actions: []}}"
        for name, hook in (("a", "request"), ("b", "response"), ("c", "request"))
    ]
    path.write_text(GOOD + f"rules: {{rules: [{', '.join(rules)}]}}\n")
    assert main([str(path)]) == 0
    out = capsys.readouterr().out
    assert "rules.rules[2]: rule 'c' is never reached: rule 'a' before it" in out
    assert out.count("never reached") == 1


def test_sound_rules_get_no_advice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "sound.yaml"
    rules = ", ".join(
        f"{{name: r{n}, hook: request, selectors: [{selector}], actions: [{{type: drop}}]}}"
        for n, selector in enumerate(
            ("{type: qname_suffix, value: .a.test.}", "{type: qname_exact, value: A.Test.}")
        )
    )
    path.write_text(GOOD + f"rules: {{rules: [{rules}]}}\n")
    assert main([str(path)]) == 0
    assert capsys.readouterr().out == "1 file checked, 1 valid: 0 errors, 0 warnings\n"


def test_advice_has_code_and_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "advice.yaml"
    path.write_text(
        GOOD.replace("\n", "\r\n") + "rules:\n  rules:\n    - name: all\n      hook: request\n"
        "      selectors: []\n      actions: []\n    - name: late\n      hook: request\n"
        "      selectors: []\n      actions: []\n"
    )
    assert main([str(path), "--format", "json"]) == 0
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert (finding["line"], finding["column"]) == (10, 7)
    assert (finding["code"], finding["severity"]) == ("rule-unreachable", "warning")
    assert finding["key"] == "rules.rules[1]"
    assert main([str(path)]) == 0
    assert capsys.readouterr().out.splitlines()[0].endswith(" [rule-unreachable]")


def test_a_table_that_cannot_be_loaded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "table.yaml"
    path.write_text(
        GOOD + "data_sources:\n  - {name: lan, type: cidr, path: lan.txt}\n"
        "acls: {rules: [{match: lan, action: accept}]}\n"
    )
    assert main([str(path)]) == 1
    out = capsys.readouterr().out
    assert out.startswith(f"{path}:5:5: data_sources[0]: data source 'lan': ")
    assert "No such file" in out
    (tmp_path / "lan.txt").write_text("192.0.2.0/24\n192.0.2.0/33\n")
    assert main([str(path), "--format", "json"]) == 1
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert (finding["stage"], finding["code"]) == ("compile", "compile")
    assert "line 2: invalid CIDR prefix" in finding["message"]
    (tmp_path / "lan.txt").write_text("192.0.2.0/24\n")
    assert main([str(path)]) == 0


def test_usage_errors(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([], ["--format", "xml", "f"]):
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 2
    with pytest.raises(SystemExit) as caught:
        main(["--help"])
    assert caught.value.code == 0
    assert "Exit status" in capsys.readouterr().out


@pytest.mark.parametrize(
    "command",
    [[str(ROOT / "tools" / "conduit-check")], [sys.executable, "-m", "conduit.cli.check"]],
)
def test_as_a_process(command: list[str], bad: str, tmp_path: Path) -> None:
    done = subprocess.run([*command, bad], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert done.returncode == 1
    assert done.stderr == ""
    assert done.stdout.endswith("1 file checked, 0 valid: 1 error, 1 warning\n")


def test_output_that_the_terminal_cannot_show(tmp_path: Path) -> None:
    path = tmp_path / "ü.yaml"
    path.write_text(GOOD + "logging: {level: grün}\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "conduit.cli.check", str(path)],
        capture_output=True,
        env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C.UTF-8"},
        cwd=ROOT,
        timeout=60,
    )
    assert done.returncode == 1
    assert done.stderr == b""
    assert rb"gr\xfcn" in done.stdout


def test_reader_that_stops_early(bad: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "conduit.cli.check", bad],
            stdout=writer,
            stderr=subprocess.PIPE,
            cwd=ROOT,
            timeout=60,
        )
    finally:
        os.close(writer)
    assert done.stderr == b""
    assert done.returncode == 1
