"""The parser against a printer and against a model of how operators bind (chapter 36 section 4)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conduit.rhai import Limits, ParseError
from conduit.rhai.nodes import Binary, Expression, ExpressionStatement, Tree, Variable
from conduit.rhai.parser import parse
from tests.rhai.printer import printed

#: Parentheses cost depth: the printed script needs more than the original.
DEEP = Limits(max_expr_depth=2000, max_function_expr_depth=2000)
SCRIPTS = [
    json.loads(line)["script"]
    for line in (Path(__file__).parent / "vectors.jsonl").read_text("utf-8").splitlines()
]


def tree_of(text: str) -> Tree:
    return parse(text, DEEP)


def test_a_printed_tree_is_the_same_tree() -> None:
    compared = 0
    for script in SCRIPTS:
        try:
            tree = tree_of(script)
        except ParseError:
            continue
        assert tree_of(printed(tree)) == tree, script
        compared += 1
    assert compared > 500


def test_the_comparison_sees_differences() -> None:
    assert tree_of("1 + 2 * 3") != tree_of("(1 + 2) * 3")
    assert tree_of("1") != tree_of("1.0")
    assert tree_of("'a'") != tree_of('"a"')


#: Operators by how tightly they bind, loosest first; all but `**` bind to the left.
LEVELS = [
    ["|", "^"],
    ["&"],
    ["==", "!="],
    ["in", "!in"],
    ["<", "<=", ">", ">="],
    ["??"],
    ["..", "..="],
    ["+", "-"],
    ["*", "/", "%"],
    ["**"],
    ["<<", ">>"],
]


def bound(names: list[str], operators: list[str]) -> str:
    """The expression with parentheses, split at the operator that binds least."""
    if not operators:
        return names[0]
    for level in LEVELS:
        at = [i for i, operator in enumerate(operators) if operator in level]
        if at:
            i = at[0] if level == ["**"] else at[-1]
            left = bound(names[: i + 1], operators[:i])
            right = bound(names[i + 1 :], operators[i + 1 :])
            return f"({left} {operators[i]} {right})"
    raise AssertionError(operators)


def shown(node: Expression) -> str:
    if isinstance(node, Binary):
        return f"({shown(node.left)} {node.operator} {shown(node.right)})"
    assert isinstance(node, Variable)
    return node.name


@settings(max_examples=500, deadline=None)
@given(st.lists(st.sampled_from([o for level in LEVELS for o in level]), max_size=8))
def test_operators_bind_as_the_table_says(operators: list[str]) -> None:
    names = [f"v{i}" for i in range(len(operators) + 1)]
    text = names[0] + "".join(f" {o} {n}" for o, n in zip(operators, names[1:], strict=True))
    (statement,) = tree_of(text).statements
    assert isinstance(statement, ExpressionStatement)
    assert shown(statement.expression) == bound(names, operators)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("-x ** 2", "(-x) ** 2"),
        ("-x.abs()", "-(x.abs())"),
        ("!a && b", "(!a) && b"),
        ("a || b && c", "a || (b && c)"),
        ("a.b[c].d(e)?.f?[g]", "(a.b[c].d(e)?.f?[g])"),
        ("a ?? b.c", "a ?? (b.c)"),
        ("|x| x + 1", "|x| (x + 1)"),
        ("a..b + 1", "a..(b + 1)"),
    ],
)
def test_binding_of_signs_and_chains(text: str, same: str) -> None:
    assert tree_of(text) == tree_of(same)
