"""Random programs that are mostly well-formed: only the engine's own errors, in time and in memory.

Texts without any sense are tried in `test_models`; these get past the parser, into the library and
into host objects.
"""

from __future__ import annotations

import random
import time
import tracemalloc
from collections.abc import Iterator
from typing import Any

from conduit.rhai import ANY, Engine, EvalError, Limits, ParseError, Scope
from conduit.rhai.packages.standard import STANDARD
from tests.rhai.running import engine_for

PROGRAMS = 1000
MILLISECONDS = 60
MEMORY = 64e6
NAMES = ["a", "b", "s", "m", "h", "n", "f"]
LITERALS = [
    *(
        "0",
        "1",
        "-1",
        "3",
        "63",
        "64",
        "9223372036854775807",
        "-9223372036854775808",
        "1.5",
        "-0.0",
    ),
    *("1e300", '"text"', '""', '"x,y"', "'c'", "true", "()", "[]", "[1, 2, 3]", '["a", [2], 1.5]'),
    *("#{}", "#{a: 1, b: [1]}", "blob(3)", "0..3", "-2..=9", "(2..)", "|x| x", "|x, y| x < y"),
    *("|| this", 'Fn("abs")', "h", "timestamp()", "range(0, 9, 2)", '"ab".chars()', "1.0 / 0.0"),
]
OPERATORS = [
    *("+", "-", "*", "/", "%", "**", "<<", ">>", "&", "|", "^", "==", "!=", "<", "<=", ">", ">="),
    *("&&", "||", "??", "in", "!in", "..", "..="),
]
METHODS = sorted(
    name
    for name in {*STANDARD.names, "call", "curry", "is_shared", "type_of", "tag", "fail"}
    if name.isidentifier() and name not in ("sleep", "exit")
)


class Host:
    """What a host may offer, with faults."""

    def __init__(self) -> None:
        self.value: Any = 1


def _fail(*_: Any) -> Any:
    raise LookupError("fault of the host")


def engine() -> Engine:
    made = engine_for(Limits(max_operations=20_000, timeout_ms=MILLISECONDS))
    made.register_type(
        Host,
        "Host",
        getters={"a": lambda h: h.value, "b": _fail},
        setters={"a": lambda h, value: setattr(h, "value", value), "b": _fail},
        index_get={int: lambda h, i: h.value[i]},
        index_set={(int, ANY): lambda h, i, value: h.value.__setitem__(i, value)},
        iterate=lambda h: iter(h.value),
    )
    made.register_fn("tag", lambda h, value: value, Host, ANY)
    made.register_fn("fail", _fail, Host)
    return made


class Writer:
    """Writes random statements and expressions, nested only so far."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)

    def expression(self, depth: int) -> str:
        draw = self.draw
        if depth <= 0 or draw.random() < 0.2:
            return draw.choice(LITERALS) if draw.random() < 0.6 else draw.choice(NAMES)
        inner = [self.expression(depth - 1) for _ in range(3)]
        count = draw.choice([0, 0, 1, 1, 2, 3])
        arguments = ", ".join(inner[:count])
        kind = draw.randrange(9)
        if kind == 0:
            return f"({inner[0]} {draw.choice(OPERATORS)} {inner[1]})"
        if kind in (1, 2, 3):
            return f"({inner[0]}).{draw.choice(METHODS)}({arguments})"
        if kind == 4:
            return f"{draw.choice(NAMES)}.{draw.choice(METHODS)}({arguments})"
        if kind == 5:
            return f"{draw.choice(NAMES)}[{inner[0]}]"
        if kind == 6:
            return f"{draw.choice(NAMES)}?.{draw.choice(['a', 'b', 'len', 'tag', '__class__'])}"
        if kind == 7:
            return f"`<${{{inner[0]}}}>`"
        return f"(if {inner[0]} {{ {inner[1]} }} else {{ {inner[2]} }})"

    def statement(self, depth: int) -> str:
        draw = self.draw
        value = self.expression(2)
        name = draw.choice(NAMES)
        kind = draw.randrange(10)
        if depth <= 0 or kind < 2:
            return f"{name}.{draw.choice(METHODS)}({value});"
        if kind == 2:
            return f"let {name} = {value};"
        if kind == 3:
            return f"{name} {draw.choice(['=', '+=', '-=', '*=', '<<='])} {value};"
        if kind == 4:
            return f"{name}[{self.expression(1)}] = {value};"
        if kind == 5:
            return f"{name}.{draw.choice(['a', 'b'])} += {value};"
        body = " ".join(self.statement(depth - 1) for _ in range(2))
        if kind == 6:
            return f"for {name} in {value} {{ {body} }}"
        if kind == 7:
            return f"try {{ {body} }} catch (e) {{ {name} = e; }}"
        if kind == 8:
            return f"while {value} {{ {body} }}"
        return f"let {name} = |x| {{ {body} {self.expression(1)} }}; [1, 2].map({name});"

    def program(self) -> str:
        start = (
            'let a = [1, 2, 3]; let b = blob(4); let s = "some text"; let m = #{a: 1}; let n = 5;'
        )
        lines = [self.statement(3) for _ in range(self.draw.randint(1, 6))]
        # most statements fail at something: what follows shall run all the same
        lines = [f"try {{ {line} }} catch {{}}" for line in lines]
        return f"{start} let f = |x| x; {' '.join(lines)} {self.expression(3)}"


def programs() -> Iterator[str]:
    for seed in range(PROGRAMS):
        yield Writer(seed).program()


def seconds(made: Engine, text: str) -> tuple[float, bool]:
    """The time of a run and whether it came to an end. Raises what no script may cause."""
    began = time.perf_counter()
    fine = True
    try:
        made.run(made.compile(text), Scope(h=Host()))
    except ParseError:
        fine = False
        began = time.perf_counter()
    except EvalError as error:
        str(error)
        fine = False
    return time.perf_counter() - began, fine


def test_programs_end_cleanly_in_time_and_memory() -> None:
    made = engine()
    ended = 0
    tracemalloc.start()
    try:
        for text in programs():
            took, fine = seconds(made, text)
            ended += fine
            peak = tracemalloc.get_traced_memory()[1]
            assert peak < MEMORY, text
            tracemalloc.reset_peak()
            if took > (MILLISECONDS + 50) / 1000:
                # tracing and other loads slow things down: the best of a few decides
                tracemalloc.stop()
                best = min(seconds(made, text)[0] for _ in range(3))
                assert best < (MILLISECONDS + 50) / 1000, text
                tracemalloc.start()
    finally:
        tracemalloc.stop()
    # the generator would be worthless if nothing ever ran to its end
    assert ended > PROGRAMS // 20
