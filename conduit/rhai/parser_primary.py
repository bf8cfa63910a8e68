"""Parses operands: literals, names, calls and closures (chapter 36 sections 4.1 and 10)."""

from __future__ import annotations

from abc import abstractmethod

from conduit.rhai.errors import ParseError, Position
from conduit.rhai.nodes import (
    ArrayLiteral,
    Block,
    Call,
    Closure,
    Expression,
    Literal,
    MapLiteral,
    Qualified,
    Statement,
    StatementExpression,
    Template,
    This,
    Variable,
)
from conduit.rhai.parser_base import ParserBase
from conduit.rhai.parser_scope import BodyScope
from conduit.rhai.tokens import CALLABLE_WORDS, Token
from conduit.rhai.values import Char

_DYNAMIC_WORDS = frozenset({"eval", "is_def_var"})


class PrimaryParser(ParserBase):
    """Everything that can stand as one operand, without what follows it."""

    @abstractmethod
    def expression(self, level: int) -> Expression:
        """Parses a whole expression."""

    @abstractmethod
    def block(self, level: int) -> Block:
        """Parses `{ … }`."""

    @abstractmethod
    def statement(self, level: int) -> Statement:
        """Parses one statement."""

    @abstractmethod
    def compound(self, level: int) -> Statement:
        """Parses the statement whose keyword comes next."""

    def primary(self, level: int) -> Expression:
        """One operand. Raises ParseError."""
        token = self.peek()
        self.at = token.position
        kind = token.kind
        if kind in ("int", "float", "string"):
            self.next()
            return Literal(token.position, token.value)
        if kind == "char":
            self.next()
            return Literal(token.position, Char(token.value))
        if kind in ("true", "false"):
            self.next()
            return Literal(token.position, kind == "true")
        if kind == "name":
            self.next()
            return self._name(token, level)
        if kind == "reserved":
            self.next()
            return self._reserved_name(token, level)
        if kind == "(":
            self.next()
            return self._parenthesis(token, level)
        if kind == "[":
            self.next()
            return self._array(token, self.deeper(level))
        if kind == "#{":
            self.next()
            return self._map(token, self.deeper(level))
        if kind == "template":
            self.next()
            return self._template(token, self.deeper(level))
        if kind == "{":
            return StatementExpression(token.position, self.block(level))
        if kind in ("if", "switch", "while", "loop", "do", "for"):
            return StatementExpression(token.position, self.compound(level))
        if kind in ("|", "||"):
            self.next()
            return self._closure(token, level)
        if kind in ("..", "..="):
            return Literal(token.position, 0)  # an open start; the operator is read next
        if kind == "end":
            self.fail("UnexpectedEOF", "Script is incomplete", token.position)
        self.lexical("UnexpectedInput", f"Unexpected '{token.value}'", token.position)

    def _parenthesis(self, token: Token, level: int) -> Expression:
        if self.take(")"):
            return Literal(token.position, None)
        inner = self.expression(self.deeper(level))
        self.expect(")", "for a matching ( in this expression")
        return inner

    # Names and calls

    def _name(self, token: Token, level: int) -> Expression:
        following = self.peek().kind
        if following == "(":
            return self._call(token, (), level)
        if following == "!":
            self.next()
            return self._call_in_scope(token, level)
        if following == "::":
            return self._qualified(token, level)
        return Variable(token.position, token.value, self.scope.find(token.value, token.position))

    def _reserved_name(self, token: Token, level: int) -> Expression:
        word = token.value
        if word == "this":
            if not self.in_function:
                message = "'this' can only be used in functions"
                self.lexical("ImproperSymbol", message, token.position)
            return This(token.position)
        if word in CALLABLE_WORDS and self.peek().kind == "(":
            if word in _DYNAMIC_WORDS:
                self.scope.dynamic = True
            return self._call(token, (), level)
        self.reserved(token)

    def _call_in_scope(self, token: Token, level: int) -> Expression:
        if self.peek().kind != "(":
            self.missing("(", "to start arguments list of function call", self.peek().position)
        self.scope.dynamic = True
        call = self._call(token, (), level)
        call.in_scope = True
        return call

    def _qualified(self, token: Token, level: int) -> Expression:
        path: tuple[str, ...] = ()
        current = token
        while self.take("::"):
            path = (*path, current.value)
            following = self.next()
            if following.kind == "reserved":
                self.reserved(following)
            if following.kind != "name":
                message = "Expecting name of a variable"
                self.fail("VariableExpected", message, following.position)
            current = following
        if self.peek().kind == "(":
            call = self._call(current, path, level)
            call.position = token.position
            return call
        if self.peek().kind == "!":
            message = "'!' cannot be used to call module functions"
            self.lexical("ImproperSymbol", message, self.peek().position)
        return Qualified(token.position, path, current.value)

    def _call(self, token: Token, path: tuple[str, ...], level: int) -> Call:
        self.next()
        self.at = token.position
        arguments = self.arguments(token.value, self.deeper(level))
        return Call(token.position, token.value, arguments, path)

    def arguments(self, name: str, level: int) -> list[Expression]:
        """The arguments of a call of `name`, after the `(`."""
        purpose = f"to close the arguments list of this function call '{name}'"
        items: list[Expression] = []
        while True:
            token = self.peek()
            if token.kind == ")":
                self.next()
                return items
            if token.kind == "end":
                self.missing(")", purpose, token.position)
            items.append(self.expression(level))
            token = self.peek()
            if token.kind == ")":
                continue
            if token.kind == "end":
                self.missing(")", purpose, token.position)
            if token.kind != ",":
                separate = f"to separate the arguments to function call '{name}'"
                self.missing(",", separate, token.position)
            self.next()

    # Literals with parts

    def _array(self, opening: Token, level: int) -> Expression:
        items: list[Expression] = []
        limit = self.max_array_size
        while True:
            token = self.peek()
            self.at = token.position
            if limit and len(items) >= limit:
                message = f"Size of array literal exceeds the maximum limit ({limit})"
                self.fail("LiteralTooLarge", message, token.position)
            if token.kind == "]":
                self.next()
                return ArrayLiteral(opening.position, items)
            if token.kind == "end":
                self.missing("]", "to end this array literal", token.position)
            items.append(self.expression(self.deeper(level)))
            token = self.peek()
            if token.kind == ",":
                self.next()
            elif token.kind == "end":
                self.missing("]", "to end this array literal", token.position)
            elif token.kind != "]":
                self.missing(",", "to separate the items of this array literal", token.position)

    def _map(self, opening: Token, level: int) -> Expression:
        items: list[tuple[str, Expression]] = []
        names: set[str] = set()
        limit = self.max_map_size
        while True:
            if self.take("}"):
                return MapLiteral(opening.position, items)
            name = self._map_key(bool(items))
            if name.value in names:
                message = f"Duplicated property for object map literal: {name.value}"
                self.fail("DuplicatedProperty", message, name.position)
            names.add(name.value)
            self.expect(":", f"to follow the property '{name.value}' in this object map literal")
            self.at = self.peek().position
            if limit and len(items) >= limit:
                what = "Number of properties in object map literal"
                message = f"{what} exceeds the maximum limit ({limit})"
                self.fail("LiteralTooLarge", message, self.at)
            items.append((name.value, self.expression(self.deeper(level))))
            token = self.peek()
            if token.kind == ",":
                self.next()
            elif token.kind in ("name", "string"):
                self.missing(
                    ",", "to separate the items of this object map literal", token.position
                )
            elif token.kind != "}":
                self.missing("}", "to end this object map literal", token.position)

    def _map_key(self, some: bool) -> Token:
        token = self.next()
        if token.kind == "reserved":
            self.reserved(token)
        if token.kind == "end" or (token.kind not in ("name", "string", "template") and not some):
            self.missing("}", "to end this object map literal", token.position)
        if token.kind not in ("name", "string"):
            self.fail("PropertyExpected", "Expecting name of a property", token.position)
        return token

    def _template(self, token: Token, level: int) -> Expression:
        parts: list[str | Block] = []
        opening = token.position
        while True:
            if token.value:
                parts.append(token.value)
            if token.kind == "string":
                return Template(opening, parts)
            parts.append(self.block(level))
            # the closing brace was the last token read: nothing is peeked yet
            token = self.tokens.resume_template()

    # Closures

    def _closure(self, opening: Token, level: int) -> Expression:
        if not self.functions_allowed:
            self.misplaced_function(None)
        self.count_function(opening.position)
        scope = BodyScope(self.scope)
        parameters = [] if opening.kind == "||" else self._closure_parameters()
        for name in parameters:
            scope.declare(name)
        saved = self.scope, self.in_loop, self.in_function
        self.scope, self.in_loop, self.in_function = scope, False, True
        try:
            self.at = self.peek().position
            body = self.statement(self.deeper(level))
        finally:
            self.scope, self.in_loop, self.in_function = saved
        return Closure(opening.position, parameters, body, scope)

    def _closure_parameters(self) -> list[str]:
        names: list[str] = []
        while True:
            token = self.next()
            if token.kind == "|":
                return names
            if token.kind == "reserved":
                self.reserved(token)
            if token.kind != "name":
                purpose = "to close the parameters list of anonymous function or closure"
                self.missing("|", purpose, token.position)
            if token.value in names:
                message = f"Duplicated parameter {token.value} for function "
                self.fail("FnDuplicatedParam", message, token.position)
            names.append(token.value)
            token = self.next()
            if token.kind == "|":
                return names
            if token.kind != ",":
                purpose = "to separate the parameters of anonymous function"
                self.missing(",", purpose, token.position)

    def count_function(self, position: Position) -> None:
        """Counts a definition. Raises ParseError beyond the limit."""
        if self.max_functions is not None and self.function_count >= self.max_functions:
            message = "Number of functions defined exceeds maximum limit"
            self.fail("TooManyFunctions", message, position)
        self.function_count += 1

    def misplaced_function(self, position: Position | None) -> None:
        """Raises the error of a definition that is not at global level."""
        raise ParseError(
            "parse:WrongFnDefinition",
            "Function definitions must be at global level and cannot be inside a block or "
            "another function",
            position,
        )
