"""The acceptance examples of the language chapter, by number (chapter 36 section 26)."""

from __future__ import annotations

from typing import Any

import pytest

from conduit.rhai import EvalError, Limits, ParseError
from tests.rhai.running import engine_for, run, same, value_of

MAXIMUM = "9223372036854775807"

VALUES: list[tuple[str, str, Any]] = [
    ("1", "let l = [1]; let k = l; k.push(2); l", [1]),
    ("2a", "fn f(a) { a.push(9); } let l = [1]; f(l); l", [1]),
    ("2b", "let l = [1]; push(l, 9); l", [1, 9]),
    ("3", "fn add() { this += 1; } let n = 4; n.add(); n", 5),
    ("4", "let c = 0; let f = || { c += 1; }; f.call(); f.call(); c", 2),
    ("5", "let x = 1; let f = || x; let x = 2; f.call()", 1),
    ("6", "let fs = []; for i in 0..3 { fs.push(|| i); } fs[0].call()", 2),
    ("7", "let f = || nowhere; 1", "ErrorVariableNotFound"),
    ("8", "let v = [1]; v.map(|e| v.len())", "ErrorDataRace"),
    ("9a", "-2 ** 2", 4),
    ("9b", "- 0xFF", -255),
    ("9c", "-0xFF", "lex:MalformedNumber"),
    ("10a", "1 + 1 << 3", 9),
    ("10b", "1 | 2 == 2", "ErrorFunctionNotFound"),
    ("13a", "7 / 2", 3),
    ("13b", "-7 / 2", -3),
    ("13c", "-7 % 3", -1),
    ("13d", "1 << 64", 0),
    ("13e", "-1 >> 70", -1),
    ("14a", "0.1 + 0.2 == 0.3", True),
    ("14b", "let z = 0.0 / 0.0; z != z", False),
    ("15", '`${1e20} ${2.0} ${[1, "a"]}`', '1e20 2.0 [1, "a"]'),
    ("16a", "let m = #{}; m.a.b", "ErrorDotExpr"),
    ("16b", "let m = #{}; m?.a?.b", None),
    ("17a", 'let q = 5; switch q { 1 | 5 => "a", 3..9 => "b", _ => "c" }', "a"),
    ("17b", 'let q = 5; switch q { 5 if q > 9 => "x", 3..9 => "b", _ => "c" }', "b"),
    ("18", "let r = for x in [4, 8] { if x > 5 { break x; } }; r", 8),
    ("19a", "{ let t = 3; t * 2; }", 6),
    ("19b", "let r = {}; r", None),
    ("20a", "if true { 5 } + 1", 1),
    ("20b", "(if true { 5 } else { 6 }) + 1", 6),
    ("21a", "ghost; 1", 1),
    ("21b", "1; ghost", "ErrorVariableNotFound"),
    ("23", "let k = (); try { [1][9]; } catch (e) { k = e.error; } k", "ErrorArrayBounds"),
    ("24a", "const A = 1; fn f() { A } f()", "ErrorVariableNotFound"),
    ("24b", "const A = 1; fn f() { global::A } f()", 1),
    ("25a", "let s = \"abc\"; s[1] = 'X'; s", "aXc"),
    ("25b", 'let s = "abc"; s[5]', "ErrorStringBounds"),
    ("26", '"žluť".len + "žluť".bytes', 10),
    ("27a", "let l = [3, 1, 2]; l.sort(|a, b| b - a); l", [3, 2, 1]),
    (
        "27b",
        "let n = 1; const L = [3, n]; L.sort(|a, b| b - a)",
        "ErrorNonPureMethodCallOnConstant",
    ),
    ("28", "#{b: 1, a: 2}.keys()", ["a", "b"]),
    ("29a", "let n = 5; n[1] = true; n", 7),
    ("29b", "let n = 5; n[64]", "ErrorBitFieldBounds"),
    ("33a", "exit(3); 4", 3),
    ("33b", "[1].for_each(|| exit(3)); 4", 3),
    ("34a", 'eval("let z = 3;"); z', 3),
    ("34b", 'eval("fn f() {}")', "parse:WrongFnDefinition"),
    ("35a", "let a = 1; (a = 2)", "parse:MissingToken"),
    ("35b", "let b = a = 2;", "parse:MissingToken"),
    ("36a", "fn abs(n) { 9 } abs(-1)", 9),
    ("36b", "fn abs(n) { 9 } let x = -1; x.abs()", 1),
    ("37", '"a".print()', "parse:Reserved"),
    ("38a", "for i in 0.. { break; }", "parse:LoopBreak"),
    ("38b", "for i in (0..) { break i; }", 0),
    ("39a", r'parse_json("{\"a\": null, \"b\": [1.5]}")', {"a": None, "b": [1.5]}),
    ("39b", 'parse_json("[1]")', "ErrorMismatchOutputType"),
    ("40a", "let x = 5; x.call(|k| this + k, 2)", 7),
    ("40b", "let x = 5; x.call()", "ErrorMismatchDataType"),
]


@pytest.mark.parametrize(
    ("script", "expected"), [v[1:] for v in VALUES], ids=[v[0] for v in VALUES]
)
def test_value(script: str, expected: Any) -> None:
    assert same(value_of(script), expected)


