"""Functions that are not written in the language: how they are described and found by type.

A function is chosen by the exact types of its arguments, then with wildcards in place of some,
the rightmost first (chapter 36 section 9.1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product
from typing import TYPE_CHECKING, Any, Final, TypeVar

from conduit.rhai.errors import EvalError

if TYPE_CHECKING:
    from conduit.rhai.limits import RunState


class _Any:
    """Stands for every type in a signature."""


ANY: Final = _Any
#: A function reads its receiver, changes it in place, or returns a new one with its result.
READ: Final = 0
IN_PLACE: Final = 1
REPLACE: Final = 2

TypeSpec = type | tuple[type, ...]
_F = TypeVar("_F", bound=Callable[..., Any])


class Native:
    """One function: `function(*arguments)`, or with `context` `function(run_state, *arguments)`.

    `pure` ones may be called on constants. `mode` is READ, IN_PLACE or REPLACE; a REPLACE function
    returns the pair (new receiver, result).
    """

    __slots__ = ("context", "function", "mode", "name", "pure")

    def __init__(
        self, name: str, function: Callable[..., Any], pure: bool, mode: int, context: bool
    ) -> None:
        self.name = name
        self.function = function
        self.pure = pure
        self.mode = mode
        self.context = context

    def call(self, st: RunState, *arguments: Any) -> Any:
        """The result alone."""
        if self.context:
            result = self.function(st, *arguments)
        else:
            result = self.function(*arguments)
        return result[1] if self.mode == REPLACE else result

    def call_pair(self, st: RunState, *arguments: Any) -> tuple[Any, Any]:
        """The receiver after the call and the result."""
        if self.context:
            result = self.function(st, *arguments)
        else:
            result = self.function(*arguments)
        if self.mode == REPLACE:
            return result  # type: ignore[no-any-return]
        return arguments[0], result


class Library:
    """A set of functions and properties by name and types."""

    def __init__(self) -> None:
        self.exact: dict[tuple[str, tuple[Any, ...]], Native] = {}
        self.names: dict[str, list[Native]] = {}
        self.wild: set[tuple[str, int]] = set()
        self.getters: dict[tuple[type, str], Callable[[Any], Any]] = {}
        self.setters: dict[tuple[type, str], Callable[[Any, Any], Any]] = {}

    def add(
        self,
        name: str,
        types: Iterable[TypeSpec],
        function: Callable[..., Any],
        *,
        pure: bool = True,
        mode: int = READ,
        context: bool = False,
    ) -> None:
        """Adds a function; a tuple of types in `types` accepts each of them."""
        native = Native(name, function, pure, mode, context)
        choices = [spec if isinstance(spec, tuple) else (spec,) for spec in types]
        for combination in product(*choices):
            self.exact[(name, combination)] = native
            if ANY in combination:
                self.wild.add((name, len(combination)))
        self.names.setdefault(name, []).append(native)

    def fn(
        self,
        names: str,
        *types: TypeSpec,
        pure: bool = True,
        mode: int = READ,
        context: bool = False,
        getter: bool = False,
    ) -> Callable[[_F], _F]:
        """Decorator of `add` for one or more blank-separated names; `getter` adds a property."""

        def register(function: _F) -> _F:
            for name in names.split():
                self.add(name, types, function, pure=pure, mode=mode, context=context)
                if getter:
                    kinds = types[0] if isinstance(types[0], tuple) else (types[0],)
                    for kind in kinds:
                        self.getters[(kind, name)] = function
            return function

        return register

    def callback(
        self, names: str, *types: TypeSpec, pure: bool = True, mode: int = READ
    ) -> Callable[[_F], _F]:
        """Decorator for functions that call function pointers: they take a call level."""

        def register(function: _F) -> _F:
            def calling(st: RunState, *arguments: Any) -> Any:
                before = st.n + st.left
                st.level += 1
                if st.level > st.max_level:
                    st.level -= 1
                    raise EvalError("ErrorStackOverflow", "Stack overflow")
                try:
                    return function(st, *arguments)
                finally:
                    st.level -= 1
                    st.give_back(before)

            for name in names.split():
                self.add(name, types, calling, pure=pure, mode=mode, context=True)
            return function

        return register

    def find_exact(self, name: str, types: tuple[type, ...]) -> Native | None:
        """The function for exactly these types."""
        return self.exact.get((name, types))

    def find_wild(self, name: str, types: tuple[type, ...]) -> Native | None:
        """The function with wildcards for some of the types, the rightmost first."""
        count = len(types)
        if (name, count) not in self.wild:
            return None
        for bits in range(1, 1 << min(count, 8)):
            trial = tuple(
                ANY if count - 1 - i < 8 and bits >> (count - 1 - i) & 1 else types[i]
                for i in range(count)
            )
            native = self.exact.get((name, trial))
            if native is not None:
                return native
        return None
