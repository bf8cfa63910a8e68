"""Modules: constants and functions reached by `name::`, from the host or from other scripts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conduit.rhai.calls import Program
from conduit.rhai.errors import not_found
from conduit.rhai.natives import Library, TypeSpec
from conduit.rhai.text import signature

if TYPE_CHECKING:
    from conduit.rhai.engine import Engine, Script
    from conduit.rhai.limits import RunState

#: Finds a module by path and importing script; None if there is none.
Resolver = Callable[[str, str], Any]


class Module:
    """Read-only values, functions and inner modules under one name."""

    def __init__(self, values: dict[str, Any] | None = None) -> None:
        self.values: dict[str, Any] = dict(values or {})
        self.modules: dict[str, Module] = {}
        self.library = Library()
        self.program: Program | None = None
        self._globals: dict[str, Any] = {}

    @classmethod
    def of_script(
        cls, program: Program, exports: dict[str, Any], constants: dict[str, Any]
    ) -> Module:
        """The module that a script makes: what it exports and its functions."""
        module = cls(exports)
        module.program = program
        module._globals = constants
        return module

    def register_fn(self, name: str, function: Callable[..., Any], *types: TypeSpec) -> None:
        """Adds a function for arguments of exactly these types."""
        self.library.add(name, types, function)

    def call(self, st: RunState, label: str, name: str, arguments: tuple[Any, ...]) -> Any:
        """`label::name(arguments)`. Raises EvalError."""
        program = self.program
        if program is not None:
            code = program.functions.get((name, len(arguments)))
            if code is not None and not code.node.private:
                saved = st.program, st.globals
                st.program, st.globals = program, self._globals
                try:
                    return code.function(st, None, *arguments)
                finally:
                    st.program, st.globals = saved
        types = tuple(map(type, arguments))
        native = self.library.find_exact(name, types) or self.library.find_wild(name, types)
        if native is None:
            raise not_found(signature(st, f"{label}::{name}", arguments))
        return native.call(st, *arguments)


class FileResolver:
    """Finds modules as `.rhai` files beside the importing script, or under `base`."""

    def __init__(self, engine: Engine, base: str | Path = ".") -> None:
        self._engine = engine
        self._base = Path(base)

    def __call__(self, path: str, source: str) -> Script | None:
        """The compiled module, None if the file is missing. Raises ParseError."""
        start = Path(source).parent if source else self._base
        file = (start / path).with_suffix(".rhai")
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, ValueError):
            return None
        return self._engine.compile(text, str(file))