MESSAGES = [
    ("11", f"{MAXIMUM} + 1", f"Addition overflow: {MAXIMUM} + 1"),
    (
        "12",
        f"let n = {MAXIMUM}; n += 1",
        f"Addition overflow: {MAXIMUM} + 1 (line 1, position 32)",
    ),
    ("10", "1 | 2 == 2", "Function not found: | (i64, bool) (line 1, position 3)"),
    (
        "16",
        "let m = #{}; m.a.b",
        "Unknown property 'b' - a getter is not registered for type '()' (line 1, position 18)",
    ),
    (
        "25",
        'let s = "abc"; s[5]',
        "String index 5 out of bounds: only 3 characters in string (line 1, position 18)",
    ),
    (
        "37",
        '"a".print()',
        "Syntax error: 'print' is a reserved keyword (line 1, position 5)",
    ),
    (
        "40",
        "let x = 5; x.call()",
        "Data type incorrect: i64 (expecting Fn) (line 1, position 14)",
    ),
]


@pytest.mark.parametrize(
    ("script", "expected"), [m[1:] for m in MESSAGES], ids=[m[0] for m in MESSAGES]
)
def test_message(script: str, expected: str) -> None:
    assert run(script).message == expected


def test_22_a_caught_string_is_printed() -> None:
    outcome = run('fn g() { throw "x" } try { g(); } catch (e) { print(e); }')
    assert outcome.output == ["x"]


@pytest.mark.parametrize(
    "script",
    ["let n = 0; loop { n += 1; }", "let n = 0; try { loop { n += 1; } } catch { 1 }"],
)
def test_30_operations(script: str) -> None:
    assert value_of(script, Limits(max_operations=1000)) == "ErrorTooManyOperations"


@pytest.mark.parametrize(("depth", "expected"), [(9, "end"), (10, "ErrorStackOverflow")])
def test_31_call_levels(depth: int, expected: str) -> None:
    script = f'fn deep(n) {{ if n == 0 {{ "end" }} else {{ deep(n - 1) }} }} deep({depth})'
    assert value_of(script, Limits(max_call_levels=10)) == expected


@pytest.mark.parametrize(("terms", "accepted"), [(29, True), (30, False)])
def test_32_terms_in_a_function(terms: int, accepted: bool) -> None:
    script = f"fn f() {{ {'+'.join(['1'] * terms)} }} f()"
    if accepted:
        assert value_of(script) == terms
    else:
        assert value_of(script) == "parse:ExprTooDeep"


def _nested(opening: str, closing: str, inside: str, count: int) -> str:
    return opening * count + inside + closing * count


#: Script maker, the largest count that is accepted (chapter 36 section 19.2).
DEPTHS = {
    "terms": (lambda n: "+".join(["1"] * n), 63),
    "terms after let": (lambda n: f"let x = {'+'.join(['1'] * n)};", 62),
    "terms after let in a function": (
        lambda n: f"fn f() {{ let x = {'+'.join(['1'] * n)}; }} 1",
        28,
    ),
    "logic": (lambda n: f"let x = true; {' && '.join(['x'] * n)}", 63),
    "properties": (lambda n: "let a = #{}; a" + "?.b" * n, 62),
    "properties in a function": (lambda n: "fn f(a) { a" + "?.b" * n + " } 1", 28),
    "indices": (lambda n: "let a = (); a" + "?[0]" * n, 60),
    "parentheses": (lambda n: _nested("(", ")", "1", n), 31),
    "blocks": (lambda n: _nested("{", "}", "1", n), 31),
    "calls": (lambda n: _nested("abs(", ")", "1", n), 31),
    "arrays": (lambda n: _nested("[", "]", "1", n), 20),
    "maps": (lambda n: _nested("#{a: ", "}", "1", n), 20),
    "ifs": (lambda n: _nested("if true {", "}", "1", n), 20),
    "ifs in a function": (lambda n: f"fn f() {{ {_nested('if true {', '}', '1', n)} }} 1", 9),
    "fors": (lambda n: _nested("for i in 0..1 {", "}", "1", n), 20),
    "tries": (lambda n: _nested("try {", "} catch {}", "print(1)", n), 20),
    "whiles": (lambda n: _nested("while true {", "break; }", "1;", n), 20),
    "else ifs": (lambda n: "if false {1} " + "else if false {1} " * n, 59),
    "else ifs in a function": (
        lambda n: "fn f() { if false {1} " + "else if false {1} " * n + "} 1",
        25,
    ),
    "templates": (lambda n: _nested("`a${", "}`", "1", n), 15),
}


@pytest.mark.parametrize("name", DEPTHS)
def test_depths(name: str) -> None:
    make, largest = DEPTHS[name]
    engine = engine_for()
    engine.run(engine.compile(make(largest)))
    with pytest.raises(ParseError) as caught:
        engine.compile(make(largest + 1))
    assert caught.value.kind == "parse:ExprTooDeep"


def test_positions_of_nested_calls() -> None:
    engine = engine_for()
    with pytest.raises(EvalError) as caught:
        engine.eval("fn f() {\n  let l = [];\n  l[1]\n}\nfn g() { f() }\ng()")
    assert str(caught.value) == (
        "Array index 1 out of bounds: array is empty (line 3, position 5)\n"
        "in call to function 'f' (line 5, position 10)\n"
        "in call to function 'g' (line 6, position 1)"
    )
