"""Compiles expressions: literals, operators with their operands, templates.

Operands are evaluated left to right: when a later one needs statements of its own,
the earlier ones are put aside first.
"""

from __future__ import annotations

import ast
from abc import abstractmethod

from conduit.rhai.compiler_emit import (
    SCALARS,
    Val,
    assign,
    call,
    choose,
    constant,
    is_none,
    name,
)
from conduit.rhai.compiler_operators import OperatorCompiler
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


class ExpressionCompiler(OperatorCompiler):
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
        if not body and left.form in _SIMPLE and not isinstance(left.node, ast.Constant):
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
