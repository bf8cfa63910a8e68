"""Compiles the loops (chapter 36 section 8.3)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager

from conduit.rhai.compiler_blocks import RETURN, BlockCompiler
from conduit.rhai.compiler_emit import (
    assign,
    attribute,
    call,
    constant,
    name,
    target,
)
from conduit.rhai.nodes import (
    Binary,
    Block,
    DoWhile,
    Expression,
    For,
    While,
)
from conduit.rhai.variable_info import VarInfo


class LoopCompiler(BlockCompiler):
    """Loops."""

    @contextmanager
    def _loop(self, dest: str | None) -> Iterator[None]:
        self.loops.append(dest)
        try:
            yield
        finally:
            self.loops.pop()

    def _after_loop(self, dest: str | None) -> list[ast.stmt]:
        """What runs when a loop ends without `break`."""
        body: list[ast.stmt] = []
        with self.into(body):
            self.nothing(dest)
        return body

    def _turn(self, node: Block, mark: str) -> None:
        """The body of one turn of a loop."""
        if mark:
            self.rewind(mark)
        with self.scoped(node.statements):
            self.sequence(node.statements, None, False)

    def while_loop(self, node: While, dest: str | None) -> None:
        mark = self.loop_mark()
        body: list[ast.stmt] = []
        test: ast.expr = constant(True)
        setup: list[ast.stmt] = []
        with self.into(setup):
            if node.condition is not None:
                test = self.condition(node.condition)
        orelse: list[ast.stmt] = []
        with self.into(body), self.counted(node.body.position, True):
            self.count(2)
            if setup:
                self.body.extend(setup)
                leave = [*self._after_loop(dest)]
                if dest != RETURN:
                    leave.append(ast.Break())
                self.add(ast.If(ast.UnaryOp(ast.Not(), test), leave, []))
            with self._loop(dest):
                self._turn(node.body, mark)
        if setup:
            test = constant(True)
        elif node.condition is not None:
            orelse = self._after_loop(dest)
        self.add(ast.While(test, body, orelse))
        self.leave_loop(mark)

    def loop_mark(self) -> str:
        if not self.dynamic:
            return ""
        mark = self.temp()
        self.add(assign(mark, call("len", attribute(name("env"), "names"))))
        return mark

    def leave_loop(self, mark: str) -> None:
        if mark:
            self.rewind(mark)

    def do_loop(self, node: DoWhile, dest: str | None) -> None:
        mark = self.loop_mark()
        body: list[ast.stmt] = []
        with self.into(body), self.counted(node.body.position, True):
            with self._loop(dest):
                self._turn(node.body, mark)
            if not self.ended():
                test = self.condition(node.condition)
                if not node.until:
                    test = ast.UnaryOp(ast.Not(), test)
                leave = [*self._after_loop(dest)]
                if dest != RETURN:
                    leave.append(ast.Break())
                self.add(ast.If(test, leave, []))
        self.add(ast.While(constant(True), body, []))
        self.leave_loop(mark)

    def for_loop(self, node: For, dest: str | None) -> None:
        items = self._iterable(node.iterable)
        mark = self.loop_mark()
        start: list[ast.stmt] = []
        item = self._loop_variable(node.variable, node.info, node, mark, start)
        counter = ""
        if node.counter is not None:
            counter = self._loop_variable(node.counter, node.counter_info, node, mark, start)
        turn_mark = self.loop_mark()
        if self.unit.engine.limits.max_variables is not None and not self.dynamic:
            line = self.unit.line(node.position)
            room = call("variable_room", name("st"), constant(node.count), line=line)
            self.add(ast.Expr(room))
        body: list[ast.stmt] = []
        with self.into(body), self.counted(node.body.position, True), self._loop(dest):
            self.body.extend(start)
            self._turn(node.body, turn_mark)
        variable: ast.expr = target(item)
        if counter:
            items = call("enumerate", items)
            variable = ast.Tuple([target(counter), target(item)], ast.Store())
        self.add(ast.For(variable, items, body, self._after_loop(dest)))
        self.leave_loop(mark)

    def _loop_variable(
        self, variable: str, info: VarInfo | None, node: For, mark: str, start: list[ast.stmt]
    ) -> str:
        """Makes a loop variable: one for all turns. Returns what Python's loop assigns to."""
        assert info is not None
        line = self.unit.line(node.position)
        if self.dynamic:
            arguments = (name("st"), constant(variable), constant(None), constant(False))
            action = call(attribute(name("env"), "declare"), *arguments, name(mark), line=line)
            self.add(ast.Expr(action))
            box: ast.expr = self.box_by_name(variable)
        elif info.captured:
            box = name(self.variable(info))
            self.add(assign(self.variable(info), call("Cell")))
        else:
            return self.variable(info)
        item = self.temp()
        label = constant(variable)
        start.append(ast.Expr(call("set_cell", name("st"), box, name(item), label, line=line)))
        return item

    def _iterable(self, node: Expression) -> ast.expr:
        st = name("st")
        if isinstance(node, Binary) and node.operator in ("..", "..="):
            left, right = self.operands([node.left, node.right], own=False)
            line = self.unit.line(node.position)
            function = "count_up" if node.operator == ".." else "count_up_to"
            return self.held(call(function, st, left.node, right.node, line=line))
        value = self.owned(node)
        line = self.unit.line(node.position)
        return self.held(call("iterate", st, value.node, line=line))
