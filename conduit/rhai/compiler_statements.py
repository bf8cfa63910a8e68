"""Compiles statements: blocks, branches, loops, `try` and the rest (chapter 36 sections 3, 8, 11).

Every statement has a destination for its value: None to drop it, `RETURN` to return it, or the
name of a Python variable.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from conduit.rhai.compiler_calls import CallCompiler
from conduit.rhai.compiler_emit import (
    Val,
    assign,
    attribute,
    call,
    compare,
    constant,
    name,
    target,
)
from conduit.rhai.compiler_nesting import DEEPEST, outlined
from conduit.rhai.nodes import (
    ArrayLiteral,
    Assign,
    Binary,
    Block,
    Break,
    Continue,
    DoWhile,
    Empty,
    Export,
    Expression,
    ExpressionStatement,
    For,
    If,
    Import,
    Let,
    Literal,
    MapLiteral,
    Return,
    Statement,
    StatementExpression,
    Switch,
    Throw,
    Try,
    Variable,
    VarInfo,
    While,
)
from conduit.rhai.switches import SwitchTable

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


class StatementCompiler(CallCompiler):
    """Statements."""

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
                if not self._ended():
                    self._rewind(mark)
            if modules and not self._ended():
                action = call("leave_modules", name("st"), name(modules))
                self.add(ast.Expr(action))

    def _ended(self) -> bool:
        """Whether the last statement emitted leaves the block anyway."""
        return bool(self.body) and isinstance(self.body[-1], ast.Return | ast.Break | ast.Continue)

    def _rewind(self, mark: str) -> None:
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
            self._for(node, dest)
        elif isinstance(node, While):
            self._while(node, dest)
        elif isinstance(node, DoWhile):
            self._do(node, dest)
        elif isinstance(node, Switch):
            self._switch(node, dest)
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

    # Loops

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
            self._rewind(mark)
        with self.scoped(node.statements):
            self.sequence(node.statements, None, False)

    def _while(self, node: While, dest: str | None) -> None:
        mark = self._loop_mark()
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
        self._leave_loop(mark)

    def _loop_mark(self) -> str:
        if not self.dynamic:
            return ""
        mark = self.temp()
        self.add(assign(mark, call("len", attribute(name("env"), "names"))))
        return mark

    def _leave_loop(self, mark: str) -> None:
        if mark:
            self._rewind(mark)

    def _do(self, node: DoWhile, dest: str | None) -> None:
        mark = self._loop_mark()
        body: list[ast.stmt] = []
        with self.into(body), self.counted(node.body.position, True):
            with self._loop(dest):
                self._turn(node.body, mark)
            if not self._ended():
                test = self.condition(node.condition)
                if not node.until:
                    test = ast.UnaryOp(ast.Not(), test)
                leave = [*self._after_loop(dest)]
                if dest != RETURN:
                    leave.append(ast.Break())
                self.add(ast.If(test, leave, []))
        self.add(ast.While(constant(True), body, []))
        self._leave_loop(mark)

    def _for(self, node: For, dest: str | None) -> None:
        items = self._iterable(node.iterable)
        mark = self._loop_mark()
        start: list[ast.stmt] = []
        item = self._loop_variable(node.variable, node.info, node, mark, start)
        counter = ""
        if node.counter is not None:
            counter = self._loop_variable(node.counter, node.counter_info, node, mark, start)
        turn_mark = self._loop_mark()
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
        self._leave_loop(mark)

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

    # Switch

    def _switch(self, node: Switch, dest: str | None) -> None:
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

    # Errors and modules

    def _try(self, node: Try, dest: str | None) -> None:
        kept = [s for s in node.body.statements if not isinstance(s, Empty)]
        if self.optimised and all(is_pure_value(s) for s in kept):
            self.nothing(dest)
            return
        mark = self._loop_mark()
        body = self.inner_block(node.body, dest, False)
        failure, error = self.temp(), self.temp()
        handler: list[ast.stmt] = []
        with self.into(handler), self.counted(None, False):
            positions = name("POSITIONS")
            look = call("caught_error", name("st"), name(error), positions)
            self.add(assign(failure, look))
            self._leave_loop(mark)
            self.caught.append(failure)
            with self.scoped(node.handler.statements):
                if node.variable is not None:
                    value = call("catch_value", name("st"), name(failure))
                    self.declare(node.info, node.variable, value, False, node.count, node.position)
                self.sequence(node.handler.statements, None, False)
            self.caught.pop()
            if not self._ended():
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
