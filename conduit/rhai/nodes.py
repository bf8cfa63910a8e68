"""The syntax tree of a script: plain data, positions kept aside from comparison.

`Variable.info` and its like point to what the parser found out about names (`VarInfo`); they take
no part in equality, so that a tree, printed and parsed again, equals itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from conduit.rhai.errors import Position
from conduit.rhai.variable_info import VarInfo


@dataclass(slots=True)
class Node:
    """Base of all nodes; `position` is where errors of the node are reported."""

    position: Position = field(compare=False, repr=False)


# Expressions


@dataclass(slots=True)
class Literal(Node):
    """`()`, a bool, a number, a char or a string."""

    value: Any

    def __eq__(self, other: object) -> bool:
        if type(other) is not Literal:
            return NotImplemented
        return type(self.value) is type(other.value) and repr(self.value) == repr(other.value)


@dataclass(slots=True)
class ArrayLiteral(Node):
    """`[a, b]`."""

    items: list[Expression]


@dataclass(slots=True)
class MapLiteral(Node):
    """`#{k: v}`."""

    items: list[tuple[str, Expression]]


@dataclass(slots=True)
class Template(Node):
    """A text with interpolations: strings and blocks in turn."""

    parts: list[str | Block]


@dataclass(slots=True)
class Variable(Node):
    """A name."""

    name: str
    info: VarInfo | None = field(default=None, compare=False, repr=False)


@dataclass(slots=True)
class This(Node):
    """`this`."""


@dataclass(slots=True)
class Qualified(Node):
    """`a::b::NAME`."""

    path: tuple[str, ...]
    name: str


@dataclass(slots=True)
class Call(Node):
    """`f(a)`, `m::f(a)`, or with `in_scope` `f!(a)`."""

    name: str
    arguments: list[Expression]
    path: tuple[str, ...] = ()
    in_scope: bool = False


@dataclass(slots=True)
class IndexStep(Node):
    """`[i]` or `?[i]`; `position` is the bracket."""

    index: Expression
    optional: bool = False


@dataclass(slots=True)
class PropertyStep(Node):
    """`.p` or `?.p`; `position` is the name."""

    name: str
    optional: bool = False


@dataclass(slots=True)
class MethodStep(Node):
    """`.m(a)` or `?.m(a)`; `position` is the name."""

    name: str
    arguments: list[Expression]
    optional: bool = False


Step = IndexStep | PropertyStep | MethodStep


@dataclass(slots=True)
class Chain(Node):
    """A root and at least one step; `position` is the first dot or bracket."""

    root: Expression
    steps: list[Step]


@dataclass(slots=True)
class Unary(Node):
    """`-x`, `+x`, `!x`."""

    operator: str
    operand: Expression


@dataclass(slots=True)
class Binary(Node):
    """Every operator with two sides, `&&`, `||`, `??`, `in` and the ranges included."""

    operator: str
    left: Expression
    right: Expression


@dataclass(slots=True)
class Closure(Node):
    """`|a| body`; `captures` pairs each captured variable with the closure's own name for it."""

    parameters: list[str]
    body: Statement
    scope: Any = field(default=None, compare=False, repr=False)


@dataclass(slots=True)
class StatementExpression(Node):
    """A block, `if`, `switch` or loop used as a value."""

    statement: Statement


# Statements


@dataclass(slots=True)
class Let(Node):
    """`let` or `const`; `position` is the keyword."""

    name: str
    value: Expression | None
    const: bool = False
    exported: bool = False
    info: VarInfo | None = field(default=None, compare=False, repr=False)
    count: int = field(default=0, compare=False, repr=False)


@dataclass(slots=True)
class Assign(Node):
    """`target op value`; `position` is the operator."""

    target: Expression
    operator: str
    value: Expression


@dataclass(slots=True)
class ExpressionStatement(Node):
    """An expression as a statement."""

    expression: Expression


@dataclass(slots=True)
class Block(Node):
    """`{ … }`."""

    statements: list[Statement]


