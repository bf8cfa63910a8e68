"""Compiles `switch` (chapter 36 section 8.2)."""

from __future__ import annotations

import ast

from conduit.rhai.compiler_emit import (
    assign,
    attribute,
    call,
    compare,
    constant,
    name,
)
from conduit.rhai.compiler_loops import LoopCompiler
from conduit.rhai.nodes import (
    Switch,
)
from conduit.rhai.switches import SwitchTable


class SwitchCompiler(LoopCompiler):
    """Choices."""

    def switch(self, node: Switch, dest: str | None) -> None:
        value = self.simple(self.owned(node.value))
        table = SwitchTable(node.cases)
        conditional = any(case.condition is not None for case in node.cases)
        chosen = self.temp()
        found = "first" if not conditional else "candidates"
        look = call(attribute(name(self.unit.constant(table)), found), value.node)
        if not conditional:
            self.add(assign(chosen, look))
        else:
            self._choose_case(node, self.held(look), chosen)
        self._dispatch(node, chosen, 0, len(node.cases), dest)

    def _choose_case(self, node: Switch, candidates: ast.expr, chosen: str) -> None:
        self.add(assign(chosen, constant(-1)))
        for i, case in enumerate(node.cases):
            if not case.values:
                default: list[ast.stmt] = [assign(chosen, constant(i))]
                self.add(ast.If(compare(name(chosen), ast.Lt(), constant(0)), default, []))
                continue
            body: list[ast.stmt] = []
            with self.into(body):
                if case.condition is None:
                    self.add(assign(chosen, constant(i)))
                else:
                    test = self.condition(case.condition)
                    self.add(ast.If(test, [assign(chosen, constant(i))], []))
            fits = ast.BoolOp(
                ast.And(),
                [
                    compare(name(chosen), ast.Lt(), constant(0)),
                    compare(constant(i), ast.In(), candidates),
                ],
            )
            self.add(ast.If(fits, body, []))

    def _dispatch(self, node: Switch, chosen: str, low: int, high: int, dest: str | None) -> None:
        """Runs the chosen action; a tree of comparisons, so that nesting stays small."""
        if high - low > 2:
            middle = (low + high) // 2
            left: list[ast.stmt] = []
            right: list[ast.stmt] = []
            with self.into(left):
                self._dispatch(node, chosen, low, middle, dest)
            with self.into(right):
                self._dispatch(node, chosen, middle, high, dest)
            test = compare(name(chosen), ast.Lt(), constant(middle))
            self.add(ast.If(test, left or [ast.Pass()], right))
            return
        otherwise: list[ast.stmt] = []
        with self.into(otherwise):
            self.nothing(dest)
        for i in range(high - 1, low - 1, -1):
            body: list[ast.stmt] = []
            action = node.cases[i].action
            with self.into(body), self.counted(None, False), self.scoped([action]):
                self.statement(action, dest, True)
            test = compare(name(chosen), ast.Eq(), constant(i))
            otherwise = [ast.If(test, body, otherwise)]
        self.body.extend(otherwise)
