"""Compiles assignments to variables, `this` and chains (chapter 36 sections 6.5 and 7.4).

The right side comes first, then the indices of the target, then its root and steps.
"""

from __future__ import annotations

import ast

from conduit.rhai.compiler_chains import ChainCompiler, Way, start_position
from conduit.rhai.compiler_emit import (
    Val,
    assign,
    call,
    choose,
    constant,
    is_none,
    is_type,
    name,
    target,
)
from conduit.rhai.compiler_variables import Place
from conduit.rhai.nodes import (
    Assign,
    Binary,
    Chain,
    Expression,
    IndexStep,
    PropertyStep,
    Step,
    This,
    Variable,
)


class AssignmentCompiler(ChainCompiler):
    """Assignments."""

    def assignment(self, node: Assign) -> None:
        """An assignment statement."""
        self.count(2)
        operator = node.operator[:-1]
        if isinstance(node.target, Chain):
            self._assign_chain(node, node.target, operator)
            return
        line = self.unit.line(node.position)
        if isinstance(node.target, This):
            value = self.simple(self.owned(node.value))
            at = self.unit.line(node.target.position)
            if operator:
                old = call("private", name("st"), call("read_this", name("this"), line=at))
                new = self._assigned(operator, Val(self.held(old), None, "temp"), value, line)
                value = Val(new)
            self.add(ast.Expr(call("set_this", name("this"), value.node, line=at)))
            return
        assert isinstance(node.target, Variable)
        variable = node.target
        if self.optimised and not operator:
            rest = _self_operation(variable, node.value)
            if rest is not None:
                operator, right = rest
                self._assign_operation(variable, operator, right, line)
                return
        if operator:
            self._assign_operation(variable, operator, node.value, line)
            return
        self.write(variable, self.owned(node.value).node)

    def _assign_operation(
        self, variable: Variable, operator: str, right: Expression, line: int
    ) -> None:
        value = self.owned(right)
        place = self.place(variable)
        if place.kind == "local":
            info = variable.info
            known = info.type if info is not None else None
            old = Val(place.node, known, "local")
            self.add(assign(place.name, self._assigned(operator, old, value, line)))
            return
        value = self.simple(value)
        box = self.box_of(place)
        at = self.unit.line(variable.position)
        label = constant(variable.name)
        old_value = call("open_for_change", name("st"), box, label, line=at)
        new = self._assigned(operator, Val(self.held(old_value), None, "temp"), value, line)
        stored = ast.Attribute(box, "value", ast.Store())
        self.add(ast.Assign([stored], new))

    def _assigned(self, operator: str, old: Val, value: Val, line: int) -> ast.expr:
        """What `op=` makes of the old value."""
        general = self.unit.constant(self.unit.engine.assigning(operator))
        if operator not in ("+", "-", "*", "&", "|", "^") or not (
            old.type in ("int", None) and value.type in ("int", None)
        ):
            return self._general_assign(general, old, value, line)
        python: dict[str, ast.operator] = {
            "+": ast.Add(),
            "-": ast.Sub(),
            "*": ast.Mult(),
            "&": ast.BitAnd(),
            "|": ast.BitOr(),
            "^": ast.BitXor(),
        }
        value = self.simple(value)
        tests: list[ast.expr] = []
        if old.type is None:
            tests.append(is_type(old.node, "int"))
        if value.type is None:
            tests.append(is_type(value.node, "int"))
        result: ast.expr = ast.BinOp(old.node, python[operator], value.node)
        if operator in ("+", "-", "*"):
            temp = self.temp()
            bounded = ast.NamedExpr(target(temp), result)
            low, high = constant(-(2**63)), constant(2**63 - 1)
            tests.append(ast.Compare(low, [ast.LtE(), ast.LtE()], [bounded, high]))
            result = name(temp)
        if not tests:
            return result
        otherwise = self._general_assign(general, old, value, line)
        return choose(
            ast.BoolOp(ast.And(), tests) if len(tests) > 1 else tests[0], result, otherwise
        )

    def _general_assign(self, general: str, old: Val, value: Val, line: int) -> ast.expr:
        before = old.node
        if old.form == "local" and old.type not in ("int", "float", "bool", "str"):
            before = call("private", name("st"), before)
        return call(general, name("st"), before, value.node, line=line)

    def _assign_chain(self, node: Assign, chain: Chain, operator: str) -> None:
        value = self.owned(node.value)
        if value.form != "const":
            value = Val(self.held(value.node), value.type, "temp", True)
        arguments = self.arguments(chain.steps)
        self.hold_arguments(arguments)
        self.count(len(chain.steps))
        place = self.root_place(chain.root)
        current = self.enter(chain, place, False, True)
        ways: list[Way] = []
        saved = self.body
        steps = chain.steps
        for step, values in zip(steps, arguments, strict=True):
            if step.optional:
                inner: list[ast.stmt] = []
                test = ast.UnaryOp(ast.Not(), is_none(name(current)))
                self.add(ast.If(test, inner, []))
                self.body = inner
            if step is steps[-1]:
                break
            item = self.temp()
            key, fetch = self.fetch(step, current, values)
            self.add(assign(item, fetch))
            ways.append(Way(current, step, key, item))
            current = item
        self._set(node, steps[-1], arguments[-1], current, operator, value, place)
        self.put_back(place, ways, current)
        self.body = saved

    def _set(
        self,
        node: Assign,
        step: Step,
        values: list[Val],
        current: str,
        operator: str,
        value: Val,
        place: Place,
    ) -> None:
        new = value.node
        st = name("st")
        if operator:
            key, fetch = self.fetch(step, current, values)
            old = Val(self.held(fetch), None, "temp")
            line = self.unit.line(node.position)
            new = self._assigned(operator, old, value, line)
        label = constant(place.label)
        assert isinstance(node.target, Chain)
        root_at = node.target.root.position
        if isinstance(step, IndexStep):
            index_at = start_position(step.index)
            line = self.unit.line(node.position, step.position, index_at, root_at)
            action = call(
                "set_index", st, name(current), values[0].node, new, place.const, label, line=line
            )
        else:
            assert isinstance(step, PropertyStep)
            line = self.unit.line(node.position, step.position, root_at)
            key = constant(step.name)
            action = call(
                "set_property", st, name(current), key, new, place.const, label, line=line
            )
        self.add(assign(current, action))


def _self_operation(variable: Variable, value: Expression) -> tuple[str, Expression] | None:
    """Operator and right side when `x = value` has the form `x = x op e`."""
    if not isinstance(value, Binary) or value.operator not in (
        "+", "-", "*", "/", "%", "**", "<<", ">>", "&", "|", "^"
    ):  # fmt: skip
        return None
    left = value.left
    if isinstance(left, Variable) and left.name == variable.name:
        return value.operator, value.right
    return None
