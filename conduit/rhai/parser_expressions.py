"""Parses what binds operands together: chains, signs and operators (chapter 36 section 4)."""

from __future__ import annotations

from abc import abstractmethod

from conduit.rhai.errors import Position
from conduit.rhai.nodes import (
    ArrayLiteral,
    Binary,
    Chain,
    Expression,
    IndexStep,
    Literal,
    MapLiteral,
    MethodStep,
    PropertyStep,
    StatementExpression,
    Step,
    Template,
    Unary,
)
from conduit.rhai.parser_base import literal_type
from conduit.rhai.parser_primary import PrimaryParser
from conduit.rhai.tokens import METHOD_WORDS, PRECEDENCE, Token, words
from conduit.rhai.values import I64_MAX, I64_MIN, Char

#: After these an open range ends.
_OPEN_END = frozenset(words("] ) } , ; =>"))
_STARTS_STEP = frozenset({".", "?.", "[", "?["})


class ExpressionParser(PrimaryParser):
    """Expressions as a whole."""

    @abstractmethod
    def jump(self, level: int) -> StatementExpression:
        """Parses `break`, `continue`, `return` or `throw` as a value."""

    def expression(self, level: int) -> Expression:
        """A whole expression. Raises ParseError."""
        self.at = self.peek().position
        level = self.deeper(level)
        return self._binary(self._unary(level), 1, level, False)

    def case_value(self, level: int) -> Expression:
        """An expression in which `|` is no operator."""
        self.at = self.peek().position
        level = self.deeper(level)
        return self._binary(self._unary(level), 1, level, True)

    # Operators

    def _binary(self, left: Expression, lowest: int, level: int, no_pipe: bool) -> Expression:
        at = left.position
        while True:
            token = self.peek()
            precedence = self._precedence(token, no_pipe)
            if precedence < lowest or (precedence == lowest and token.kind != "**"):
                return left
            self.next()
            self.at = at
            level = self.deeper(level)
            at = token.position
            operator = token.value
            right = self._right_side(operator, level)
            following = self.peek()
            next_precedence = self._precedence(following, no_pipe)
            if next_precedence > precedence or (
                next_precedence == precedence and following.kind == "**"
            ):
                right = self._binary(right, precedence, level, no_pipe)
            if operator in ("&&", "||"):
                self.must_be_bool(left)
                self.must_be_bool(right)
            left = Binary(token.position, operator, left, right)

    def _precedence(self, token: Token, no_pipe: bool) -> int:
        if token.kind == "reserved" and not token.value[0].isalpha():
            self.fail("UnknownOperator", f"Unknown operator: '{token.value}'", token.position)
        if no_pipe and token.kind == "|":
            return 0
        return PRECEDENCE.get(token.kind, 0)

    def _right_side(self, operator: str, level: int) -> Expression:
        token = self.peek()
        if operator in ("..", "..=") and token.kind in _OPEN_END:
            return Literal(token.position, I64_MAX)
        if operator == "??" and token.kind in ("break", "continue", "return", "throw"):
            return self.jump(level)
        return self._unary(level)

    def _unary(self, level: int) -> Expression:
        token = self.peek()
        self.at = token.position
        if token.kind in ("-", "unary-"):
            self.next()
            operand = self._unary(self.deeper(level))
            if isinstance(operand, Literal) and type(operand.value) in (int, float):
                return Literal(token.position, _negated(operand.value))
            return Unary(token.position, "-", operand)
        if token.kind in ("+", "unary+"):
            self.next()
            operand = self._unary(self.deeper(level))
            if isinstance(operand, Literal) and type(operand.value) in (int, float):
                return operand
            return Unary(token.position, "+", operand)
        if token.kind == "!":
            self.next()
            return Unary(token.position, "!", self._unary(self.deeper(level)))
        return self._chain(level)

    # Chains

    def _chain(self, level: int) -> Expression:
        root = self.primary(level)
        if self.peek().kind not in _STARTS_STEP:
            return root
        steps: list[Step] = []
        start = self.peek().position
        while self.peek().kind in _STARTS_STEP:
            token = self.next()
            self.at = token.position
            level = self.deeper(level)
            optional = token.kind[0] == "?"
            if token.kind[-1] == "[":
                index = self.expression(self.deeper(level))
                self._check_index(root if not steps else None, index)
                self.expect("]", "for a matching [ in this index expression")
                steps.append(IndexStep(token.position, index, optional))
            else:
                steps.append(self._member(optional, level))
        return Chain(start, root, steps)

    def _member(self, optional: bool, level: int) -> Step:
        token = self.next()
        if token.kind == "reserved":
            if token.value not in METHOD_WORDS or self.peek().kind != "(":
                self.reserved(token)
        elif token.kind != "name":
            self.fail("PropertyExpected", "Expecting name of a property", token.position)
        following = self.peek()
        if following.kind == "(":
            self.next()
            self.at = token.position
            arguments = self.arguments(token.value, self.deeper(level))
            return MethodStep(token.position, token.value, arguments, optional)
        if following.kind == "!":
            self.next()
            if self.peek().kind == "(":
                message = "method-call style does not support running within the caller's scope"
                self.fail("MalformedCapture", message, token.position)
            self.missing("(", "to start arguments list of function call", self.peek().position)
        return PropertyStep(token.position, token.value, optional)

    def _check_index(self, root: Expression | None, index: Expression) -> None:
        wanted = "Array, string or bit-field expects integer index, not"
        if isinstance(index, Literal):
            kind = type(index.value)
            if kind is float:
                self._bad_index(f"{wanted} a float", index.position)
            if kind is Char:
                self._bad_index(f"{wanted} a character", index.position)
            if kind is bool:
                self._bad_index(f"{wanted} a boolean", index.position)
            if kind is type(None):
                self._bad_index(f"{wanted} ()", index.position)
        if isinstance(index, Binary) and index.operator in ("&&", "||"):
            self._bad_index(f"{wanted} a boolean", index.position)
        if root is None or literal_type(root) is None:
            return
        if isinstance(root, Literal) and type(root.value) not in (int, str):
            self._bad_index(
                "Only arrays, object maps, strings and bit-fields can be indexed", root.position
            )
        is_number = isinstance(index, Literal) and type(index.value) is int
        is_text = isinstance(index, Template) or (
            isinstance(index, Literal) and type(index.value) is str
        )
        if is_number and isinstance(root, MapLiteral):
            self._bad_index("Object map expects string index, not a number", index.position)
        if is_text and isinstance(root, ArrayLiteral | Literal | Template):
            self._bad_index(
                "Array, string or bit-field expects numeric index, not a string", index.position
            )

    def _bad_index(self, message: str, position: Position) -> None:
        self.fail("MalformedIndexExpr", message, position)


def _negated(value: int | float) -> int | float:
    if type(value) is int and value == I64_MIN:
        return -float(value)
    return -value
