"""Compiles reading and writing of variables, which live as Python locals, in boxes, or by name.

Plain variables are Python locals. One that a closure captures is a box (`Cell`) from its `let` on.
A body with `eval` and the like keeps all its variables by name in a `Scope` called `env`.
"""

from __future__ import annotations

import ast
from typing import Any

from conduit.rhai.compiler_emit import (
    SCALARS,
    BodyBase,
    Val,
    assign,
    attribute,
    call,
    choose,
    constant,
    name,
)
from conduit.rhai.errors import Position
from conduit.rhai.nodes import (
    ArrayLiteral,
    Expression,
    Literal,
    MapLiteral,
    Variable,
)
from conduit.rhai.values import Array, Char, FnPtr, Map
from conduit.rhai.variable_info import VarInfo


class Place:
    """Where the root of a chain or the target of an assignment lives.

    `kind` is ``local`` (Python variable `name`), ``cell`` (`node` is the box) or ``value``
    (`node` is just a value). `const` is an expression for whether it is constant; `label` the name
    for messages; `shared` whether other code may hold the box.
    """

    __slots__ = ("const", "kind", "label", "name", "node", "shared")

    def __init__(
        self,
        kind: str,
        node: ast.expr,
        const: ast.expr,
        label: str = "",
        name: str = "",
        shared: bool = False,
    ) -> None:
        self.kind = kind
        self.node = node
        self.const = const
        self.label = label
        self.name = name
        self.shared = shared


def literal_value(node: Expression) -> Any:
    """The value of a node for which `is_constant` holds."""
    if isinstance(node, Literal):
        return node.value
    if isinstance(node, ArrayLiteral):
        result = Array([literal_value(item) for item in node.items])
        result.nested = sum(
            len(item) + item.nested for item in result if type(item) in (Array, Map)
        )
        return result
    assert isinstance(node, MapLiteral)
    entries = Map({key: literal_value(item) for key, item in node.items})
    entries.nested = sum(
        len(item) + item.nested for item in entries.values() if type(item) in (Array, Map)
    )
    return entries


_TYPES = {int: "int", float: "float", bool: "bool", str: "str", Char: "char", type(None): "unit"}


class VariableCompiler(BodyBase):
    """Access to variables."""

    def literal(self, node: Expression) -> Val:
        """A constant."""
        value = literal_value(node)
        kind = type(value)
        if kind is float and (value != value or value in (float("inf"), float("-inf"))):
            return Val(name(self.unit.constant(value)), "float", "const", True)
        if kind in (int, float, bool, str, type(None)):
            return Val(constant(value), _TYPES[kind], "const", True)
        if kind is Char:
            return Val(name(self.unit.constant(value)), "char", "const", True)
        # shared for ever, so that a holder copies it before a change
        value.frozen = True
        return Val(name(self.unit.constant(value)), None, "const", True)

    def read(self, node: Variable) -> Val:
        """The value of a variable, not yet shared."""
        info = node.info
        line = self.unit.line(node.position)
        if self.dynamic:
            if node.name in self.unit.names and not self._declared(info):
                return self.pointer_to(node.name)
            box = self.box_by_name(node.name)
            return Val(self.open_box(box, node.name, line), None, "cell")
        assert info is not None
        if info.literal is not None and self.optimised:
            return self.literal(info.literal)
        if info.kind == "local":
            identifier = self.variable(info)
            if not info.captured:
                return Val(name(identifier), info.type, "local", info.type in SCALARS)
            return Val(self.open_box(name(identifier), node.name, line), None, "cell")
        if node.name in self.unit.names:
            source = info
            while source.source is not None:
                source = source.source
            if source.kind != "local":
                return self.pointer_to(node.name)
        if info.kind == "unknown":
            return Val(call("undefined", name("st"), constant(node.name), line=line), None)
        return Val(self.open_box(name(self.variable(info)), node.name, line), None, "cell")

    @staticmethod
    def _declared(info: VarInfo | None) -> bool:
        while info is not None and info.source is not None:
            info = info.source
        return info is not None and info.kind == "local"

    def pointer_to(self, function: str) -> Val:
        """A script function's name as a value."""
        return Val(name(self.unit.constant(FnPtr(function))), "fn", "const", True)

    def open_box(self, box: ast.expr, label: str, line: int) -> ast.expr:
        """The content of a box, unless it is locked."""
        if not isinstance(box, ast.Name):
            box = self.held(box)
        locked = call("locked_read", name("st"), box, constant(label), line=line)
        return choose(attribute(box, "locked"), locked, attribute(box, "value"))

    def box_by_name(self, variable: str) -> ast.expr:
        """The box of a variable of a body that keeps them by name."""
        return self.held(call(attribute(name("env"), "cell"), constant(variable)))

    def box(self, info: VarInfo, variable: str) -> ast.expr | None:
        """The box of a variable, None if it has none."""
        if self.dynamic:
            return self.box_by_name(variable)
        if info.kind == "unknown":
            return name("MISSING")
        if info.kind == "local" and not info.captured:
            return None
        return name(self.variable(info))

    def place(self, node: Variable) -> Place:
        """Where a variable lives, as the root of a chain or target of an assignment."""
        info = node.info
        assert info is not None
        if not self.dynamic and info.kind == "capture" and info.literal is not None:
            value = self.literal(info.literal)
            return Place("value", value.node, constant(True), node.name)
        if node.name in self.unit.names and not self._declared(info):
            return Place("value", self.pointer_to(node.name).node, constant(False))
        box = self.box(info, node.name)
        if box is None:
            identifier = self.variable(info)
            return Place("local", name(identifier), constant(info.const), node.name, identifier)
        shared = self.dynamic or info.captured or info.kind == "capture"
        return Place("cell", box, attribute(box, "const"), node.name, shared=shared)

    def declare(
        self,
        info: VarInfo | None,
        variable: str,
        value: ast.expr,
        const: bool,
        count: int,
        position: Position,
    ) -> None:
        """`let` and `const`."""
        assert info is not None
        line = self.unit.line(position)
        if self.dynamic:
            start = name(self.marks[-1]) if self.marks else constant(0)
            arguments = (name("st"), constant(variable), value, constant(const), start)
            action = call(attribute(name("env"), "declare"), *arguments, line=line)
            self.add(ast.Expr(action))
            return
        if info.captured:
            value = call("Cell", value, constant(const))
        self.add(assign(self.variable(info), value))
        if self.unit.engine.limits.max_variables is not None:
            room = call("variable_room", name("st"), constant(count), line=line)
            self.add(ast.Expr(room))

    @staticmethod
    def box_of(place: Place) -> ast.expr:
        """The box to assign to; what is no variable has one that refuses."""
        if place.kind == "cell":
            return place.node
        is_const = isinstance(place.const, ast.Constant) and place.const.value
        return name("CONSTANT" if is_const else "MISSING")

    def write(self, node: Variable, value: ast.expr) -> None:
        """`node = value`."""
        info = node.info
        assert info is not None
        place = self.place(node)
        if place.kind == "local":
            self.add(assign(place.name, value))
            return
        box = self.box_of(place)
        at = self.unit.line(node.position)
        self.add(ast.Expr(call("set_cell", name("st"), box, value, constant(node.name), line=at)))
