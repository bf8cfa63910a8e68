"""The `conduit-rhai` command: run or check a script of the Rhai language on the bare engine.

Output of `print` and `debug` and the value of the script go to stdout; errors go to stderr as
``FILE:LINE:COLUMN: message`` with the source line and a caret.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TextIO

from conduit import __version__
from conduit.rhai import (
    Engine,
    EvalError,
    Limits,
    ParseError,
    Position,
    RhaiError,
    Scope,
    TerminateScript,
)

EXIT_OK: Final = 0
EXIT_ERROR: Final = 1
EXIT_UNREADABLE: Final = 2
EXIT_INTERRUPTED: Final = 130

#: Names for `--limits` and the limits of the engine that they set.
_LIMIT_NAMES: Final = {
    "operations": "max_operations",
    "time": "timeout_ms",
    "levels": "max_call_levels",
    "string": "max_string_size",
    "array": "max_array_size",
    "map": "max_map_size",
}

#: Ends a run whose output nobody reads.
_CLOSED: Final = object()


@dataclass(frozen=True, slots=True)
class Source:
    """A script and the name it has in messages."""

    label: str
    text: str


def read_limits(text: str, base: Limits | None = None) -> Limits:
    """The limits of ``operations=N,time=MS``; 0 means none.

    Raises argparse.ArgumentTypeError for anything else.
    """
    values: dict[str, int] = {}
    for part in text.split(","):
        key, equals, number = part.partition("=")
        name = _LIMIT_NAMES.get(key.strip())
        if name is None or not equals:
            known = ", ".join(_LIMIT_NAMES)
            raise argparse.ArgumentTypeError(f"'{part}' is not NAME=NUMBER with NAME of {known}")
        if not (number.isascii() and number.isdigit()):
            raise argparse.ArgumentTypeError(f"'{number}' is not a number")
        values[name] = int(number)
    # the names are those of fields, but the field of the time holds a float
    return replace(base or Limits(), **values)  # type: ignore[arg-type]


def excerpt(text: str, position: Position) -> str:
    """The source line with a caret under the column; empty when there is no such line."""
    lines = text.split("\n")
    if not 1 <= position.line <= len(lines):
        return ""
    line = lines[position.line - 1].rstrip("\r")
    # tabs stay tabs, so that the caret stands where the eye expects it
    indent = "".join(
        "\t" if character == "\t" else " " for character in line[: position.column - 1]
    )
    return f"    {line}\n    {indent}^\n"


def _levels(error: RhaiError) -> list[RhaiError]:
    """The errors from the innermost one of this very text outwards to the one that was raised."""
    levels = [error]
    while isinstance(error, EvalError) and error.inner is not None:
        # positions below `eval` and modules are those of another text
        if error.kind == "ErrorInModule" or error.fields.get("function") == "eval":
            break
        error = error.inner
        levels.insert(0, error)
    return levels


def format_error(source: Source, error: RhaiError) -> str:
    """The message of an error: where it arose, the line with a caret, and the calls that led there.

    Without a position of its own it is reported at the nearest call around it.
    """
    levels = _levels(error)
    positions = [_position(level) for level in levels]
    first = levels[0]
    message = first.text if isinstance(first, ParseError) else _text(first)
    known = next((i for i, position in enumerate(positions) if position is not None), None)
    if known is None:
        return f"{source.label}: {message}\n"
    start = positions[known]
    assert start is not None
    result = f"{source.label}:{start.line}:{start.column}: {message}\n"
    result += excerpt(source.text, start)
    for level, position in zip(levels[1:], positions[1:], strict=True):
        where = (
            source.label
            if position is None
            else f"{source.label}:{position.line}:{position.column}"
        )
        result += f"{where}: {_text(level).splitlines()[-1]}\n"
    return result


def _position(error: RhaiError) -> Position | None:
    if isinstance(error, EvalError):
        return error.position or error.origin
    return error.position if isinstance(error, ParseError) else None


def _text(error: RhaiError) -> str:
    return error.message if isinstance(error, EvalError) else str(error)


def _hooks(engine: Engine, out: TextIO) -> None:
    def write(text: str) -> None:
        try:
            out.write(f"{text}\n")
        except BrokenPipeError:  # nobody reads on: no reason to run on
            raise TerminateScript(_CLOSED) from None

    engine.on_print = write
    engine.on_debug = lambda text, _, line, column: write(f"{line}:{column} | {text}")


def run_source(
    source: Source,
    engine: Engine,
    scope: Scope | None = None,
    *,
    out: TextIO,
    err: TextIO,
    check: bool = False,
    show_value: bool = True,
) -> int:
    """Compiles a script and, unless `check`, runs it with `scope`; returns the exit status.

    What the engine has registered and what `scope` holds is the script's world: a caller that
    offers more than the bare language prepares both. Output goes to `out`, errors to `err`.
    """
    _hooks(engine, out)
    try:
        script = engine.compile(source.text)
        if check:
            return EXIT_OK
        value = engine.run(script, scope)
        if show_value and value is not None:
            out.write(f"{engine.text(value)}\n")
    except RhaiError as error:
        if isinstance(error, EvalError) and error.value is _CLOSED:
            return EXIT_ERROR
        out.flush()
        err.write(format_error(source, error))
        return EXIT_ERROR
    return EXIT_OK


def parser() -> argparse.ArgumentParser:
    """The command line."""
    result = argparse.ArgumentParser(
        prog="conduit-rhai", description="Run or check a script of the Rhai language."
    )
    result.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    result.add_argument("file", nargs="?", metavar="FILE", help="the script; - for standard input")
    result.add_argument("-e", "--eval", dest="line", metavar="TEXT", help="run this text")
    result.add_argument("--check", action="store_true", help="compile only")
    result.add_argument(
        "--limits",
        type=read_limits,
        default=Limits(),
        metavar="NAME=N,...",
        help=f"limits of the run, 0 for none: {', '.join(_LIMIT_NAMES)} (time in milliseconds)",
    )
    group = result.add_argument_group(
        "policy", "with --txn the script sees what a policy script sees, and its effects are shown"
    )
    group.add_argument("--txn", action="store_true", help="run against a made-up transaction")
    group.add_argument("--qname", default="www.example.com", help="name asked for")
    group.add_argument("--qtype", default="A", help="record type (default A)")
    group.add_argument("--client", default="127.0.0.1", metavar="ADDR", help="client address")
    group.add_argument("--rcode", help="run on the response hook, after an answer with this rcode")
    return result


def read_source(file: str | None, line: str | None) -> Source:
    """The script that the command line names. Raises OSError or UnicodeDecodeError."""
    if line is not None:
        return Source("-e", line)
    assert file is not None
    if file == "-":
        return Source("<stdin>", sys.stdin.read())
    return Source(file, Path(file).read_bytes().decode("utf-8"))


def _run_policy(
    command: argparse.ArgumentParser, source: Source, options: argparse.Namespace
) -> int:
    # the forwarder is imported only where a script asks for it
    from conduit.cli.explain_upstream import UsageError
    from conduit.cli.rhai_transaction import run_policy

    try:
        return run_policy(source, options, sys.stdout, sys.stderr)
    except UsageError as error:
        command.error(str(error))


def main(arguments: Sequence[str] | None = None) -> int:
    """The `conduit-rhai` command; returns its exit status."""
    command = parser()
    options = command.parse_args(arguments)
    if (options.file is None) == (options.line is None):
        command.error("give either FILE or -e TEXT")
    try:
        source = read_source(options.file, options.line)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        sys.stderr.write(f"{options.file}: {reason}\n")
        return EXIT_UNREADABLE
    try:
        if options.txn:
            status = _run_policy(command, source, options)
        else:
            engine = Engine(options.limits)
            status = run_source(source, engine, out=sys.stdout, err=sys.stderr, check=options.check)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # Python would complain at exit about what it could not write
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_ERROR
    return status


if __name__ == "__main__":
    sys.exit(main())
