"""A plain evaluator that walks the syntax tree: the yardstick for the compiled engine.

Small and honest: it does what such evaluators do (a look at the node's kind, a dictionary of
variables, checked 64-bit arithmetic, a counted operation a node), and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

LOW, HIGH = -(2**63), 2**63 - 1


@dataclass
class Number:
    value: int


@dataclass
class Name:
    name: str


@dataclass
class Binary:
    operator: str
    left: Any
    right: Any


@dataclass
class Assign:
    name: str
    value: Any


@dataclass
class While:
    condition: Any
    body: list[Any]


class Walker:
    """Evaluates nodes one by one."""

    def __init__(self, limit: int) -> None:
        self.variables: dict[str, Any] = {}
        self.left = limit
        self.rules: dict[type, Callable[[Any], Any]] = {
            Number: self.number,
            Name: self.name,
            Binary: self.binary,
            Assign: self.assign,
            While: self.loop,
        }

    def run(self, node: Any) -> Any:
        self.left -= 1
        if self.left < 0:
            raise RuntimeError("too many operations")
        return self.rules[type(node)](node)

    def number(self, node: Number) -> int:
        return node.value

    def name(self, node: Name) -> Any:
        return self.variables[node.name]

    def binary(self, node: Binary) -> Any:
        left, right = self.run(node.left), self.run(node.right)
        if node.operator == "<":
            return left < right
        result = left + right
        if not LOW <= result <= HIGH:
            raise OverflowError
        return result

    def assign(self, node: Assign) -> None:
        self.variables[node.name] = self.run(node.value)

    def loop(self, node: While) -> None:
        while self.run(node.condition):
            for statement in node.body:
                self.run(statement)


def additions(count: int) -> list[Any]:
    """`let x = 0; while x < count { x = x + 1; }` as a tree."""
    step = Assign("x", Binary("+", Name("x"), Number(1)))
    return [Assign("x", Number(0)), While(Binary("<", Name("x"), Number(count)), [step])]
