"""Compiles operators on values that are already there (chapter 36 section 6).

The usual case of two integers is done in line; everything else by a function of `operators` or
`comparison`.
"""

from __future__ import annotations

import ast

from conduit.rhai.compiler_emit import (
    SCALARS,
    Val,
    both,
    call,
    choose,
    compare,
    constant,
    in_i64,
    is_type,
    name,
    walrus,
)
from conduit.rhai.compiler_variables import VariableCompiler

_SIMPLE = frozenset({"const", "temp", "local"})
_PYTHON_BINARY: dict[str, type[ast.operator]] = {
    "+": ast.Add,
    "-": ast.Sub,
    "*": ast.Mult,
    "&": ast.BitAnd,
    "|": ast.BitOr,
    "^": ast.BitXor,
}
_PYTHON_COMPARE: dict[str, type[ast.cmpop]] = {
    "==": ast.Eq,
    "!=": ast.NotEq,
    "<": ast.Lt,
    "<=": ast.LtE,
    ">": ast.Gt,
    ">=": ast.GtE,
}
#: The functions behind the operators, by their names in the globals of compiled code.
FUNCTIONS = {
    "+": "op_add",
    "-": "op_subtract",
    "*": "op_multiply",
    "/": "op_divide",
    "%": "op_remainder",
    "**": "op_power",
    "<<": "op_shift_left",
    ">>": "op_shift_right",
    "&": "op_and",
    "|": "op_or",
    "^": "op_xor",
    "..": "op_range",
    "..=": "op_range_inclusive",
    "==": "op_equal",
    "!=": "op_unequal",
    "<": "op_less",
    "<=": "op_less_equal",
    ">": "op_greater",
    ">=": "op_greater_equal",
}


