"""What the parser and the compiler know of one variable (chapter 36 section 3.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conduit.rhai.errors import Position

if TYPE_CHECKING:
    from conduit.rhai.nodes import Expression


class VarInfo:
    """What is known of one variable of one body.

    `kind` is ``local``, ``capture`` (of a closure; `source` is the variable outside), ``scope``
    (a free name of the script itself, looked for in the host's scope) or ``unknown`` (a free name
    of a function). `literal` is the value of a constant that is folded into its uses; `captured`
    tells that a closure holds it.
    """

    __slots__ = (
        "captured",
        "const",
        "kind",
        "literal",
        "name",
        "position",
        "python",
        "source",
        "type",
    )

    def __init__(
        self, name: str, kind: str = "local", const: bool = False, source: VarInfo | None = None
    ) -> None:
        self.name = name
        self.kind = kind
        self.const = const
        self.source = source
        self.literal: Expression | None = None
        self.captured = False
        #: Where a capture is first mentioned.
        self.position = Position(1, 1)
        self.python = ""
        self.type: str | None = None
