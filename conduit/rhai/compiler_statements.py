"""Compiles statements: `let`, jumps, `if`, `try` and modules (chapter 36 sections 3, 8, 11)."""

from __future__ import annotations

import ast

from conduit.rhai.compiler_blocks import RETURN, is_pure_value
from conduit.rhai.compiler_emit import (
    assign,
    call,
    constant,
    name,
)
from conduit.rhai.compiler_nesting import DEEPEST, outlined
from conduit.rhai.compiler_switch import SwitchCompiler
from conduit.rhai.nodes import (
    Assign,
    Block,
    Break,
    Continue,
    DoWhile,
    Empty,
    Export,
    ExpressionStatement,
    For,
    If,
    Import,
    Let,
    Return,
    Statement,
    StatementExpression,
    Switch,
    Throw,
    Try,
    Variable,
    While,
)

_JUMPS = (Break, Continue, Return, Throw)


class StatementCompiler(SwitchCompiler):
    """Statements."""

    # Statements

    def statement(self, node: Statement, dest: str | None, preserve: bool) -> None:
        """One statement."""
        if not isinstance(node, For | While | DoWhile | Try):
            self._statement(node, dest, preserve)
            return
        saved = self.nesting
        if saved >= DEEPEST:
            body: list[ast.stmt] = []
            self.nesting = 0
            with self.into(body):
                self.statement(node, dest, preserve)
            self.body.extend(outlined(body, self.unit.number(), self.temp()))
            self.has_outlined = True
        else:
            self.nesting += 2 if isinstance(node, Try) else 1
            self._statement(node, dest, preserve)
        self.nesting = saved

    def _statement(self, node: Statement, dest: str | None, preserve: bool) -> None:
        self.count()
        if isinstance(node, ExpressionStatement):
            expression = node.expression
            if isinstance(expression, StatementExpression):
                self.statement(expression.statement, dest, preserve)
            else:
                self.finish(dest, self.expression(expression))
        elif isinstance(node, Let):
            self._let(node)
            self.nothing(dest)
        elif isinstance(node, Assign):
            self.assignment(node)
            self.nothing(dest)
        elif isinstance(node, If):
            self._if(node, dest, preserve)
        elif isinstance(node, Block):
            with self.scoped(node.statements):
                self.sequence(node.statements, dest, preserve)
        elif isinstance(node, For):
            self.for_loop(node, dest)
        elif isinstance(node, While):
            self.while_loop(node, dest)
        elif isinstance(node, DoWhile):
            self.do_loop(node, dest)
        elif isinstance(node, Switch):
            self.switch(node, dest)
        elif isinstance(node, _JUMPS):
            self._jump(node)
        elif isinstance(node, Try):
            self._try(node, dest)
        elif isinstance(node, Import):
            self._import(node)
            self.nothing(dest)
        elif isinstance(node, Export):
            self._export(node)
            self.nothing(dest)
        else:
            self.nothing(dest)

    def _let(self, node: Let) -> None:
        if node.value is None:
            value: ast.expr = constant(None)
        else:
            value = self.owned(node.value).node
        keep_global = node.const and self.is_script and self.depth == 0 and self.unit.keeps_globals
        if keep_global or node.exported:
            value = self.held(value)
            if keep_global:
                held = call("share", value)
                self.add(ast.Expr(call("keep_global", name("st"), constant(node.name), held)))
            if node.exported:
                held = call("share", value)
                self.add(ast.Expr(call("export", name("st"), constant(node.name), held)))
        self.declare(node.info, node.name, value, node.const, node.count, node.position)

    def _jump(self, node: Break | Continue | Return | Throw) -> None:
        if isinstance(node, Throw):
            line = self.unit.line(node.position)
            if node.value is None and self.caught:
                again = call("raise_again", name(self.caught[-1]), line=line)
                self.add(ast.Expr(again))
                return
            value = constant(None) if node.value is None else self.owned(node.value).node
            self.add(ast.Expr(call("throw", name("st"), value, line=line)))
        elif isinstance(node, Return):
            if node.value is None:
                self.add(ast.Return(constant(None)))
            else:
                self.finish(RETURN, self.expression(node.value))
        elif isinstance(node, Continue):
            self.add(ast.Continue())
        else:
            dest = self.loops[-1]
            if node.value is None:
                self.nothing(dest)
            else:
                self.finish(dest, self.expression(node.value))
            if dest != RETURN:
                self.add(ast.Break())

    def _if(self, node: If, dest: str | None, preserve: bool) -> None:
        """`if` with its `else if`s; nested only as deep as the parser allows."""
        if not node.then.statements and (
            node.otherwise is None
            or (isinstance(node.otherwise, Block) and not node.otherwise.statements)
        ):
            self.finish(None, self.expression(node.condition))
            self.nothing(dest)
            return
        test = self.condition(node.condition)
        then = self.inner_block(node.then, dest, preserve)
        otherwise: list[ast.stmt] = []
        with self.into(otherwise):
            if node.otherwise is None:
                self.nothing(dest)
            elif isinstance(node.otherwise, If):
                self._if(node.otherwise, dest, preserve)
            else:
                otherwise.extend(self.inner_block(node.otherwise, dest, preserve))
        self.add(ast.If(test, then or [ast.Pass()], otherwise))

    # Errors and modules

    def _try(self, node: Try, dest: str | None) -> None:
        kept = [s for s in node.body.statements if not isinstance(s, Empty)]
        if self.optimised and all(is_pure_value(s) for s in kept):
            self.nothing(dest)
            return
        mark = self.loop_mark()
        body = self.inner_block(node.body, dest, False)
        failure, error = self.temp(), self.temp()
        handler: list[ast.stmt] = []
        with self.into(handler), self.counted(None, False):
            positions = name("POSITIONS")
            look = call("caught_error", name("st"), name(error), positions)
            self.add(assign(failure, look))
            self.leave_loop(mark)
            self.caught.append(failure)
            with self.scoped(node.handler.statements):
                if node.variable is not None:
                    value = call("catch_value", name("st"), name(failure))
                    self.declare(node.info, node.variable, value, False, node.count, node.position)
                self.sequence(node.handler.statements, None, False)
            self.caught.pop()
            if not self.ended():
                self.nothing(dest)
        clause = ast.ExceptHandler(name("Exception"), error, handler)
        self.add(ast.Try(body or [ast.Pass()], [clause], [], []))

    def _import(self, node: Import) -> None:
        line = self.unit.line(node.position, node.path.position)
        path = self.owned(node.path)
        alias = constant(node.alias)
        self.add(ast.Expr(call("import_module", name("st"), path.node, alias, line=line)))

    def _export(self, node: Export) -> None:
        variable = Variable(node.name_position, node.name, node.info)
        value = self.keep(self.read(variable))
        exported = constant(node.alias or node.name)
        self.add(ast.Expr(call("export", name("st"), exported, value.node)))
