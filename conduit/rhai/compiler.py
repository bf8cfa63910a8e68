"""Compiles a whole script: itself, each function and each closure to Python functions."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from conduit.rhai.calls import COMPILED_NAME, Code, Program
from conduit.rhai.compiler_blocks import RETURN
from conduit.rhai.compiler_emit import (
    Unit,
    assign,
    attribute,
    call,
    compare,
    constant,
    fix_locations,
    name,
)
from conduit.rhai.compiler_nesting import resolve_names
from conduit.rhai.compiler_statements import StatementCompiler
from conduit.rhai.errors import ParseError, Position
from conduit.rhai.machine import MACHINE
from conduit.rhai.nodes import Block, Closure, Function, Statement, Tree
from conduit.rhai.variable_info import VarInfo

if TYPE_CHECKING:
    from conduit.rhai.engine import Engine

Main = Callable[..., Any]


class BodyCompiler(StatementCompiler):
    """One body, of a script, function or closure."""

    def compile_closure(self, node: Closure, captures: list[VarInfo], code: Code) -> None:
        """Compiles the body of a closure into `code`."""
        body = BodyCompiler(self.unit, bool(node.scope.dynamic))
        body.optimised = self.optimised
        for info in node.scope.captures.values():
            if info.literal is not None:
                body.folded.append(info)
        body.function(code, captures, node.parameters, node.scope.blocks[0], node.body)

    def function(
        self,
        code: Code,
        captures: list[VarInfo],
        parameters: list[str],
        variables: dict[str, VarInfo],
        node: Statement,
        scoped: bool = False,
    ) -> str:
        """Compiles a function body; returns its Python name.

        `variables` are those of the parameters. With `scoped` it takes its caller's variables as
        `env` and leaves nothing behind there.
        """
        python = f"f{self.unit.number()}"
        arguments = ["st", "this", *(["env"] if scoped else [])]
        inside: list[ast.stmt] = []
        mark = ""
        with self.into(inside), self.counted(node.position, True):
            if scoped:
                mark = self.temp()
            elif self.dynamic:
                self.add(assign("env", call("Scope")))
                for info in self.folded:
                    self._hold_folded(info)
            for info in captures:
                arguments.append(self._capture(info))
            for parameter in parameters:
                arguments.append(self._parameter(parameter, variables[parameter]))
            statements: list[Statement] = node.statements if isinstance(node, Block) else [node]
            with self.scoped(statements):
                self.sequence(statements, RETURN, True)
        self.unit.functions.append(self._frame(python, arguments, inside, code, mark))
        self.unit.codes.append((python, code))
        return python

    def _hold_folded(self, info: VarInfo) -> None:
        """A constant that is folded into the closure, for code that looks it up by name."""
        assert info.literal is not None
        box = call("Cell", self.literal(info.literal).node, constant(True))
        held = call(attribute(name("env"), "hold"), constant(info.name), box)
        self.add(ast.Expr(held))

    def _capture(self, info: VarInfo) -> str:
        identifier = self.variable(info)
        if self.dynamic:
            held = call(attribute(name("env"), "hold"), constant(info.name), name(identifier))
            self.add(ast.Expr(held))
        return identifier

    def _parameter(self, parameter: str, info: VarInfo) -> str:
        identifier = self.variable(info)
        if self.dynamic:
            box = call("Cell", name(identifier))
            held = call(attribute(name("env"), "hold"), constant(parameter), box)
            self.add(ast.Expr(held))
        elif info.captured:
            self.add(assign(identifier, call("Cell", name(identifier))))
        return identifier

    def _frame(
        self, python: str, arguments: list[str], body: list[ast.stmt], code: Code, mark: str
    ) -> ast.stmt:
        """The function around a body: call level, and errors that leave it."""
        if self.has_outlined:
            body = resolve_names(body, arguments)
        level = "lv"
        state_level = attribute(name("st"), "level")
        stored = ast.Attribute(name("st"), "level", ast.Store())
        identifier = name(self.unit.constant(code))
        wrap = call("wrapped", name("e"), identifier)
        leave: list[ast.stmt] = [
            ast.Assign([stored], ast.BinOp(name(level), ast.Sub(), constant(1)))
        ]
        if mark:
            leave.append(ast.Expr(call(attribute(name("env"), "rewind"), name(mark))))
        handler = ast.ExceptHandler(name("Exception"), "e", [ast.Raise(wrap, constant(None))])
        test = compare(name(level), ast.Gt(), attribute(name("st"), "max_level"))
        statements: list[ast.stmt] = [
            assign(level, ast.BinOp(state_level, ast.Add(), constant(1))),
            ast.If(test, [ast.Expr(call("stack_overflow"))], []),
        ]
        if mark:
            statements.append(assign(mark, call("len", attribute(name("env"), "names"))))
        statements.append(ast.Assign([stored], name(level)))
        statements.append(ast.Try(body, [handler], [], leave))
        return definition(python, arguments, statements)

    def script(self, tree: Tree) -> str:
        """Compiles the statements of a script; returns the Python name."""
        python = f"f{self.unit.number()}"
        body: list[ast.stmt] = []
        self.is_script = True
        with self.into(body), self.counted(Position(1, 1), True):
            if not self.dynamic:
                self._load_scope(tree)
            else:
                mark = self.temp()
                self.add(assign(mark, call("len", attribute(name("env"), "names"))))
                self.marks.append(mark)
            self.sequence(tree.statements, RETURN, True)
        if self.has_outlined:
            body = resolve_names(body, ["st", "env"])
        self.unit.functions.append(definition(python, ["st", "env"], body))
        return python

    def _load_scope(self, tree: Tree) -> None:
        for info in tree.scope.free.values():
            if info.name in self.unit.names:
                continue
            found = call(attribute(name("env"), "cell"), constant(info.name))
            self.add(assign(self.variable(info), found))


def definition(python: str, arguments: list[str], body: list[ast.stmt]) -> ast.stmt:
    """`def python(arguments): body`."""
    parameters = ast.arguments(
        posonlyargs=[],
        args=[ast.arg(argument) for argument in arguments],
        vararg=None,
        kwonlyargs=[],
        kw_defaults=[],
        kwarg=None,
        defaults=[],
    )
    return ast.FunctionDef(name=python, args=parameters, body=body, decorator_list=[], returns=None)


class CompiledScript:
    """What compiling a script yields: its main function and its functions by name."""

    __slots__ = ("main", "positions", "program", "uses_names")

    def __init__(self, main: Main, program: Program, unit: Unit, uses_names: bool) -> None:
        self.main = main
        self.program = program
        self.positions = unit.positions
        self.uses_names = uses_names


def _namespace() -> dict[str, Any]:
    return {"__builtins__": {}, **MACHINE}


def compile_tree(
    engine: Engine,
    tree: Tree,
    source: str = "",
    *,
    program: Program | None = None,
    optimise: bool = True,
    by_name: bool = False,
    watch: Callable[[], None] | None = None,
) -> CompiledScript:
    """Compiles a tree for an engine.

    `program` is given for the text of `eval`, which may call the functions of its script;
    `by_name` keeps the script's own variables in its scope; `watch` is called now and then, to give
    up by an exception. Raises ParseError when the script is
    too large for Python's own compiler.
    """
    own = Program(source) if program is None else program
    namespace = _namespace()
    unit = Unit(engine, own, namespace)
    unit.watch = watch
    namespace["POSITIONS"] = unit.positions
    namespace["PROGRAM"] = own
    unit.keeps_globals = tree.defines
    codes: list[tuple[Function, Code]] = []
    for function in tree.functions:
        count = len(function.parameters)
        code = Code(function.name, count, unit.positions, function)
        codes.append((function, code))
        if function.receiver is None:
            own.functions[(function.name, count)] = code
        else:
            receiver = {"int": "i64", "float": "f64"}.get(function.receiver, function.receiver)
            own.typed[(function.name, count, receiver)] = code
    unit.names = frozenset(key[0] for key in own.functions) | frozenset(k[0] for k in own.typed)
    try:
        for function, code in codes:
            scope = function.scope
            body = BodyCompiler(unit, bool(scope.dynamic))
            body.optimised = optimise
            body.function(code, [], function.parameters, scope.blocks[0], function.body)
        dynamic = by_name or bool(tree.scope.dynamic)
        main = BodyCompiler(unit, dynamic)
        main.optimised = optimise
        entry = main.script(tree)
        _load(unit, namespace)
    except RecursionError:
        message = "Expression exceeds maximum complexity"
        raise ParseError("parse:ExprTooDeep", message, Position(1, 1)) from None
    if program is None:
        own.scoped = lambda code: _compile_scoped(unit, namespace, code, optimise)
    return CompiledScript(namespace[entry], own, unit, dynamic)


def _compile_scoped(
    unit: Unit, namespace: dict[str, Any], code: Code, optimise: bool
) -> Callable[..., Any]:
    """A function once more, to run among its caller's variables (`f!(…)`)."""
    if code.scoped is None:
        unit.functions, unit.codes = [], []
        body = BodyCompiler(unit, True)
        body.optimised = optimise
        node = code.node
        # the code object is only used for its name and positions here
        shadow = Code(code.name, code.parameters, code.positions, node)
        entry = body.function(
            shadow, [], node.parameters, node.scope.blocks[0], node.body, scoped=True
        )
        _load(unit, namespace)
        code.scoped = namespace[entry]
    return code.scoped


def _load(unit: Unit, namespace: dict[str, Any]) -> None:
    module = ast.Module(unit.functions, [])
    if unit.watch is not None:
        unit.watch()
    fix_locations(module)
    if unit.watch is not None:
        unit.watch()
    exec(compile(module, COMPILED_NAME, "exec"), namespace)
    for python, code in unit.codes:
        code.function = namespace[python]
