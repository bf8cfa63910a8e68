"""Turns the text of a script into a tree: function definitions and the statements around them."""

from __future__ import annotations

from collections.abc import Callable

from conduit.rhai.errors import ParseError
from conduit.rhai.limits import Limits
from conduit.rhai.nodes import SELF_TERMINATED, Empty, Expression, Function, Statement, Tree
from conduit.rhai.parser_scope import BodyScope
from conduit.rhai.parser_statements import StatementParser
from conduit.rhai.tokens import Token


class Parser(StatementParser):
    """The whole parser; `script` is the entry."""

    def script(self) -> Tree:
        """The tree of the text. Raises ParseError."""
        statements: list[Statement] = []
        functions: list[Function] = []
        known: set[tuple[str, int, str | None]] = set()
        while True:
            token = self.peek()
            if token.kind == "end":
                break
            if token.kind in ("fn", "private") and self.functions_allowed:
                function = self._function(token)
                key = (function.name, len(function.parameters), function.receiver)
                if key in known:
                    count = len(function.parameters)
                    amount = {0: "no parameters", 1: "1 parameter"}.get(
                        count, f"{count} parameters"
                    )
                    message = f"Function {function.name} with {amount} already exists"
                    self.fail("FnDuplicatedDefinition", message, function.position)
                known.add(key)
                functions.append(function)
                continue
            statement = self.statement(0, top=True)
            if isinstance(statement, Empty):
                continue
            statements.append(statement)
            token = self.peek()
            if token.kind == ";":
                self.next()
            elif token.kind != "end" and not isinstance(statement, SELF_TERMINATED):
                self.missing(";", "to terminate this statement", token.position)
        return Tree(statements, functions, self.scope, self.function_count > 0)

    def single_expression(self) -> Expression:
        """The tree of a text that is one expression, as `parse_json` reads it."""
        expression = self.expression(0)
        token = self.peek()
        if token.kind != "end":
            self.lexical("UnexpectedInput", f"Unexpected '{token.value}'", token.position)
        return expression

    def _function(self, start: Token) -> Function:
        private = self.take("private")
        keyword = self.peek()
        if keyword.kind != "fn":
            self.missing("fn", "following 'private'", keyword.position)
        self.next()
        self.count_function(keyword.position)
        name, receiver = self._function_name()
        parameters = self._parameters(name)
        body_start = self.peek()
        if body_start.kind != "{":
            message = f"Expecting body statement block for function {name}"
            self.fail("FnMissingBody", message, body_start.position)
        scope = BodyScope()
        for parameter in parameters:
            scope.declare(parameter)
        saved = self.scope, self.limit
        self.scope, self.limit, self.in_function = scope, self.max_function_depth, True
        self.at = body_start.position
        body = self.block(self.deeper(0))
        self.scope, self.limit = saved
        self.in_function = False
        return Function(start.position, name, parameters, body, private, receiver, scope)

    def _function_name(self) -> tuple[str, str | None]:
        token = self.next()
        if token.kind == "reserved":
            self.reserved(token)
        if token.kind not in ("name", "string"):
            message = "Expecting function name in function declaration"
            self.fail("FnMissingName", message, token.position)
        if token.kind == "string" or self.peek().kind == ".":
            self.expect(".", "after the type name for 'this'")
            receiver = str(token.value)
            token = self.next()
            if token.kind == "reserved":
                self.reserved(token)
            if token.kind != "name":
                message = "Expecting function name in function declaration"
                self.fail("FnMissingName", message, token.position)
            return token.value, receiver
        return token.value, None

    def _parameters(self, name: str) -> list[str]:
        opening = self.peek()
        if opening.kind != "(":
            message = f"Expecting parameters for function {name}"
            self.fail("FnMissingParams", message, opening.position)
        self.next()
        names: list[str] = []
        while True:
            token = self.next()
            if token.kind == ")":
                return names
            if token.kind == "reserved":
                self.reserved(token)
            if token.kind != "name":
                purpose = f"to close the parameters list of function '{name}'"
                self.missing(")", purpose, token.position)
            if token.value in names:
                message = f"Duplicated parameter {token.value} for function {name}"
                self.fail("FnDuplicatedParam", message, token.position)
            names.append(token.value)
            token = self.next()
            if token.kind == ")":
                return names
            if token.kind != ",":
                purpose = f"to separate the parameters of function '{name}'"
                self.missing(",", purpose, token.position)


def parse(
    text: str,
    limits: Limits,
    *,
    functions_allowed: bool = True,
    watch: Callable[[], None] | None = None,
) -> Tree:
    """The tree of `text`; `functions_allowed` is False for the text of `eval`.

    `watch` is called now and then, to give up by an exception. Raises ParseError.
    """
    parser = Parser(
        text,
        max_depth=limits.max_expr_depth,
        max_function_depth=limits.max_function_expr_depth,
        max_string_size=limits.max_string_size,
        max_array_size=limits.max_array_size,
        max_map_size=limits.max_map_size,
        max_functions=limits.max_functions,
        functions_allowed=functions_allowed,
        watch=watch,
    )
    try:
        return parser.script()
    except RecursionError:
        message = "Expression exceeds maximum complexity"
        raise ParseError("parse:ExprTooDeep", message, parser.at) from None