@dataclass(slots=True)
class If(Node):
    """`if`; `otherwise` is a block or another `If`."""

    condition: Expression
    then: Block
    otherwise: Block | If | None = None


@dataclass(slots=True)
class Case:
    """One arm of a `switch`: no `values` means `_`."""

    values: list[Expression]
    condition: Expression | None
    action: Statement


@dataclass(slots=True)
class Switch(Node):
    """`switch`."""

    value: Expression
    cases: list[Case]


@dataclass(slots=True)
class While(Node):
    """`while` or, without condition, `loop`."""

    condition: Expression | None
    body: Block


@dataclass(slots=True)
class DoWhile(Node):
    """`do … while` or, with `until`, `do … until`."""

    body: Block
    condition: Expression
    until: bool = False


@dataclass(slots=True)
class For(Node):
    """`for`."""

    variable: str
    counter: str | None
    iterable: Expression
    body: Block
    info: VarInfo | None = field(default=None, compare=False, repr=False)
    counter_info: VarInfo | None = field(default=None, compare=False, repr=False)
    count: int = field(default=0, compare=False, repr=False)


@dataclass(slots=True)
class Break(Node):
    """`break`, perhaps with a value."""

    value: Expression | None = None


@dataclass(slots=True)
class Continue(Node):
    """`continue`."""


@dataclass(slots=True)
class Return(Node):
    """`return`, perhaps with a value."""

    value: Expression | None = None


@dataclass(slots=True)
class Throw(Node):
    """`throw`, perhaps with a value."""

    value: Expression | None = None


@dataclass(slots=True)
class Try(Node):
    """`try … catch`."""

    body: Block
    variable: str | None
    handler: Block
    info: VarInfo | None = field(default=None, compare=False, repr=False)
    count: int = field(default=0, compare=False, repr=False)


@dataclass(slots=True)
class Import(Node):
    """`import e as m;`."""

    path: Expression
    alias: str | None = None


@dataclass(slots=True)
class Export(Node):
    """`export x as y;`; `name_position` is where the variable stands."""

    name: str
    alias: str | None = None
    info: VarInfo | None = field(default=None, compare=False, repr=False)
    name_position: Position = field(default=Position(1, 1), compare=False, repr=False)


@dataclass(slots=True)
class Empty(Node):
    """A lone `;`."""


@dataclass(slots=True)
class Function(Node):
    """A function definition."""

    name: str
    parameters: list[str]
    body: Block
    private: bool = False
    receiver: str | None = None
    scope: Any = field(default=None, compare=False, repr=False)


Expression = (
    Literal
    | ArrayLiteral
    | MapLiteral
    | Template
    | Variable
    | This
    | Qualified
    | Call
    | Chain
    | Unary
    | Binary
    | Closure
    | StatementExpression
)

Statement = (
    Let
    | Assign
    | ExpressionStatement
    | Block
    | If
    | Switch
    | While
    | DoWhile
    | For
    | Break
    | Continue
    | Return
    | Throw
    | Try
    | Import
    | Export
    | Empty
)

#: Statements complete without a `;` (chapter 36 section 3).
SELF_TERMINATED = (If, Switch, While, For, Try, Block)


@dataclass(slots=True)
class Tree:
    """A whole script."""

    statements: list[Statement]
    functions: list[Function]
    scope: Any = field(default=None, compare=False, repr=False)
    #: Whether there is any function or closure.
    defines: bool = field(default=False, compare=False, repr=False)


def is_constant(node: Expression) -> bool:
    """Whether the value is written out: a literal, or an array or map of such."""
    if isinstance(node, Literal):
        return True
    if isinstance(node, ArrayLiteral):
        return all(is_constant(item) for item in node.items)
    if isinstance(node, MapLiteral):
        return all(is_constant(item) for _, item in node.items)
    return False


def is_range_literal(node: Expression) -> bool:
    """Whether the node is a range of two integer literals."""
    return (
        isinstance(node, Binary)
        and node.operator in ("..", "..=")
        and all(isinstance(n, Literal) and type(n.value) is int for n in (node.left, node.right))
    )
