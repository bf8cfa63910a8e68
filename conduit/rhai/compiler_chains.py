"""Compiles chains `a.b[i].m(x)` and assignments (chapter 36 section 7).

All indices and arguments come first, then the root, then the steps. Where a method may change its
receiver, every container on the way to it is made private to its holder, and what came of the
receiver is put back along the same way.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from conduit.rhai.compiler_emit import (
    Val,
    assign,
    attribute,
    call,
    choose,
    constant,
    is_type,
    name,
    target,
)
from conduit.rhai.compiler_expressions import ExpressionCompiler
from conduit.rhai.compiler_variables import Place
from conduit.rhai.errors import Position
from conduit.rhai.nodes import (
    Binary,
    Chain,
    Expression,
    IndexStep,
    MethodStep,
    PropertyStep,
    Step,
    This,
    Variable,
)

_SIMPLE = frozenset({"const", "temp", "local"})


def start_position(node: Expression) -> Position:
    """Where an index expression begins, as index errors report it."""
    while True:
        if isinstance(node, Binary) and node.operator not in ("..", "..="):
            node = node.left
        elif isinstance(node, Chain):
            node = node.root
        else:
            return node.position


@dataclass(slots=True)
class Way:
    """One step from a container to what it holds: for putting back."""

    holder: str
    step: Step
    key: ast.expr
    item: str


class ChainCompiler(ExpressionCompiler):
    """Chains and assignments."""

    # What the steps need

    def arguments(self, steps: list[Step]) -> list[list[Val]]:
        """The index or arguments of each step, evaluated in order."""
        nodes: list[Expression] = []
        for step in steps:
            if isinstance(step, IndexStep):
                nodes.append(step.index)
            elif isinstance(step, MethodStep):
                nodes.extend(step.arguments)
        values = iter(self.operands(nodes, own=True))
        result: list[list[Val]] = []
        for step in steps:
            count = 0
            if isinstance(step, IndexStep):
                count = 1
            elif isinstance(step, MethodStep):
                count = len(step.arguments)
            result.append([next(values) for _ in range(count)])
        return result

    def hold_arguments(self, arguments: list[list[Val]]) -> None:
        for values in arguments:
            for i, value in enumerate(values):
                if value.form not in _SIMPLE:
                    values[i] = Val(self.held(value.node), value.type, "temp", True)

    def _changes(self, step: Step, constant_root: bool) -> int:
        """Whether a step may change its receiver: 0 no, 1 a native may, 2 script code may."""
        if not isinstance(step, MethodStep):
            return 0
        method, count = step.name, len(step.arguments)
        if method == "call":
            return 2
        if method in ("curry", "is_shared"):
            return 0
        program = self.unit.program
        if (method, count) in program.functions or any(
            key[0] == method and key[1] == count for key in program.typed
        ):
            return 2
        natives = self.unit.engine.natives_named(method)
        if not natives:
            return 2
        if any(native.mode for native in natives):
            return 1
        if constant_root and not all(native.pure for native in natives):
            return 1
        return 0

    def root_place(self, node: Expression) -> Place:
        """Where the root of a chain lives."""
        if isinstance(node, Variable):
            self.count()
            return self.place(node)
        if isinstance(node, This):
            line = self.unit.line(node.position)
            self.add(ast.Expr(call("read_this", name("this"), line=line)))
            return Place("cell", name("this"), attribute(name("this"), "const"))
        value = self.expression(node)
        return Place("value", self.keep(value).node, constant(False))

    # Reading

    def chain(self, node: Chain) -> Val:
        """A chain as a value."""
        steps = node.steps
        if len(steps) == 1 and isinstance(steps[0], MethodStep):
            special = self._is_shared(node, steps[0])
            if special is not None:
                return special
        arguments = self.arguments(steps)
        self.count(len(steps))
        maybe_constant = isinstance(node.root, Variable | This)
        changes = [self._changes(step, maybe_constant) for step in steps]
        plain_root = isinstance(node.root, Variable) and not self.dynamic
        if not (plain_root and self._is_local(node.root)):
            self.hold_arguments(arguments)
        optional = any(step.optional for step in steps)
        if not any(changes) and not optional and not self._needs_lock(node):
            return self._plain(node, arguments)
        self.hold_arguments(arguments)
        return self._careful(node, arguments, changes)

    def _is_local(self, node: Expression) -> bool:
        if not isinstance(node, Variable) or node.info is None:
            return False
        return node.info.kind == "local" and not node.info.captured

    def _needs_lock(self, node: Chain) -> bool:
        """Whether calls of the chain could reach the shared variable at its root."""
        if not isinstance(node.root, Variable) or node.root.info is None:
            return False
        info = node.root.info
        if not (self.dynamic or info.captured or info.kind == "capture"):
            return False
        return any(isinstance(step, MethodStep) and step.arguments for step in node.steps)

    def _plain(self, node: Chain, arguments: list[list[Val]]) -> Val:
        """A chain in which nothing can change: one expression."""
        value = self._root_value(node.root)
        form = "cell" if value.form == "cell" else "expr"
        for step, values in zip(node.steps, arguments, strict=True):
            fresh = isinstance(step, MethodStep)
            value = Val(self._step(step, value, values), None, form, fresh)
        return value

    def _root_value(self, node: Expression) -> Val:
        if isinstance(node, Variable) and node.info is not None and node.info.literal is None:
            return self.expression(node)
        if isinstance(node, Variable):
            place = self.root_place(node)
            if place.kind == "cell":
                return Val(attribute(place.node, "value"), None, "cell")
            return Val(place.node, None, "local")
        return self.expression(node)

    def _step(self, step: Step, value: Val, values: list[Val]) -> ast.expr:
        """One step without effect on what it starts from."""
        st = name("st")
        if isinstance(step, IndexStep):
            line = self.unit.line(start_position(step.index), step.position)
            return call("get_index", st, value.node, values[0].node, line=line)
        if isinstance(step, PropertyStep):
            line = self.unit.line(step.position)
            site = self.unit.property_site(step.name)
            general = call("read_property", st, site, value.node, line=line)
            if value.form not in _SIMPLE:
                return general
            found = call(attribute(value.node, "get"), constant(step.name))
            return choose(is_type(value.node, "Map"), found, general)
        line = self.unit.line(step.position)
        nodes = [item.node for item in values]
        if step.name == "curry":
            return call("curry", st, value.node, *nodes, line=line)
        if step.name == "is_shared":
            return constant(False)
        site = self.unit.site(step.name, len(nodes))
        return call("call_pure", st, site, value.node, *nodes, line=line)

    def _careful(self, node: Chain, arguments: list[list[Val]], changes: list[int]) -> Val:
        """A chain with methods that may change things, locks or `?.`, as statements."""
        result = self.temp()
        if any(step.optional for step in node.steps):
            self.add(assign(result, constant(None)))
        place = self.root_place(node.root)
        has_calls = any(isinstance(step, MethodStep) for step in node.steps)
        if place.kind == "cell" and place.shared and has_calls:
            at = self.unit.line(node.root.position)
            lock = call("lock", name("st"), place.node, constant(place.label), line=at)
            self.add(ast.Expr(lock))
            body: list[ast.stmt] = []
            with self.into(body):
                self._walk(node, place, arguments, changes, result, checked=True)
            unlock = ast.Assign([ast.Attribute(place.node, "locked", ast.Store())], constant(False))
            self.add(ast.Try(body, [], [], [unlock]))
        else:
            self._walk(node, place, arguments, changes, result, checked=False)
        fresh = isinstance(node.steps[-1], MethodStep)
        return Val(name(result), None, "temp" if fresh else "cell", fresh)

    def _is_shared(self, node: Chain, step: MethodStep) -> Val | None:
        if step.name != "is_shared" or step.arguments or not isinstance(node.root, Variable):
            return None
        place = self.place(node.root)
        if place.kind != "cell":
            return Val(constant(False), "bool", "const", True)
        return Val(attribute(place.node, "shared"), "bool", "expr", True)

    def _walk(
        self,
        node: Chain,
        place: Place,
        arguments: list[list[Val]],
        changes: list[int],
        result: str,
        checked: bool,
    ) -> None:
        last_change = max((i for i, change in enumerate(changes) if change), default=-1)
        ways: list[Way] = []
        root: Place | None = place
        current = self.enter(node, place, checked, last_change > 0)
        const = place.const
        saved = self.body
        for i, (step, values) in enumerate(zip(node.steps, arguments, strict=True)):
            if step.optional:
                inner: list[ast.stmt] = []
                test = ast.Compare(name(current), [ast.IsNot()], [constant(None)])
                self.add(ast.If(test, inner, []))
                self.body = inner
            if isinstance(step, MethodStep):
                outcome = self.temp()
                if changes[i]:
                    self._change(
                        step, values, current, const, root, ways, outcome, changes[i], place
                    )
                else:
                    self.add(assign(outcome, self._step(step, Val(name(current)), values)))
                current, ways, root, const = outcome, [], None, constant(False)
            elif i < last_change:
                item = self.temp()
                key, fetch = self.fetch(step, current, values)
                self.add(assign(item, fetch))
                ways.append(Way(current, step, key, item))
                current = item
            else:
                item = self.temp()
                self.add(assign(item, self._step(step, Val(name(current), form="temp"), values)))
                current = item
        self.add(assign(result, name(current)))
        self.body = saved

    def enter(self, node: Chain, place: Place, checked: bool, changing: bool) -> str:
        """The Python variable with the value of the root; private if steps lead to a change."""
        if place.kind == "local":
            if changing:
                self.add(assign(place.name, call("private", name("st"), place.node)))
            return place.name
        current = self.temp()
        if place.kind == "value":
            self.add(assign(current, place.node))
            if changing:
                self.add(assign(current, call("private", name("st"), name(current))))
            return current
        content: ast.expr = attribute(place.node, "value")
        if not checked and not isinstance(node.root, This):
            content = self.open_box(place.node, place.label, self.unit.line(node.root.position))
        if changing:
            content = call("private", name("st"), content)
            box = ast.Attribute(place.node, "value", ast.Store())
            self.add(ast.Assign([target(current), box], content))
        else:
            self.add(assign(current, content))
        return current

    def fetch(self, step: Step, current: str, values: list[Val]) -> tuple[ast.expr, ast.expr]:
        st = name("st")
        if isinstance(step, IndexStep):
            line = self.unit.line(start_position(step.index), step.position)
            key = values[0].node
            return key, call("fetch_index", st, name(current), key, line=line)
        assert isinstance(step, PropertyStep)
        key = constant(step.name)
        line = self.unit.line(step.position)
        return key, call("fetch_property", st, name(current), key, line=line)

    def _change(
        self,
        step: MethodStep,
        values: list[Val],
        current: str,
        const: ast.expr,
        root: Place | None,
        ways: list[Way],
        outcome: str,
        change: int,
        place: Place,
    ) -> None:
        """Calls a method that may change its receiver, and puts back what became of it."""
        nodes = [value.node for value in values]
        site = self.unit.site(step.name, len(nodes))
        st = name("st")
        direct = root is not None and not ways and root.kind == "cell"
        if change == 1:
            line = self.unit.line(step.position)
            action = call("call_method", st, site, name(current), const, *nodes, line=line)
            pair = ast.Tuple([target(current), target(outcome)], ast.Store())
            self.add(ast.Assign([pair], action))
            self.put_back(root, ways, current)
            return
        positions = [step.position]
        if step.name == "call" and step.arguments:
            positions.append(step.arguments[0].position)
        line = self.unit.line(*positions)
        function = "pointer_method" if step.name == "call" else "call_with_this"
        if direct:
            self.add(assign(outcome, call(function, st, site, place.node, *nodes, line=line)))
            return
        box = self.temp()
        self.add(assign(box, call("Cell", name(current), const)))
        attempt: list[ast.stmt] = [
            assign(outcome, call(function, st, site, name(box), *nodes, line=line))
        ]
        after: list[ast.stmt] = []
        with self.into(after):
            self.add(assign(current, attribute(name(box), "value")))
            self.put_back(root, ways, current)
        self.add(ast.Try(attempt, [], [], after))

    def put_back(self, root: Place | None, ways: list[Way], current: str) -> None:
        st = name("st")
        for way in reversed(ways):
            function = "put_back_index" if isinstance(way.step, IndexStep) else "put_back_property"
            action = call(function, st, name(way.holder), way.key, name(way.item))
            self.add(assign(way.holder, action))
        if root is not None and root.kind == "cell":
            first = ways[0].holder if ways else current
            box = ast.Attribute(root.node, "value", ast.Store())
            self.add(ast.Assign([box], name(first)))
