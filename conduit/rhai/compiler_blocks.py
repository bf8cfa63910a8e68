"""Compiles blocks: where values go, scopes and sequences (chapter 36 section 3).

Every statement has a destination for its value: None to drop it, `RETURN` to return it, or the
name of a Python variable.
"""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from conduit.rhai.compiler_calls import CallCompiler
from conduit.rhai.compiler_emit import (
    Val,
    assign,
    attribute,
    call,
    constant,
    name,
)
from conduit.rhai.nodes import (
    ArrayLiteral,
    Block,
    Break,
    Continue,
    Empty,
    Expression,
    ExpressionStatement,
    Import,
    Literal,
    MapLiteral,
    Return,
    Statement,
    Throw,
    Variable,
)
from conduit.rhai.variable_info import VarInfo

RETURN: Final = "return"
_SIMPLE = frozenset({"const", "temp", "local"})
_JUMPS = (Break, Continue, Return, Throw)


def is_pure_value(node: Statement) -> bool:
    """Whether a statement is nothing but a value without effects."""
    return isinstance(node, ExpressionStatement) and _is_pure(node.expression)


def _is_pure(node: Expression) -> bool:
    if isinstance(node, Literal | Variable):
        return True
    if isinstance(node, ArrayLiteral):
        return all(_is_pure(item) for item in node.items)
    if isinstance(node, MapLiteral):
        return all(_is_pure(item) for _, item in node.items)
    return False


class BlockCompiler(CallCompiler):
    """Blocks."""

    @abstractmethod
    def statement(self, node: Statement, dest: str | None, preserve: bool) -> None:
        """One statement."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.depth = 0
        #: Loops and `try`s around what is compiled, in the same Python function.
        self.nesting = 0
        self.has_outlined = False
        #: Constants of a closure that are not captured but written out.
        self.folded: list[VarInfo] = []
        self.caught: list[str] = []

    # Values and destinations

    def finish(self, dest: str | None, value: Val) -> None:
        """Delivers a value."""
        if dest is None:
            if value.form not in _SIMPLE:
                self.add(ast.Expr(value.node))
        elif dest == RETURN:
            self.add(ast.Return(self.keep(value).node))
        else:
            self.add(assign(dest, self.keep(value).node))

    def nothing(self, dest: str | None) -> None:
        """Delivers `()`."""
        self.finish(dest, Val(constant(None), "unit", "const", True))

    def statement_value(self, node: Statement) -> Val:
        """The value of a statement used as an expression."""
        dest = self.temp()
        self.statement(node, dest, True)
        return Val(name(dest), None, "temp", True)

    def block_into(self, node: Block, dest: str | None) -> None:
        """Runs a block and keeps its value in the variable `dest`."""
        self.statement(node, dest, True)

    # Blocks

    @contextmanager
    def scoped(self, statements: list[Statement]) -> Iterator[None]:
        """A lexical block: what it adds to the scope by name, or as modules, goes at its end."""
        mark = ""
        if self.dynamic:
            mark = self.temp()
            size = call("len", attribute(name("env"), "names"))
            self.add(assign(mark, size))
            self.marks.append(mark)
        modules = ""
        if any(isinstance(statement, Import) for statement in statements):
            modules = self.temp()
            self.add(assign(modules, call("len", attribute(name("st"), "modules"))))
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1
            if self.dynamic:
                self.marks.pop()
                if not self.ended():
                    self.rewind(mark)
            if modules and not self.ended():
                action = call("leave_modules", name("st"), name(modules))
                self.add(ast.Expr(action))

    def ended(self) -> bool:
        """Whether the last statement emitted leaves the block anyway."""
        return bool(self.body) and isinstance(self.body[-1], ast.Return | ast.Break | ast.Continue)

    def rewind(self, mark: str) -> None:
        self.add(ast.Expr(call(attribute(name("env"), "rewind"), name(mark))))

    def sequence(self, statements: list[Statement], dest: str | None, preserve: bool) -> None:
        """Statements in order; the value of the last one goes to `dest`.

        Without `preserve` what is a mere value is dropped even at the end, as the reference's
        optimiser does (chapter 36 section 18).
        """
        kept = [node for node in statements if not isinstance(node, Empty)]
        if self.optimised:
            last = kept[-1:] if preserve else []
            kept = [
                node
                for node in kept
                if (last and node is last[0]) or not self._droppable(node, preserve)
            ]
        for i, node in enumerate(kept):
            final = i == len(kept) - 1
            self.statement(node, dest if final else None, preserve)
            if isinstance(node, _JUMPS):
                return
        if not kept:
            self.nothing(dest)

    @staticmethod
    def _droppable(node: Statement, preserve: bool) -> bool:
        if not preserve:
            return is_pure_value(node)
        return isinstance(node, ExpressionStatement) and isinstance(
            node.expression, Variable | Literal
        )

    def inner_block(self, node: Block, dest: str | None, preserve: bool) -> list[ast.stmt]:
        """A block as a list of statements of its own, with its own count."""
        body: list[ast.stmt] = []
        with self.into(body), self.counted(None, False), self.scoped(node.statements):
            self.sequence(node.statements, dest, preserve)
        return body
