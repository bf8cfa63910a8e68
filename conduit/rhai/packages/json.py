"""`parse_json` and `to_json` (chapter 36 section 15.8)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conduit.rhai.errors import EvalError
from conduit.rhai.nodes import Expression, ExpressionStatement, Literal, Tree
from conduit.rhai.packages.standard import STANDARD
from conduit.rhai.parser import Parser
from conduit.rhai.text import debug, debug_float, quoted
from conduit.rhai.text import type_name as name_of_type
from conduit.rhai.tokens import Token
from conduit.rhai.values import Array, Blob, Byte, Char, FnPtr, Map

if TYPE_CHECKING:
    from conduit.rhai.limits import RunState

fn = STANDARD.fn


class JsonParser(Parser):
    """The language's own parser, where `{` opens a map and `null` is `()`."""

    def primary(self, level: int) -> Expression:
        """One operand. Raises ParseError."""
        token = self.peek()
        if token.kind == "{":
            self.at = token.position
            self.next()
            return self._map(token, self.deeper(level))
        if token.kind == "reserved" and token.value == "null":
            self.next()
            return Literal(token.position, None)
        if token.kind in ("#{", "template"):
            self._refuse(token.value if token.kind == "#{" else "`", token)
        if token.kind == "(":
            self.next()
            if self.peek().kind == ")":
                self._refuse("()", token)
            return self._parenthesis(token, level)
        return super().primary(level)

    def _refuse(self, symbol: str, token: Token) -> None:
        message = f"Invalid symbol encountered: '{symbol}'"
        self.lexical("ImproperSymbol", message, token.position)

    def _map_key(self, some: bool) -> Token:
        token = super()._map_key(some)
        if token.kind != "string":
            self.fail("PropertyExpected", "Expecting name of a property", token.position)
        return token


@fn("parse_json", str, context=True)
def parse_json(st: RunState, text: str) -> Any:
    """The map that a JSON text describes."""
    limits = st.limits
    st.charge(len(text) // 4 + 1)
    parser = JsonParser(
        text,
        max_depth=limits.max_expr_depth,
        max_string_size=limits.max_string_size,
        max_array_size=limits.max_array_size,
        max_map_size=limits.max_map_size,
        functions_allowed=False,
        watch=st.check_clock,
    )
    expression = parser.single_expression()
    statement = ExpressionStatement(expression.position, expression)
    value = st.engine.evaluate_tree(st, Tree([statement], [], parser.scope))
    if type(value) is not Map:
        actual = name_of_type(st, value)
        raise EvalError(
            "ErrorMismatchOutputType",
            f"Output type incorrect: {actual} (expecting map)",
            fields={"requested": "map", "actual": actual},
        )
    return value


@fn("to_json", Map, context=True)
def to_json(st: RunState, m: Map) -> str:
    """The map as compact JSON."""
    return st.sized_string(_json(st, m))


def _json(st: RunState, value: Any) -> str:
    kind = type(value)
    if kind is Map:
        pairs = value.ordered()
        return f"{{{_joined(st, [(f'{quoted(key)}:', item) for key, item in pairs])}}}"
    if kind is Array or kind is Blob:
        return f"[{_joined(st, [('', item) for item in value])}]"
    if value is None:
        return "null"
    if kind is str:
        return debug(st, value)
    if kind is float:
        return debug_float(value)
    if kind is FnPtr:
        return str(value.name)
    if kind is Byte:
        return str(value.value)
    return debug(st, value, raw=kind is Char)


def _joined(st: RunState, entries: list[tuple[str, Any]]) -> str:
    """Prefixes and values with commas between, given up as soon as the text is too long."""
    st.charge((len(entries) >> 2) + 1)
    limit = st.limits.max_string_size
    parts: list[str] = []
    size = 0
    for prefix, item in entries:
        part = prefix + _json(st, item)
        parts.append(part)
        size += len(part) + 1
        if limit and size - 1 > limit:
            st.string_room(size)
    return ",".join(parts)
