"""Compiles calls by name, the special functions of the language and closures."""

from __future__ import annotations

import ast

from conduit.rhai.calls import Code
from conduit.rhai.compiler_assignments import AssignmentCompiler
from conduit.rhai.compiler_emit import Val, attribute, call, constant, in_tuple, name, target
from conduit.rhai.compiler_variables import Place
from conduit.rhai.nodes import Binary, Call, Closure, Expression, Literal, This, Variable
from conduit.rhai.tokens import words
from conduit.rhai.variable_info import VarInfo

_SPECIAL = frozenset(words("print debug eval Fn call curry is_shared is_def_var is_def_fn"))
_SIMPLE = frozenset({"const", "temp", "local"})


class CallCompiler(AssignmentCompiler):
    """Calls and closures."""

    def function_call(self, node: Call) -> Val:
        """`f(a)`, `m::f(a)`, `f!(a)`."""
        self.count()
        line = self.unit.line(node.position)
        st = name("st")
        if node.path:
            values = self.operands(node.arguments, own=True)
            nodes = [value.node for value in values]
            path, function = constant(node.path), constant(node.name)
            action = call("call_qualified", st, path, function, *nodes, line=line)
            return Val(action, None, "expr", True)
        if node.in_scope:
            values = self.operands(node.arguments, own=True)
            nodes = [value.node for value in values]
            program = name("PROGRAM")
            action = call(
                "call_in_scope", st, name("env"), program, constant(node.name), *nodes, line=line
            )
            return Val(self.held(action), None, "temp", True)
        if node.name in _SPECIAL:
            return self._special(node, line)
        code = self.unit.program.functions.get((node.name, len(node.arguments)))
        if code is not None:
            values = self.operands(node.arguments, own=True)
            target_code = attribute(name(self.unit.constant(code)), "function")
            nodes = [value.node for value in values]
            return Val(call(target_code, st, constant(None), *nodes, line=line), None, "expr", True)
        return self._native(node, line)

    def _native(self, node: Call, line: int) -> Val:
        st = name("st")
        count = len(node.arguments)
        site = self.unit.site(node.name, count)
        natives = self.unit.engine.natives_named(node.name)
        if node.arguments and any(native.mode for native in natives):
            place = self._by_reference(node.arguments[0])
            if place is not None:
                rest = self.operands(node.arguments[1:], own=True)
                nodes = [value.node for value in rest]
                if place.kind == "local":
                    outcome = self.temp()
                    function = "call_on_variable"
                    action = call(function, st, site, place.node, *nodes, line=line)
                    pair = ast.Tuple([target(place.name), target(outcome)], ast.Store())
                    self.add(ast.Assign([pair], action))
                    return Val(name(outcome), None, "temp", True)
                at = self.unit.line(node.arguments[0].position)
                if place.label:
                    self.open_check(place, at)
                action = call("call_on_cell", st, site, place.node, *nodes, line=line)
                return Val(self.held(action), None, "temp", True)
        values = self.operands(node.arguments, own=True)
        nodes = [value.node for value in values]
        return Val(call("call_native", st, site, *nodes, line=line), None, "expr", True)

    def open_check(self, place: Place, line: int) -> None:
        """Raises when a box is locked."""
        self.add(ast.Expr(self.open_box(place.node, place.label, line)))

    def _by_reference(self, node: Expression) -> Place | None:
        """Where the first argument of a native lives, if the native may change it there."""
        if isinstance(node, This):
            return self.root_place(node)
        if not isinstance(node, Variable) or node.info is None:
            return None
        place = self.place(node)
        if place.kind == "local":
            return None if node.info.const else place
        return place if place.kind == "cell" else None

    # Functions of the language itself

    def _special(self, node: Call, line: int) -> Val:
        st = name("st")
        arguments = node.arguments
        count = len(arguments)
        at = self.unit.line(arguments[0].position) if arguments else line
        if node.name == "is_shared" and count == 1:
            return self._is_shared_call(arguments[0])
        values = self.operands(arguments, own=True)
        nodes = [value.node for value in values]
        if node.name == "print" and count <= 1:
            return Val(self.held(call("print_text", st, *nodes, line=line)), "unit", "temp", True)
        if node.name == "debug" and count <= 1:
            line_number, column = node.position
            where = (constant(line_number), constant(column))
            action = call("debug_text", st, *where, *nodes, line=line)
            return Val(self.held(action), "unit", "temp", True)
        if node.name == "Fn" and count == 1:
            return Val(call("make_pointer", st, nodes[0], line=at), None, "expr", True)
        if node.name == "call" and count >= 1:
            place = self.unit.line(node.position, arguments[0].position)
            return Val(call("call_value", st, *nodes, line=place), None, "expr", True)
        if node.name == "curry" and count >= 2:
            place = self.unit.line(node.position, arguments[0].position)
            return Val(call("curry", st, *nodes, line=place), None, "expr", True)
        if node.name == "is_def_var" and count == 1:
            action = call("is_def_var", st, name("env"), nodes[0], line=at)
            return Val(self.held(action), "bool", "temp", True)
        if node.name == "is_def_fn" and count in (2, 3):
            return Val(call("is_def_fn", st, name("PROGRAM"), *nodes, line=at), None, "expr", True)
        if node.name == "eval" and count == 1:
            start = name(self.marks[-1]) if self.marks else constant(0)
            program = name("PROGRAM")
            action = call("evaluate", st, name("env"), program, start, nodes[0], line=at)
            return Val(self.held(action), None, "temp", True)
        site = self.unit.site(node.name, count)
        return Val(call("call_native", st, site, *nodes, line=line), None, "expr", True)

    def _is_shared_call(self, node: Expression) -> Val:
        if not isinstance(node, Variable):
            self.expression(node)
            return Val(constant(False), "bool", "const", True)
        value = self.read(node)
        place = self.place(node)
        if place.kind != "cell":
            return Val(constant(False), "bool", "const", True)
        self.add(ast.Expr(value.node))
        return Val(attribute(place.node, "shared"), "bool", "expr", True)

    def contains(self, node: Binary) -> Val:
        """`x in c` and `x !in c`."""
        item, container = self.operands([node.left, node.right], own=True)
        if item.form not in _SIMPLE:
            item = Val(self.held(item.node), item.type, "temp", True)
        line = self.unit.line(node.position)
        st = name("st")
        code = self.unit.program.functions.get(("contains", 2))
        sides = (container.node, item.node)
        if code is not None:
            function = attribute(name(self.unit.constant(code)), "function")
            found = call(function, st, constant(None), *sides, line=line)
        else:
            found = call("call_native", st, self.unit.site("contains", 2), *sides, line=line)
        if node.operator == "in":
            return Val(found, None, "expr", True)
        return Val(call("op_not", st, found, line=line), None, "expr", True)

    # Closures

    def closure(self, node: Closure) -> Val:
        """A closure expression: its code with the boxes of the variables it captures."""
        captures = [info for info in node.scope.captures.values() if self._is_captured(info)]
        number = self.unit.number()
        label = f"anon${number:016x}"
        code = Code(label, len(captures) + len(node.parameters), self.unit.positions, node)
        self.compile_closure(node, captures, code)
        boxes = [self._captured(info) for info in captures]
        identifier = self.unit.constant(code)
        value = call("make_closure", name(identifier), in_tuple(*boxes))
        return Val(value, "fn", "expr", True)

    def compile_closure(self, node: Closure, captures: list[VarInfo], code: Code) -> None:
        """Compiles the body of a closure into `code`."""
        raise NotImplementedError

    def _is_captured(self, info: VarInfo) -> bool:
        if info.literal is not None:
            return False
        source: VarInfo | None = info
        while source is not None and source.source is not None:
            source = source.source
        is_local = source is not None and source.kind == "local"
        return is_local or info.name not in self.unit.names

    def _captured(self, info: VarInfo) -> ast.expr:
        source = info.source
        assert source is not None
        box = self.box(source, info.name)
        if box is None:
            # captured after all: a variable of a body that was compiled without boxes
            box = call("Cell", name(self.variable(source)))
        line = self.unit.line(info.position)
        return call("captured", name("st"), box, constant(info.name), line=line)


def is_text_literal(node: Expression) -> bool:
    """Whether a node is a string literal."""
    return isinstance(node, Literal) and type(node.value) is str
