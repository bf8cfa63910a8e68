"""Modules from files (chapter 36 section 13)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conduit.rhai import Engine, EvalError, FileResolver, Limits
from tests.rhai.running import engine_for

FILES = {
    "a": (
        "export const V = 42; export let w = [1]; const G = 7; let hidden = 1; "
        "private fn inner() { 1 } fn outer() { inner() + global::G } fn fails() { throw 5 }"
    ),
    "b": 'import "a" as a; export let u = a::V; fn twice(n) { n * 2 }',
    "bad": "let x = 1;\nx.zork();",
    "syntax": "let = 1;",
    "once": 'print("once");',
    "circle": 'import "circle" as c;',
    "endless": "loop {}",
}


@pytest.fixture
def output() -> list[str]:
    return []


@pytest.fixture
def engine(tmp_path: Path, output: list[str]) -> Engine:
    for name, text in FILES.items():
        (tmp_path / f"{name}.rhai").write_text(text, "utf-8")
    made = engine_for(Limits(max_operations=100_000), output)
    made.resolver = FileResolver(made, tmp_path)
    return made


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ('import "a" as a; a::V', 42),
        ('import "a" as a; a::outer()', 8),
        ('import "a" as a; a::w.push(2); a::w', [1]),
        ('import "b" as b; b::u + b::a::V + b::twice(1)', 86),
        ('fn f() { a::outer() } import "a" as a; f()', 8),
        ('let path = "a"; import path as q; q::V', 42),
        ('import "a" as a; let f = || a::V; f.call()', 42),
        ('import "a" as a; let r = 0; try { a::fails() } catch (e) { r = e; } r', 5),
        ('let r = 0; try { import "bad" as b; } catch (e) { r = e["module"]; } r', "bad"),
    ],
)
def test_values(engine: Engine, script: str, expected: Any) -> None:
    assert engine.eval(script) == expected


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ('import "a" as a; a::inner()', "Function not found: a::inner () (line 1, position 18)"),
        ('import "a" as a; a::hidden', "Variable not found: a::hidden (line 1, position 18)"),
        ('{ import "a" as a; } a::V', "Module not found: a (line 1, position 22)"),
        ('import "none" as n;', "Module not found: none (line 1, position 8)"),
        (
            'import "bad" as b;',
            "Function not found: zork (i64) (line 2, position 3)\n"
            "in module 'bad' (line 1, position 1)",
        ),
    ],
)
def test_errors(engine: Engine, script: str, text: str) -> None:
    with pytest.raises(EvalError) as caught:
        engine.eval(script)
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("circle", "ErrorStackOverflow"),
        ("endless", "ErrorTooManyOperations"),
        ("syntax", "ErrorParsing"),
    ],
)
def test_what_cannot_be_caught_in_a_module(engine: Engine, name: str, kind: str) -> None:
    with pytest.raises(EvalError) as caught:
        engine.eval(f'try {{ import "{name}" as m; }} catch {{}}')
    assert caught.value.kind == kind


def test_a_module_runs_once(engine: Engine, output: list[str]) -> None:
    engine.eval('import "once"; import "once" as o;')
    engine.eval('import "once";')
    assert output == ["once"]
