"""The token stream and the small checks that all parts of the parser share.

Depth counting follows chapter 36 section 19.2: `deeper` is called on entry to everything that adds
a level and its result passed down, so that nesting is bounded long before Python's own stack is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from conduit.rhai.errors import ParseError, Position
from conduit.rhai.nodes import ArrayLiteral, Expression, Literal, MapLiteral, Template
from conduit.rhai.parser_scope import BodyScope
from conduit.rhai.tokenizer import Tokenizer
from conduit.rhai.tokens import Token, words
from conduit.rhai.values import Char

#: Tokens that cannot begin an expression.
NO_START = frozenset(words("end ; } ) ] , => | catch else as"))


class ParserBase:
    """Holds the tokens, the current body and the limits of a parse."""

    def __init__(
        self,
        text: str,
        *,
        max_depth: int = 64,
        max_function_depth: int = 32,
        max_string_size: int = 0,
        max_array_size: int = 0,
        max_map_size: int = 0,
        max_functions: int | None = None,
        functions_allowed: bool = True,
        watch: Callable[[], None] | None = None,
    ) -> None:
        self.tokens = Tokenizer(text, max_string_size)
        self._peeked: Token | None = None
        self._watch = watch
        self._read = 0
        self.scope = BodyScope(is_script=True)
        self.limit = max_depth
        self.max_depth = max_depth
        self.max_function_depth = max_function_depth
        self.max_array_size = max_array_size
        self.max_map_size = max_map_size
        self.max_functions = max_functions
        self.functions_allowed = functions_allowed
        self.function_count = 0
        self.in_loop = False
        self.in_function = False
        #: Where a depth error is reported: the token that the parser is at.
        self.at = Position(1, 1)

    def peek(self) -> Token:
        """The next token, left in place."""
        token = self._peeked
        if token is None:
            token = self._peeked = self.tokens.next_token()
            self._read += 1
            if self._read & 63 == 0 and self._watch is not None:
                self._watch()
        return token

    def next(self) -> Token:
        """The next token, taken."""
        token = self.peek()
        self._peeked = None
        return token

    def take(self, kind: str) -> bool:
        """Takes the next token if it is of that kind."""
        if self.peek().kind == kind:
            self._peeked = None
            return True
        return False

    def deeper(self, level: int) -> int:
        """One level down. Raises ParseError beyond the limit."""
        if level >= self.limit:
            self.fail("ExprTooDeep", "Expression exceeds maximum complexity", self.at)
        return level + 1

    def fail(self, kind: str, message: str, position: Position | None) -> NoReturn:
        """Raises a ParseError of the kind ``parse:<kind>``."""
        raise ParseError(f"parse:{kind}", message, position)

    def lexical(self, kind: str, message: str, position: Position) -> NoReturn:
        """Raises a ParseError of the kind ``lex:<kind>``."""
        raise ParseError(f"lex:{kind}", message, position)

    def missing(self, token: str, purpose: str, position: Position) -> NoReturn:
        """Raises `Expecting 'T' <purpose>`."""
        self.fail("MissingToken", f"Expecting '{token}' {purpose}", position)

    def expect(self, kind: str, purpose: str) -> Token:
        """Takes a token of that kind or raises `Expecting '<kind>' <purpose>`."""
        token = self.peek()
        if token.kind != kind:
            self.missing(kind, purpose, token.position)
        self._peeked = None
        return token

    def reserved(self, token: Token) -> NoReturn:
        """Raises the error of a reserved word or symbol in a wrong place."""
        what = "keyword" if token.value[0].isalpha() else "symbol"
        self.fail("Reserved", f"'{token.value}' is a reserved {what}", token.position)

    def variable_name(self) -> Token:
        """Takes the name of a variable."""
        token = self.next()
        if token.kind == "reserved":
            self.reserved(token)
        if token.kind != "name":
            self.fail("VariableExpected", "Expecting name of a variable", token.position)
        return token

    def not_a_block(self) -> None:
        """Raises when a block stands where a condition should."""
        token = self.peek()
        if token.kind == "{":
            self.fail("ExprExpected", "Expecting a boolean expression", token.position)
        if token.kind == "end":
            self.fail("UnexpectedEOF", "Script is incomplete", token.position)

    def not_assigned(self) -> None:
        """Raises when `=` follows a condition."""
        token = self.peek()
        if token.kind == "=":
            self.lexical("ImproperSymbol", "Possibly a typo of '=='?", token.position)

    def must_be_bool(self, node: Expression) -> Expression:
        """`node`, unless it is plainly not a bool."""
        name = literal_type(node)
        if name is not None and name != "a boolean":
            message = f"Expecting a boolean expression, not {name}"
            self.fail("MismatchedType", message, node.position)
        return node

    def must_be_iterable(self, node: Expression) -> Expression:
        """`node`, unless it is plainly nothing to iterate over."""
        name = literal_type(node)
        if name is not None and name not in ("a string", "an array"):
            message = f"Expecting an iterable value, not {name}"
            self.fail("MismatchedType", message, node.position)
        return node


_LITERAL_TYPES = {
    type(None): "()",
    bool: "a boolean",
    int: "a number",
    float: "a floating-point number",
    Char: "a character",
    str: "a string",
}


def literal_type(node: Expression) -> str | None:
    """How error texts name the type of a literal; None for anything else."""
    if isinstance(node, Literal):
        return _LITERAL_TYPES[type(node.value)]
    if isinstance(node, Template):
        return "a string"
    if isinstance(node, ArrayLiteral):
        return "an array"
    if isinstance(node, MapLiteral):
        return "an object map"
    return None
