"""The variables that a host hands to a script, and the ones a body keeps by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from conduit.rhai.errors import EvalError
from conduit.rhai.values import MISSING, Cell, share

if TYPE_CHECKING:
    from conduit.rhai.limits import RunState


class Scope:
    """Variables in order, looked up from the end; the script's view of its host."""

    __slots__ = ("cells", "names")

    def __init__(self, **variables: Any) -> None:
        self.names: list[str] = []
        self.cells: list[Cell] = []
        for name, value in variables.items():
            self.push(name, value)

    def push(self, name: str, value: Any) -> Scope:
        """Adds a variable; an older one of that name is hidden. Returns the scope."""
        self.names.append(name)
        self.cells.append(Cell(share(value)))
        return self

    def push_constant(self, name: str, value: Any) -> Scope:
        """Adds a constant. Returns the scope."""
        self.names.append(name)
        self.cells.append(Cell(share(value), const=True))
        return self

    def cell(self, name: str) -> Cell:
        """The box of the newest variable of that name; `MISSING` if there is none."""
        names = self.names
        for i in range(len(names) - 1, -1, -1):
            if names[i] == name:
                return self.cells[i]
        return MISSING

    def get(self, name: str, default: Any = None) -> Any:
        """The value of a variable, or `default`."""
        cell = self.cell(name)
        return default if cell is MISSING else share(cell.value)

    def set(self, name: str, value: Any) -> None:
        """Changes a variable, or adds it."""
        cell = self.cell(name)
        if cell is MISSING:
            self.push(name, value)
        else:
            cell.value = share(value)

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return iter([(n, c.value) for n, c in zip(self.names, self.cells, strict=True)])

    def __len__(self) -> int:
        return len(self.names)

    # What compiled bodies use that keep their variables by name.

    def declare(self, st: RunState, name: str, value: Any, const: bool, start: int) -> None:
        """`let` or `const`; `start` is where the block begins, whose slot is used again."""
        cell = Cell(value, const)
        for i in range(len(self.names) - 1, start - 1, -1):
            if self.names[i] == name:
                self.cells[i] = cell
                return
        self.names.append(name)
        self.cells.append(cell)
        limit = st.limits.max_variables
        if limit is not None and len(self.names) > limit:
            raise EvalError("ErrorTooManyVariables", "Too many variables defined")

    def hold(self, name: str, cell: Cell) -> None:
        """Adds a variable whose box exists."""
        self.names.append(name)
        self.cells.append(cell)

    def rewind(self, size: int) -> None:
        """Drops all but the oldest `size` variables."""
        del self.names[size:]
        del self.cells[size:]
