"""Building blocks of the compiler: Python syntax nodes, names, positions and operation counts.

Scripts become Python syntax trees, never Python text: names of the script do not occur in them,
and values other than plain ones are entries of the globals of the compiled code. The line number
of a node is no line but an index into a table of script positions, which is how an error finds its
place at no cost while nothing fails (chapter 36 section 22).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from conduit.rhai.calls import Code, Positions, Program, Site
from conduit.rhai.errors import Position
from conduit.rhai.properties import PropertySite
from conduit.rhai.values import I64_MAX, I64_MIN
from conduit.rhai.variable_info import VarInfo

if TYPE_CHECKING:
    from conduit.rhai.engine import Engine

#: What a value expression may be: see `Val.form`.
SCALARS = frozenset({"int", "float", "bool", "str", "char", "unit", "fn", "range"})


class Val:
    """A compiled value.

    `type` is what is known of its type. `form` is ``const`` or ``temp`` (may be repeated at will),
    ``local`` (a Python variable that statements may change), ``cell`` (the content of a box that
    calls may change) or ``expr``. `fresh` says that nobody else holds the value.
    """

    __slots__ = ("form", "fresh", "node", "type")

    def __init__(
        self, node: ast.expr, type: str | None = None, form: str = "expr", fresh: bool = False
    ) -> None:
        self.node = node
        self.type = type
        self.form = form
        self.fresh = fresh


def name(identifier: str) -> ast.Name:
    """A variable, read."""
    return ast.Name(identifier, ast.Load())


def target(identifier: str) -> ast.Name:
    """A variable, written."""
    return ast.Name(identifier, ast.Store())


def constant(value: Any) -> ast.Constant:
    """A literal."""
    return ast.Constant(value)


def attribute(node: ast.expr, field: str) -> ast.Attribute:
    """`node.field`, read."""
    return ast.Attribute(node, field, ast.Load())


def call(function: str | ast.expr, *arguments: ast.expr, line: int = 0) -> ast.Call:
    """`function(arguments)`; `line` is an index into the positions, 0 for none."""
    callee = name(function) if isinstance(function, str) else function
    node = ast.Call(callee, list(arguments), [])
    if line:
        node.lineno = node.end_lineno = line
        node.col_offset = node.end_col_offset = 0
    return node


def assign(identifier: str, value: ast.expr) -> ast.Assign:
    """`identifier = value`."""
    return ast.Assign([target(identifier)], value)


def walrus(identifier: str, value: ast.expr) -> ast.NamedExpr:
    """`(identifier := value)`."""
    return ast.NamedExpr(target(identifier), value)


def compare(left: ast.expr, operator: ast.cmpop, right: ast.expr) -> ast.Compare:
    """`left operator right`."""
    return ast.Compare(left, [operator], [right])


def is_type(node: ast.expr, type_name: str) -> ast.Compare:
    """`type(node) is type_name`."""
    return compare(call("type", node), ast.Is(), name(type_name))


def is_none(node: ast.expr) -> ast.Compare:
    """`node is None`."""
    return compare(node, ast.Is(), constant(None))


def both(*tests: ast.expr) -> ast.expr:
    """All of the tests."""
    return tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), list(tests))


def choose(test: ast.expr, then: ast.expr, otherwise: ast.expr) -> ast.IfExp:
    """`then if test else otherwise`."""
    return ast.IfExp(test, then, otherwise)


def in_i64(node: ast.expr) -> ast.Compare:
    """`MIN <= node <= MAX`."""
    return ast.Compare(constant(I64_MIN), [ast.LtE(), ast.LtE()], [node, constant(I64_MAX)])


def in_tuple(*items: ast.expr) -> ast.Tuple:
    """A tuple display."""
    return ast.Tuple(list(items), ast.Load())


class Unit:
    """What all bodies of one compiled text share."""

    def __init__(self, engine: Engine, program: Program, namespace: dict[str, Any]) -> None:
        self.engine = engine
        self.program = program
        self.globals = namespace
        self.positions: Positions = []
        self._lines: dict[tuple[Position | None, ...], int] = {}
        self._numbers = 0
        self.functions: list[ast.stmt] = []
        self.codes: list[tuple[str, Code]] = []
        #: Names of script functions, whatever their number of parameters.
        self.names: frozenset[str] = frozenset()
        #: `global::X` exists only beside a function or closure.
        self.keeps_globals = False
        self.watch: Callable[[], None] | None = None
        self._watched = 0

    def step(self) -> None:
        """One more node compiled."""
        self._watched += 1
        if self._watched & 63 == 0 and self.watch is not None:
            self.watch()

    def line(self, *positions: Position | None) -> int:
        """The index of these alternatives in the table of positions."""
        index = self._lines.get(positions)
        if index is None:
            self.positions.append(positions)
            index = self._lines[positions] = len(self.positions)
        return index

    def number(self) -> int:
        """A number not given before."""
        self._numbers += 1
        return self._numbers

    def constant(self, value: Any) -> str:
        """The global name of a value."""
        identifier = f"k{self.number()}"
        self.globals[identifier] = value
        return identifier

    def site(self, function: str, count: int) -> ast.Name:
        """A new place of call."""
        return name(self.constant(Site(function, count, self.program)))

    def property_site(self, property_name: str) -> ast.Name:
        """A new place where a property is read."""
        return name(self.constant(PropertySite(property_name)))


class BodyBase:
    """One Python function under construction."""

    def __init__(self, unit: Unit, dynamic: bool) -> None:
        self.unit = unit
        self.dynamic = dynamic
        self.body: list[ast.stmt] = []
        self._cost = 0
        #: The name bound to the size of the scope where each open block began (dynamic bodies).
        self.marks: list[str] = []
        self.loops: list[Any] = []
        self.optimised = True
        self.is_script = False

    def add(self, statement: ast.stmt) -> None:
        """Appends a statement."""
        self.body.append(statement)

    def temp(self) -> str:
        """A new variable."""
        return f"t{self.unit.number()}"

    def held(self, node: ast.expr) -> ast.Name:
        """The value in a new variable."""
        identifier = self.temp()
        self.add(assign(identifier, node))
        return name(identifier)

    def variable(self, info: VarInfo) -> str:
        """The Python name of a variable of the script."""
        if not info.python:
            info.python = f"v{self.unit.number()}"
        return info.python

    @contextmanager
    def into(self, statements: list[ast.stmt]) -> Iterator[None]:
        """Statements go there meanwhile."""
        saved = self.body
        self.body = statements
        try:
            yield
        finally:
            self.body = saved

    def count(self, operations: int = 1) -> None:
        """Counts operations of the current run of code."""
        self._cost += operations
        self.unit.step()

    @contextmanager
    def counted(self, position: Position | None, check: bool) -> Iterator[None]:
        """Emits the count for what is compiled inside; with `check` the limits are looked at."""
        saved = self._cost
        self._cost = 0
        amount = ast.Constant(0)
        if check:
            line = self.unit.line(position)
            self.add(
                ast.Assign(
                    [target("n"), ast.Attribute(name("st"), "n", ast.Store())],
                    ast.BinOp(attribute(name("st"), "n"), ast.Sub(), amount),
                )
            )
            test = compare(name("n"), ast.Lt(), constant(0))
            action = call(attribute(name("st"), "check"), line=line)
            self.add(ast.If(test, [ast.Expr(action)], []))
        else:
            place = ast.Attribute(name("st"), "n", ast.Store())
            self.add(ast.AugAssign(place, ast.Sub(), amount))
        try:
            yield
        finally:
            amount.value = max(1, self._cost)
            self._cost = saved


def fix_locations(module: ast.Module) -> None:
    """Gives every node without a line that of its parent; without recursion."""
    stack: list[tuple[ast.AST, int]] = [(module, 1)]
    while stack:
        node, line = stack.pop()
        if isinstance(node, ast.expr | ast.stmt | ast.excepthandler | ast.arg):
            own = getattr(node, "lineno", 0)
            if own:
                line = own
            else:
                node.lineno = node.end_lineno = line
                node.col_offset = node.end_col_offset = 0
        for field in node._fields:
            value = getattr(node, field, None)
            if isinstance(value, list):
                stack.extend([(item, line) for item in value if isinstance(item, ast.AST)])
            elif isinstance(value, ast.AST):
                stack.append((value, line))
