"""Compiles operators, literals and templates.

The usual case of two integers is done in line; everything else by a function of `operators` or
`comparison`. Operands are evaluated left to right: when a later one needs statements of its own,
the earlier ones are put aside first.
"""

from __future__ import annotations

import ast
from abc import abstractmethod

from conduit.rhai.compiler_emit import (
    SCALARS,
    Val,
    assign,
    both,
    call,
    choose,
    compare,
    constant,
    in_i64,
    is_none,
    is_type,
    name,
    walrus,
)
from conduit.rhai.compiler_variables import VariableCompiler
from conduit.rhai.nodes import (
    ArrayLiteral,
    Binary,
    Block,
    Call,
    Chain,
    Closure,
    Expression,
    ExpressionStatement,
    Literal,
    MapLiteral,
    Qualified,
    Statement,
    StatementExpression,
    Template,
    This,
    Unary,
    Variable,
    is_constant,
)

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


class ExpressionCompiler(VariableCompiler):
    """Values."""

    @abstractmethod
    def chain(self, node: Chain) -> Val:
        """A chain of steps."""

    @abstractmethod
    def function_call(self, node: Call) -> Val:
        """A call by name."""

    @abstractmethod
    def closure(self, node: Closure) -> Val:
        """A closure expression."""

    @abstractmethod
    def statement_value(self, node: Statement) -> Val:
        """The value of a statement."""

    @abstractmethod
    def contains(self, node: Binary) -> Val:
        """`x in c`."""

    @abstractmethod
    def block_into(self, node: Block, dest: str | None) -> None:
        """Runs a block and keeps its value in the variable `dest`."""

    def expression(self, node: Expression) -> Val:
        """The value of a node, for immediate use; it may be held by a variable too."""
        self.count()
        if isinstance(node, Literal):
            return self.literal(node)
        if isinstance(node, Variable):
            return self.read(node)
        if isinstance(node, Binary):
            return self._binary(node)
        if isinstance(node, Chain):
            return self.chain(node)
        if isinstance(node, Call):
            return self.function_call(node)
        if isinstance(node, Unary):
            return self._unary(node)
        if isinstance(node, Template):
            return self._template(node)
        if isinstance(node, ArrayLiteral):
            return self._array(node)
        if isinstance(node, MapLiteral):
            return self._map(node)
        if isinstance(node, This):
            line = self.unit.line(node.position)
            return Val(call("read_this", name("this"), line=line), None, "cell")
        if isinstance(node, Closure):
            return self.closure(node)
        if isinstance(node, StatementExpression):
            return self.statement_value(node.statement)
        assert isinstance(node, Qualified)
        line = self.unit.line(node.position)
        path = constant(node.path)
        lookup = call("qualified", name("st"), path, constant(node.name), line=line)
        return Val(lookup, None, "cell")

    def owned(self, node: Expression) -> Val:
        """The value of a node, to be kept or passed on."""
        return self.keep(self.expression(node))

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

    def operands(self, nodes: list[Expression], own: bool) -> list[Val]:
        """The values of several nodes in order."""
        values: list[Val] = []
        for node in nodes:
            before = len(self.body)
            value = self.owned(node) if own else self.expression(node)
            if len(self.body) > before:
                self._put_aside(values, before)
            values.append(value)
        for i, value in enumerate(values):
            # what a box holds may be changed in place by the operands that follow
            if value.form == "cell" and any(v.form in ("expr", "cell") for v in values[i + 1 :]):
                values[i] = self.keep(value)
        return values

    def _put_aside(self, values: list[Val], at: int) -> None:
        """Evaluates `values` before the statement at index `at` of the body."""
        saves: list[ast.stmt] = []
        for i, value in enumerate(values):
            if value.form in ("const", "temp"):
                continue
            kept = self.keep(value)
            identifier = self.temp()
            saves.append(assign(identifier, kept.node))
            values[i] = Val(name(identifier), kept.type, "temp", True)
        self.body[at:at] = saves

    # Operators

    def _binary(self, node: Binary) -> Val:
        operator = node.operator
        if operator in ("&&", "||"):
            return self._logic(node)
        if operator == "??":
            return self._coalesce(node)
        if operator in ("in", "!in"):
            return self.contains(node)
        left, right = self.operands([node.left, node.right], own=False)
        return self.operation(operator, left, right, self.unit.line(node.position))

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
        if value.form not in _SIMPLE:
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

    def condition(self, node: Expression) -> ast.expr:
        """A node as a Python condition."""
        value = self.expression(node)
        return self.truth(value, self.unit.line(node.position))

    def _logic(self, node: Binary) -> Val:
        left = self.condition(node.left)
        body: list[ast.stmt] = []
        with self.into(body):
            right = self.condition(node.right)
        is_and = node.operator == "&&"
        if not body:
            operator = ast.And() if is_and else ast.Or()
            return Val(ast.BoolOp(operator, [left, right]), "bool", "expr", True)
        temp = self.temp()
        self.add(assign(temp, left))
        body.append(assign(temp, right))
        test: ast.expr = name(temp)
        self.add(ast.If(test if is_and else ast.UnaryOp(ast.Not(), test), body, []))
        return Val(name(temp), "bool", "temp", True)

    def _coalesce(self, node: Binary) -> Val:
        left = self.expression(node.left)
        body: list[ast.stmt] = []
        with self.into(body):
            right = self.owned(node.right)
        if not body and left.form in _SIMPLE:
            value = choose(is_none(left.node), right.node, self.keep(left).node)
            return Val(value, None, "expr", True)
        temp = self.temp()
        self.add(assign(temp, self.keep(left).node))
        body.append(assign(temp, right.node))
        self.add(ast.If(is_none(name(temp)), body, []))
        return Val(name(temp), None, "temp", True)

    def _unary(self, node: Unary) -> Val:
        line = self.unit.line(node.position)
        value = self.expression(node.operand)
        if node.operator == "!":
            if value.type == "bool":
                return Val(ast.UnaryOp(ast.Not(), value.node), "bool", "expr", True)
            return Val(call("op_not", name("st"), value.node, line=line), None, "expr", True)
        function = "op_negate" if node.operator == "-" else "op_plus"
        kind = value.type if value.type in ("int", "float") else None
        return Val(call(function, name("st"), value.node, line=line), kind, "expr", True)

    # Literals with parts

    def _template(self, node: Template) -> Val:
        line = self.unit.line(node.position)
        literal = self.optimised and all(
            isinstance(part, str) or _literal_block(part) for part in node.parts
        )
        parts: list[ast.expr] = []
        for part in node.parts:
            if isinstance(part, str):
                parts.append(constant(part))
                continue
            single = _single_expression(part)
            before = len(self.body)
            saved = list(parts)
            if single is not None:
                value = self.expression(single)
                node_value = value.node
            else:
                temp = self.temp()
                self.block_into(part, temp)
                node_value = name(temp)
            if len(self.body) > before and saved:
                self._put_texts_aside(parts, before)
            function = "raw_text" if literal else "text_of"
            parts.append(call(function, name("st"), node_value, line=line))
        joined = call("template", name("st"), ast.List(parts, ast.Load()), line=line)
        return Val(joined, "str", "expr", True)

    def _put_texts_aside(self, parts: list[ast.expr], at: int) -> None:
        saves: list[ast.stmt] = []
        for i, part in enumerate(parts):
            if isinstance(part, ast.Call):
                identifier = self.temp()
                saves.append(assign(identifier, part))
                parts[i] = name(identifier)
        self.body[at:at] = saves

    def _array(self, node: ArrayLiteral) -> Val:
        if node.items and is_constant(node):
            return self.literal(node)
        values = self.operands(node.items, own=True)
        items = ast.List([value.node for value in values], ast.Load())
        if all(value.type in SCALARS for value in values):
            return Val(call("Array", items), "array", "expr", True)
        line = self.unit.line(node.position)
        return Val(call("make_array", name("st"), items, line=line), "array", "expr", True)

    def _map(self, node: MapLiteral) -> Val:
        if node.items and is_constant(node):
            return self.literal(node)
        values = self.operands([value for _, value in node.items], own=True)
        keys: list[ast.expr | None] = [constant(key) for key, _ in node.items]
        entries = ast.Dict(keys, [value.node for value in values])
        if all(value.type in SCALARS for value in values):
            return Val(call("Map", entries), "map", "expr", True)
        line = self.unit.line(node.position)
        return Val(call("make_map", name("st"), entries, line=line), "map", "expr", True)


def _single_expression(block: Block) -> Expression | None:
    """The expression of a block that consists of nothing else."""
    if len(block.statements) == 1 and isinstance(block.statements[0], ExpressionStatement):
        return block.statements[0].expression
    return None


def _literal_block(block: Block) -> bool:
    single = _single_expression(block)
    return not block.statements or (single is not None and is_constant(single))


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
