"""Moves deeply nested statements into functions of their own.

Python refuses more than twenty nested loops and `try`s in one function; the language allows as many
as its own depth limit does. A statement that would come too deep becomes the body of an inner
function, which says by its result how it ended: a tuple holds a value to return, `BREAK` and
`CONTINUE` concern a loop outside.
"""

from __future__ import annotations

import ast
from typing import Final

from conduit.rhai.compiler_emit import assign, call, compare, constant, is_type, name, target

#: Inner functions are known by this name in tracebacks.
OUTLINED: Final = "outlined"
#: Nested loops and `try`s of one Python function, with room for what surrounds a call.
DEEPEST: Final = 10
_BREAK: Final = 1
_CONTINUE: Final = 2
_LOOPS = (ast.For, ast.While)


def outlined(body: list[ast.stmt], number: int, result: str) -> list[ast.stmt]:
    """The statements that define a function of `body`, call it and act on how it ended."""
    ways: set[str] = set()
    inner = [_redirected(statement, ways, False) for statement in body]
    function = ast.FunctionDef(
        name=f"{OUTLINED}{number}",
        args=ast.arguments(
            posonlyargs=[],
            args=[],
            vararg=None,
            kwonlyargs=[],
            kw_defaults=[],
            kwarg=None,
            defaults=[],
        ),
        body=inner,
        decorator_list=[],
        returns=None,
    )
    statements: list[ast.stmt] = [function, assign(result, call(function.name))]
    if "return" in ways:
        value = ast.Subscript(name(result), constant(0), ast.Load())
        statements.append(ast.If(is_type(name(result), "tuple"), [ast.Return(value)], []))
    if "break" in ways:
        test = compare(name(result), ast.Is(), constant(_BREAK))
        statements.append(ast.If(test, [ast.Break()], []))
    if "continue" in ways:
        test = compare(name(result), ast.Is(), constant(_CONTINUE))
        statements.append(ast.If(test, [ast.Continue()], []))
    return statements


def _redirected(node: ast.stmt, ways: set[str], in_loop: bool) -> ast.stmt:
    """The statement with jumps out of the function replaced by results."""
    if isinstance(node, ast.Return):
        ways.add("return")
        value = constant(None) if node.value is None else node.value
        return ast.Return(ast.Tuple([value], ast.Load()))
    if isinstance(node, ast.Break) and not in_loop:
        ways.add("break")
        return ast.Return(constant(_BREAK))
    if isinstance(node, ast.Continue) and not in_loop:
        ways.add("continue")
        return ast.Return(constant(_CONTINUE))
    if isinstance(node, ast.FunctionDef):
        return node
    for field in ("body", "orelse", "finalbody"):
        inside = in_loop or (field == "body" and isinstance(node, _LOOPS))
        statements = getattr(node, field, None)
        if isinstance(statements, list):
            setattr(node, field, [_redirected(s, ways, inside) for s in statements])
    if isinstance(node, ast.Try):
        for handler in node.handlers:
            handler.body = [_redirected(s, ways, in_loop) for s in handler.body]
    return node


def resolve_names(body: list[ast.stmt], arguments: list[str]) -> list[ast.stmt]:
    """Declares the variables that inner functions share with what is around them."""
    every = _names(body)
    shared: set[str] = set()
    stack: list[ast.AST] = list(body)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.FunctionDef):
            inside = _names(node.body)
            stored = {
                identifier
                for identifier, (stores, uses) in inside.items()
                if stores and uses < every[identifier][1]
            }
            if stored:
                node.body.insert(0, ast.Nonlocal(sorted(stored)))
                shared |= stored
        stack.extend(ast.iter_child_nodes(node))
    starts: list[ast.stmt] = []
    for identifier in sorted(shared - set(arguments)):
        starts.append(ast.Assign([target(identifier)], constant(None)))
    return [*starts, *body]


def _names(body: list[ast.stmt]) -> dict[str, tuple[int, int]]:
    """Each name with the number of its writes and of its mentions."""
    found: dict[str, tuple[int, int]] = {}
    stack: list[ast.AST] = list(body)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Name):
            stores, uses = found.get(node.id, (0, 0))
            found[node.id] = (stores + isinstance(node.ctx, ast.Store), uses + 1)
        stack.extend(ast.iter_child_nodes(node))
    return found
