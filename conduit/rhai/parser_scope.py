"""Finds out while parsing which variable each name means, per function, closure or script body.

A name that is nowhere declared is no error here (chapter 36 section 3.1): it is looked for when it
is evaluated.
"""

from __future__ import annotations

from conduit.rhai.errors import Position
from conduit.rhai.variable_info import VarInfo


class BodyScope:
    """The variables of one body; `outer` is set for closures only."""

    __slots__ = ("blocks", "captures", "dynamic", "free", "is_script", "live", "outer")

    def __init__(self, outer: BodyScope | None = None, is_script: bool = False) -> None:
        self.outer = outer
        self.is_script = is_script
        self.blocks: list[dict[str, VarInfo]] = [{}]
        self.captures: dict[str, VarInfo] = {}
        self.free: dict[str, VarInfo] = {}
        #: True once `eval`, `is_def_var` or `f!()` occurs: variables are then looked up by name.
        self.dynamic = False
        #: Variables in scope, for the limit on them.
        self.live = 0

    def enter(self) -> None:
        """A block begins."""
        self.blocks.append({})

    def leave(self) -> None:
        """A block ends."""
        self.live -= len(self.blocks.pop())

    def declare(self, name: str, const: bool = False) -> VarInfo:
        """A new variable of the innermost block; the same name there re-uses the slot."""
        block = self.blocks[-1]
        if name not in block:
            self.live += 1
        info = VarInfo(name, const=const)
        block[name] = info
        return info

    def find_local(self, name: str) -> VarInfo | None:
        """The variable declared in this very body."""
        for block in reversed(self.blocks):
            if name in block:
                return block[name]
        return None

    def find(self, name: str, position: Position) -> VarInfo:
        """The variable that `name` means here; captured from outside if need be."""
        found = self.find_local(name) or self.captures.get(name)
        if found is not None:
            return found
        if self.outer is None:
            info = self.free.get(name)
            if info is None:
                info = VarInfo(name, "scope" if self.is_script else "unknown")
                self.free[name] = info
            return info
        source = self.outer.find(name, position)
        if source.literal is None:
            source.captured = True
        capture = VarInfo(name, "capture", source=source)
        capture.const = source.const
        capture.position = position
        capture.literal = source.literal
        self.captures[name] = capture
        return capture