class OperatorCompiler(VariableCompiler):
    """Operators."""

    def keep(self, value: Val) -> Val:
        """`value` as one that may be kept: a container in it counts as shared from now on."""
        if value.fresh or value.type in SCALARS:
            return value
        return Val(call("share", value.node), value.type, "expr", True)

    def simple(self, value: Val) -> Val:
        """`value` as something that may be mentioned more than once."""
        if value.form in _SIMPLE:
            return value
        return Val(self.held(value.node), value.type, "temp", value.fresh)

    def operation(self, operator: str, left: Val, right: Val, line: int) -> Val:
        """`left operator right`."""
        if operator in _PYTHON_COMPARE:
            return self._comparison(operator, left, right, line)
        result_type = arithmetic_type(operator, left.type, right.type)
        if operator not in _PYTHON_BINARY or not (
            left.type in ("int", None) and right.type in ("int", None)
        ):
            node = call(FUNCTIONS[operator], name("st"), left.node, right.node, line=line)
            return Val(node, result_type, "expr", True)
        if left.type == "int" and right.type == "int":
            return self._integers(operator, left, right, line)
        tests, a, b = self._integer_tests(left, right)
        value: ast.expr = ast.BinOp(a, _PYTHON_BINARY[operator](), b)
        general = call(FUNCTIONS[operator], name("st"), a, b, line=line)
        if operator in ("+", "-", "*"):
            temp = self.temp()
            tests.append(in_i64(walrus(temp, value)))
            value = name(temp)
        return Val(choose(both(*tests), value, general), result_type, "expr", True)

    def _integers(self, operator: str, left: Val, right: Val, line: int) -> Val:
        """`left operator right` of two values known to be integers."""
        python = _PYTHON_BINARY[operator]()
        if operator in ("&", "|", "^"):
            return Val(ast.BinOp(left.node, python, right.node), "int", "expr", True)
        sides: list[ast.expr] = []
        names: list[ast.expr] = []
        for value in (left, right):
            if value.form in _SIMPLE:
                sides.append(value.node)
                names.append(value.node)
            else:
                temp = self.temp()
                sides.append(walrus(temp, value.node))
                names.append(name(temp))
        result = self.temp()
        test = in_i64(walrus(result, ast.BinOp(sides[0], python, sides[1])))
        general = call(FUNCTIONS[operator], name("st"), *names, line=line)
        return Val(choose(test, name(result), general), "int", "expr", True)

    def _integer_tests(self, left: Val, right: Val) -> tuple[list[ast.expr], ast.expr, ast.expr]:
        """Tests that both are integers, and the two in a form to be repeated."""
        a, b = left.node, right.node
        first: ast.expr | None = None
        second: ast.expr | None = None
        if left.form not in _SIMPLE:
            temp = self.temp()
            first = is_type(walrus(temp, a), "int")
            a = name(temp)
        elif left.type is None:
            first = is_type(a, "int")
        if right.form not in _SIMPLE:
            temp = self.temp()
            second = is_type(walrus(temp, b), "int")
            b = name(temp)
            if left.form not in _SIMPLE:
                assert first is not None
                # both sides must be evaluated whatever the first test says
                return [ast.BinOp(first, ast.BitAnd(), second)], a, b
            if first is not None:
                return [ast.BinOp(second, ast.BitAnd(), first)], a, b
            return [second], a, b
        if right.type is None:
            second = is_type(b, "int")
        return [test for test in (first, second) if test is not None], a, b

    def _comparison(self, operator: str, left: Val, right: Val, line: int) -> Val:
        python = _PYTHON_COMPARE[operator]()
        kinds = {left.type, right.type}
        general_type = "bool" if left.type in SCALARS and right.type in SCALARS else None
        if kinds == {"int"}:
            return Val(compare(left.node, python, right.node), "bool", "expr", True)
        if kinds <= {"int", None}:
            tests, a, b = self._integer_tests(left, right)
            general = call(FUNCTIONS[operator], name("st"), a, b, line=line)
            value = compare(a, python, b)
            return Val(choose(both(*tests), value, general), None, "expr", True)
        if operator in ("==", "!=") and kinds == {"str", None}:
            known, other = (left, right) if left.type == "str" else (right, left)
            if known.form == "const":
                node, test = other.node, is_type(other.node, "str")
                if other.form not in _SIMPLE:
                    temp = self.temp()
                    test = is_type(walrus(temp, node), "str")
                    node = name(temp)
                sides = (known.node, node) if known is left else (node, known.node)
                general = call(FUNCTIONS[operator], name("st"), *sides, line=line)
                value = compare(node, python, known.node)
                return Val(choose(test, value, general), None, "expr", True)
        node = call(FUNCTIONS[operator], name("st"), left.node, right.node, line=line)
        return Val(node, general_type, "expr", True)

    def truth(self, value: Val, line: int) -> ast.expr:
        """`value` as a Python condition. The language accepts nothing but a bool."""
        if value.type == "bool":
            return value.node
        node = value.node
        # Python warns of an identity test on a literal, hence a variable for those too
        if value.form not in _SIMPLE or isinstance(node, ast.Constant):
            temp = self.temp()
            first = compare(walrus(temp, node), ast.Is(), constant(True))
            node = name(temp)
        else:
            first = compare(node, ast.Is(), constant(True))
        refused = both(
            compare(node, ast.IsNot(), constant(False)),
            call("not_bool", name("st"), node, line=line),
        )
        return ast.BoolOp(ast.Or(), [first, refused])


def arithmetic_type(operator: str, left: str | None, right: str | None) -> str | None:
    """What is known of the type of a result."""
    if left == "int" and right == "int":
        return "range" if operator in ("..", "..=") else "int"
    numbers = {"int", "float"}
    if left in numbers and right in numbers and operator in ("+", "-", "*", "/", "%", "**"):
        return "float"
    if operator == "+" and ("str" in (left, right)) and left in SCALARS and right in SCALARS:
        return "str"
    if operator in ("..", "..="):
        return "range"
    return None
