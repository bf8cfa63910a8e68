"""The `conduit-rhai` command."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from conduit.cli.rhai import Source, main, run_source
from conduit.rhai import Engine, Scope


@pytest.mark.parametrize(
    ("text", "out"),
    [
        ("1 + 2", "3\n"),
        ('"a"', "a\n"),
        ('["a", 1.0]', '["a", 1.0]\n'),
        ("let x = 1;", ""),
        ('print("hi"); debug("x"); 5', 'hi\n1:14 | "x"\n5\n'),
        ("exit(4); 5", "4\n"),
    ],
)
def test_one_liners(text: str, out: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-e", text]) == 0
    assert capsys.readouterr() == (out, "")


def test_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.rhai"
    file.write_text("fn f(x) {\n\tlet l = [];\n\tl[x]\n}\nprint(1);\nf(3)\n", "utf-8")
    assert main([str(file)]) == 1
    captured = capsys.readouterr()
    assert captured.out == "1\n"
    assert captured.err == (
        f"{file}:3:4: Array index 3 out of bounds: array is empty\n"
        "    \tl[x]\n"
        "    \t  ^\n"
        f"{file}:6:1: in call to function 'f'\n"
    )


@pytest.mark.parametrize(
    ("text", "err"),
    [
        (
            "let x = ;",
            "-e:1:9: Syntax error: Unexpected ';'\n    let x = ;\n            ^\n",
        ),
        # the language gives built-in operators no position; a person wants one
        ("1 / 0", "-e:1:3: Division by zero: 1 / 0\n    1 / 0\n      ^\n"),
        (
            'eval("1 / 0")',
            "-e:1:6: Division by zero: 1 / 0\nin call to function 'eval'\n"
            '    eval("1 / 0")\n         ^\n',
        ),
        (
            'throw "no\\nway"',
            '-e:1:1: Runtime error: no\nway\n    throw "no\\nway"\n    ^\n',
        ),
    ],
)
def test_errors(text: str, err: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-e", text]) == 1
    assert capsys.readouterr() == ("", err)


def test_check_runs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check", "-e", "print(1); nowhere()"]) == 0
    assert capsys.readouterr() == ("", "")
    assert main(["--check", "-e", "print(1"]) == 1


def test_limits(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-e", "loop {}", "--limits", "operations=100"]) == 1
    assert "Too many operations" in capsys.readouterr().err
    assert main(["-e", "loop {}", "--limits", "operations=0,time=20"]) == 1
    assert "Script terminated: time limit exceeded" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["-e", "1", "file"],
        ["-e", "1", "--limits", "speed=1"],
        ["-e", "1", "--limits", "time=x"],
    ],
)
def test_usage(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2


def test_unreadable_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "missing.rhai")]) == 2
    file = tmp_path / "latin.rhai"
    file.write_bytes(b"\xff")
    assert main([str(file)]) == 2
    assert "not UTF-8" in capsys.readouterr().err


def test_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("6 * 7"))
    assert main(["-"]) == 0
    assert capsys.readouterr().out == "42\n"


def test_a_prepared_scope() -> None:
    out, err = io.StringIO(), io.StringIO()
    source = Source("a.rhai", "print(txn); txn + 1")
    assert run_source(source, Engine(), Scope(txn=4), out=out, err=err) == 0
    assert out.getvalue() == "4\n5\n"


def test_a_closed_pipe_ends_the_run() -> None:
    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    err = io.StringIO()
    source = Source("-e", "loop { try { print(1) } catch {} }")
    assert run_source(source, Engine(), out=Closed(), err=err) == 1
    assert err.getvalue() == ""
