"""Writes a syntax tree as a script again, with every operand in parentheses."""

from __future__ import annotations

import math

from conduit.rhai.nodes import (
    ArrayLiteral,
    Assign,
    Binary,
    Block,
    Break,
    Call,
    Case,
    Chain,
    Closure,
    Continue,
    DoWhile,
    Empty,
    Export,
    Expression,
    ExpressionStatement,
    For,
    Function,
    If,
    Import,
    IndexStep,
    Let,
    Literal,
    MapLiteral,
    MethodStep,
    Return,
    Statement,
    StatementExpression,
    Step,
    Switch,
    Template,
    This,
    Throw,
    Tree,
    Try,
    Unary,
    Variable,
    While,
)
from conduit.rhai.values import Char

_JUMPS = (Break, Continue, Return, Throw)


def printed(tree: Tree) -> str:
    """The script of a tree; parsing it gives an equal tree."""
    return "\n".join(
        [*map(_function, tree.functions), *[f"{_statement(s)};" for s in tree.statements]]
    )


def _function(node: Function) -> str:
    private = "private " if node.private else ""
    receiver = "" if node.receiver is None else f"{_quoted(node.receiver)}."
    return f"{private}fn {receiver}{node.name}({', '.join(node.parameters)}) {_block(node.body)}"


def _block(node: Block) -> str:
    return "{ " + " ".join(f"{_statement(s)};" for s in node.statements) + " }"


def _quoted(text: str, quote: str = '"') -> str:
    return quote + "".join(_escaped(c) for c in text) + quote


def _escaped(character: str) -> str:
    if character in "\"'\\" or not character.isprintable():
        return f"\\U{ord(character):08x}"
    return character


def _literal(node: Literal) -> str:
    value = node.value
    if value is None:
        return "()"
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) is Char:
        return _quoted(value, "'")
    if type(value) is str:
        return _quoted(value)
    if type(value) is float and math.isinf(value):
        return "1e999" if value > 0 else "-1e999"
    return repr(value)


def _all(nodes: list[Expression]) -> str:
    return ", ".join(map(_operand, nodes))


def _operand(node: Expression) -> str:
    return f"({_expression(node)})"


def _expression(node: Expression) -> str:
    if isinstance(node, Literal):
        return _literal(node)
    if isinstance(node, ArrayLiteral):
        return f"[{_all(node.items)}]"
    if isinstance(node, MapLiteral):
        return "#{" + ", ".join(f"{_quoted(k)}: {_operand(v)}" for k, v in node.items) + "}"
    if isinstance(node, Template):
        return _template(node)
    if isinstance(node, Variable):
        return node.name
    if isinstance(node, This):
        return "this"
    if isinstance(node, Call):
        mark = "!" if node.in_scope else ""
        return f"{'::'.join((*node.path, node.name))}{mark}({_all(node.arguments)})"
    if isinstance(node, Chain):
        return _operand(node.root) + "".join(map(_step, node.steps))
    if isinstance(node, Unary):
        return f"{node.operator} {_operand(node.operand)}"
    if isinstance(node, Binary):
        right = node.right
        jump = isinstance(right, StatementExpression) and isinstance(right.statement, _JUMPS)
        shown = _expression(right) if jump else _operand(right)
        return f"{_operand(node.left)} {node.operator} {shown}"
    if isinstance(node, Closure):
        return f"|{', '.join(node.parameters)}| {_statement(node.body)}"
    if isinstance(node, StatementExpression):
        return _statement(node.statement)
    return "::".join((*node.path, node.name))


def _template(node: Template) -> str:
    result = ""
    for i, part in enumerate(node.parts):
        if isinstance(part, Block):
            result += f"${_block(part)}"
            continue
        text = part.replace("`", "``").replace("${", "\\${")
        # a line break directly after the opening backtick would be dropped
        result += f"\n{text}" if not i and text.startswith(("\n", "\r\n")) else text
    return f"`{result}`"


def _step(step: Step) -> str:
    mark = "?" if step.optional else ""
    if isinstance(step, IndexStep):
        return f"{mark}[{_expression(step.index)}]"
    if isinstance(step, MethodStep):
        return f"{mark}.{step.name}({_all(step.arguments)})"
    return f"{mark}.{step.name}"


def _statement(node: Statement) -> str:
    if isinstance(node, ExpressionStatement):
        return _operand(node.expression)
    if isinstance(node, Let):
        word = ("export " if node.exported else "") + ("const" if node.const else "let")
        return f"{word} {node.name}" + ("" if node.value is None else f" = {_operand(node.value)}")
    if isinstance(node, Assign):
        return f"{_expression(node.target)} {node.operator} {_operand(node.value)}"
    if isinstance(node, Block):
        return _block(node)
    if isinstance(node, _JUMPS):
        word = type(node).__name__.lower()
        value = None if isinstance(node, Continue) else node.value
        return word if value is None else f"{word} {_operand(value)}"
    if isinstance(node, Import):
        return f"import {_operand(node.path)}" + (f" as {node.alias}" if node.alias else "")
    if isinstance(node, Export):
        return f"export {node.name}" + (f" as {node.alias}" if node.alias else "")
    if isinstance(node, Empty):
        return ";"
    return _compound(node)


def _compound(node: If | Switch | While | DoWhile | For | Try) -> str:
    if isinstance(node, If):
        result = f"if {_operand(node.condition)} {_block(node.then)}"
        return result if node.otherwise is None else f"{result} else {_statement(node.otherwise)}"
    if isinstance(node, Switch):
        return f"switch {_operand(node.value)} {{ {', '.join(map(_case, node.cases))} }}"
    if isinstance(node, While):
        head = "loop" if node.condition is None else f"while {_operand(node.condition)}"
        return f"{head} {_block(node.body)}"
    if isinstance(node, DoWhile):
        word = "until" if node.until else "while"
        return f"do {_block(node.body)} {word} {_operand(node.condition)}"
    if isinstance(node, For):
        names = node.variable if node.counter is None else f"({node.variable}, {node.counter})"
        return f"for {names} in {_operand(node.iterable)} {_block(node.body)}"
    name = "" if node.variable is None else f" ({node.variable})"
    return f"try {_block(node.body)} catch{name} {_block(node.handler)}"


def _case(case: Case) -> str:
    values = " | ".join(map(_operand, case.values)) or "_"
    condition = "" if case.condition is None else f" if {_operand(case.condition)}"
    return f"{values}{condition} => {_statement(case.action)}"
