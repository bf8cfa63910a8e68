"""What a run may use: the limits of an engine and the counters of one run.

Operations are counted down (`RunState.n`); below zero `check` is called, which looks at the
operation limit and at the clock and hands out the next portion (chapter 36 sections 19 and 22).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from conduit.rhai.calls import call_position
from conduit.rhai.errors import EvalError, Position, TerminateScript
from conduit.rhai.values import CONTAINERS, Array, Blob, Map

if TYPE_CHECKING:
    from conduit.rhai.engine import Engine

#: Operations between two looks at the clock.
PORTION: Final = 200
#: The portion when nobody watches the clock or the count.
UNWATCHED: Final = 1 << 60
#: Operations inside callbacks are given back, but at most this many times the limit in all.
CALLBACK_FACTOR: Final = 10


@dataclass(frozen=True)
class Limits:
    """Limits of every compile and run of an engine; 0 means none unless said otherwise.

    Sizes: `max_string_size` in bytes of UTF-8, `max_array_size` in items of arrays and bytes of
    blobs, `max_map_size` in entries, nested containers included. The defaults of these three are
    a safety net. `max_call_levels` and the two expression depths are always in force.
    `timeout_ms` is the wall clock of one run on `clock` (seconds).
    `max_modules` and `max_functions` and `max_variables`: None means no limit.
    """

    max_operations: int = 0
    max_call_levels: int = 64
    max_expr_depth: int = 64
    max_function_expr_depth: int = 32
    max_string_size: int = 1024 * 1024
    max_array_size: int = 100_000
    max_map_size: int = 100_000
    max_variables: int | None = None
    max_functions: int | None = None
    max_modules: int | None = None
    timeout_ms: float = 0
    clock: Callable[[], float] = time.monotonic
    #: Follows `Script terminated: ` when the time is over.
    timeout_text: str = "time limit exceeded"


class RunState:
    """The counters and hooks of one run; never shared between threads."""

    __slots__ = (
        "container_room",
        "deadline",
        "debug",
        "engine",
        "exports",
        "extra",
        "globals",
        "left",
        "level",
        "limits",
        "max_level",
        "modules",
        "modules_used",
        "n",
        "print",
        "program",
        "progress",
        "scope",
    )

    def __init__(self, engine: Engine, limits: Limits, program: Any, scope: Any) -> None:
        self.engine = engine
        self.limits = limits
        self.program = program
        self.scope = scope
        self.level = 0
        self.max_level = limits.max_call_levels
        self.extra = 0
        self.globals: dict[str, Any] = {}
        self.exports: dict[str, Any] = {}
        self.modules: list[tuple[str, Any]] = []
        self.modules_used = 0
        self.print: Callable[[str], None] = engine.on_print
        self.debug: Callable[[str, str, int, int], None] = engine.on_debug
        self.progress = engine.on_progress
        self.deadline = 0.0
        if limits.timeout_ms:
            self.deadline = limits.clock() + limits.timeout_ms / 1000.0
        total = limits.max_operations or UNWATCHED
        watched = limits.timeout_ms or self.progress is not None
        sizes = [size for size in (limits.max_array_size, limits.max_map_size) if size]
        self.container_room = min(sizes, default=UNWATCHED)
        self.n = min(total, PORTION) if watched else total
        self.left = total - self.n

    def check(self) -> None:
        """Called when `n` has run below zero: hands out a new portion or ends the run.

        Raises EvalError ``ErrorTooManyOperations``, or ``ErrorTerminated`` past the deadline.
        """
        self.check_clock()
        self.left += self.n
        if self.left < 0:
            self.n = 0
            raise EvalError("ErrorTooManyOperations", "Too many operations")
        if self.progress is not None:
            total = self.limits.max_operations or UNWATCHED
            if self.progress(total - self.left) is not None:
                raise TerminateScript()
        portion = PORTION if self.deadline or self.progress is not None else self.left
        self.n = min(portion, self.left)
        self.left -= self.n

    def check_clock(self) -> None:
        """Raises EvalError ``ErrorTerminated`` past the deadline."""
        if self.deadline and self.limits.clock() > self.deadline:
            text = f"Script terminated: {self.limits.timeout_text}"
            raise EvalError("ErrorTerminated", text)

    def charge(self, amount: int) -> None:
        """Counts work in proportion to the data it went over."""
        self.n -= amount
        if self.n < 0:
            self.check()

    def give_back(self, before: int) -> None:
        """Gives back what callbacks have used since `n + left` was `before` (O-2)."""
        spent = before - self.n - self.left
        if spent > 0:
            self.left += spent
            self.extra += spent
            limit = self.limits.max_operations
            if limit and self.extra > limit * CALLBACK_FACTOR:
                raise EvalError("ErrorTooManyOperations", "Too many operations")

    def seconds_left(self) -> float | None:
        """Seconds until the deadline, None without one."""
        if not self.deadline:
            return None
        return max(0.0, self.deadline - self.limits.clock())

    def call_position(self) -> Position | None:
        """Where the script called the native that asks; for messages of a host."""
        return call_position()

    # Sizes (chapter 36 section 19): looked at after an operation; the library looks ahead where
    # a small script could ask for something huge.

    def string_room(self, characters: int) -> None:
        """Raises unless a string of that many characters may exist."""
        limit = self.limits.max_string_size
        if limit and characters > limit:
            raise EvalError("ErrorDataTooLarge", "Length of string too large")
        if characters > 1024:
            self.charge(characters >> 6)

    def array_room(self, items: int, what: str = "Size of array/BLOB") -> None:
        """Raises unless an array or blob of that many items may exist."""
        limit = self.limits.max_array_size
        if limit and items > limit:
            raise EvalError("ErrorDataTooLarge", f"{what} too large")
        if items > 64:
            self.charge(items >> 4)

    def sized_string(self, text: str) -> str:
        """`text`, when it is within the limit."""
        limit = self.limits.max_string_size
        size = len(text)
        if size > 1024:
            self.charge(size >> 6)
        if limit and size * 4 > limit:
            if size <= limit and not text.isascii():
                size = len(text.encode("utf-8", "surrogatepass"))
            if size > limit:
                raise EvalError("ErrorDataTooLarge", "Length of string too large")
        return text

    def sized(self, value: Any) -> Any:
        """`value`, when it is within the limits."""
        kind = type(value)
        if kind is str:
            return self.sized_string(value)
        if kind in CONTAINERS and len(value) + value.nested > self.container_room:
            self.recount(value)
        return value

    def stored(self, container: Array | Map, item: Any) -> None:
        """Notes that `item` was put into `container` and checks what that has become.

        `nested` of a container is an upper bound of what the containers inside it hold.
        """
        if type(item) in CONTAINERS:
            container.nested += len(item) + item.nested
        if len(container) + container.nested > self.container_room:
            self.recount(container)

    def built(self, container: Any) -> Any:
        """A container that was just made from unknown parts, counted and checked."""
        nested = 0
        for item in _parts(container):
            if type(item) in CONTAINERS:
                nested += len(item) + item.nested
        if nested:
            container.nested = nested
        return self.sized(container)

    def recount(self, value: Array | Map | Blob) -> None:
        """Counts what the container holds, nested containers included, and checks it."""
        limits = self.limits
        items = entries = steps = 0
        # a stack instead of recursion: scripts can nest deeper than Python may recurse
        stack: list[Any] = [value]
        while stack:
            current = stack.pop()
            size = len(current)
            if type(current) is Map:
                entries += size
            else:
                items += size
            if limits.max_map_size and entries > limits.max_map_size:
                raise EvalError("ErrorDataTooLarge", "Size of object map too large")
            if limits.max_array_size and items > limits.max_array_size:
                raise EvalError("ErrorDataTooLarge", "Size of array/BLOB too large")
            stack.extend([part for part in _parts(current) if type(part) in CONTAINERS])
            steps += 4 + (size >> 2)
            if steps > 256:
                self.charge(steps >> 2)
                steps = 0
        value.nested = items + entries - len(value)


def _parts(container: Any) -> Any:
    kind = type(container)
    return container.values() if kind is Map else container if kind is Array else ()
