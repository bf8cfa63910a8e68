"""The `conduit-check` command: check configuration files without starting anything.

It runs the same loading, validation and compilation as the daemon and adds the advice of the
linter. With `--explain` it hands over to `conduit.cli.explain`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Final, TextIO

from conduit import __version__
from conduit.cli.explain import (
    add_explain_options,
    explain,
    explain_options_given,
    read_options,
)
from conduit.cli.explain_json import write_explanation_json
from conduit.cli.explain_text import write_explanation_text
from conduit.cli.explain_upstream import UsageError
from conduit.config import (
    Config,
    ConfigError,
    Diagnostic,
    KeyPath,
    LoadedConfig,
    Report,
    load_file,
)
from conduit.config.document import Document, DocumentError, parse_document
from conduit.policy.compile import CompileError
from conduit.policy.lint import lint
from conduit.snapshot import RuntimeSnapshot, compile_snapshot

EXIT_OK: Final = 0
EXIT_ERRORS: Final = 1
EXIT_UNREADABLE: Final = 2


@dataclass(frozen=True, slots=True)
class FileResult:
    """The outcome for one file: its findings, errors first, and whether it could be read.

    `snapshot` is the compiled configuration of a file without errors.
    """

    path: str
    diagnostics: tuple[Diagnostic, ...]
    readable: bool
    snapshot: RuntimeSnapshot | None = None

    @property
    def errors(self) -> int:
        """Number of errors."""
        return sum(d.severity == "error" for d in self.diagnostics)

    @property
    def warnings(self) -> int:
        """Number of warnings."""
        return len(self.diagnostics) - self.errors


def check_file(path: str) -> FileResult:
    """Load, validate, lint and compile one file."""
    try:
        loaded = load_file(path)
    except ConfigError as error:
        return FileResult(path, (*error.diagnostics, *error.warnings), error.stage != "read")
    advice = _advice(loaded)
    try:
        snapshot = compile_snapshot(loaded.config, 1, loaded.base_dir)
    except CompileError as error:
        found = _compile_finding(path, error, loaded)
        return FileResult(path, (found, *loaded.warnings, *advice), True)
    report = Report(path, None)
    for warning in snapshot.warnings:
        report.warn((), warning, "script-metric")
    return FileResult(path, (*loaded.warnings, *advice, *report.warnings), True, snapshot)


def _compile_finding(path: str, error: CompileError, loaded: LoadedConfig) -> Diagnostic:
    """Return the finding for what does not compile: in the script itself where it is known."""
    if error.file:
        message = f"{error}\n{error.pointer}" if error.pointer else str(error)
        return Diagnostic(
            error.file, error.line, error.column, "", message, "error", "compile", "script"
        )
    report = Report(path, _document(path), "compile")
    report.error(_origin(str(error), loaded.config), str(error), "compile")
    return report.errors[0]


def _advice(loaded: LoadedConfig) -> list[Diagnostic]:
    findings = lint(loaded.config, loaded.base_dir)
    if not findings:
        return []
    report = Report(loaded.path, _document(loaded.path))
    for finding in findings:
        report.warn(finding.path, finding.message, finding.code)
    return report.warnings


def _document(path: str) -> Document | None:
    """Return the node tree of a file that has been loaded already, for the places in it."""
    try:
        # line ends stay as they are, so that columns agree with those of the loader
        with open(path, encoding="utf-8-sig", newline="") as file:
            return parse_document(file.read())
    except (OSError, UnicodeDecodeError, DocumentError):
        # changed since it was loaded: the findings hold, their places are gone
        return None


def _origin(message: str, config: Config) -> KeyPath:
    """Return the key path of the table or rule that the text of a CompileError names."""
    for index, source in enumerate(config.data_sources):
        if message.startswith(f"data source '{source.name}': "):
            return ("data_sources", index)
    for index, rule in enumerate(config.rules.rules):
        if message.startswith(f"rule '{rule.name}'"):
            return ("rules", "rules", index)
    return ()


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="conduit-check",
        description="Check configuration files of DNS Conduit without starting anything. "
        "Every error is reported at once, with file, line, column and key path.",
        epilog="Exit status: 0 all files are valid (warnings do not count), 1 a file has errors, "
        "2 a file cannot be read or the command line is wrong. Codes in [brackets] are described "
        "in docs/lint.md.",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="configuration file to check")
    parser.add_argument(
        "--format",
        choices=("text", "json"),
        default="text",
        help="text: one FILE:LINE:COL: key.path: message a line (default); "
        "json: one object with findings and counts",
    )
    add_explain_options(parser)
    parser.add_argument("--version", action="version", version=f"conduit-check {__version__}")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Check the files named by `arguments` (default: those of the process); return the exit code.

    Findings and the summary go to standard output.
    """
    parser = build_parser()
    options = parser.parse_intermixed_args(arguments)
    if options.explain:
        if len(options.files) != 1:
            parser.error("--explain needs exactly one FILE")
        return _explain(parser, options)
    if explain_options_given(options):
        parser.error("options about a query need --explain")
    return _show([check_file(path) for path in options.files], options.format)


def _explain(parser: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    result = check_file(options.files[0])
    if result.snapshot is None:
        return _show([result], options.format)
    try:
        explanation = explain(result.path, result.snapshot, read_options(options))
    except UsageError as error:
        parser.error(str(error))
    write = write_explanation_json if options.format == "json" else write_explanation_text
    _emit(lambda: write(explanation, sys.stdout))
    return EXIT_OK


def _show(results: Sequence[FileResult], output_format: str) -> int:
    """Write findings and summary; return the exit code."""
    write = _write_json if output_format == "json" else _write_text
    _emit(lambda: write(results, sys.stdout))
    if not all(result.readable for result in results):
        return EXIT_UNREADABLE
    return EXIT_ERRORS if any(result.errors for result in results) else EXIT_OK


def _emit(write: Callable[[], None]) -> None:
    try:
        write()
        sys.stdout.flush()
    except BrokenPipeError:
        # the reader (head, a pager) has seen enough; keep the interpreter from flushing again
        sys.stdout = open("/dev/null", "w")  # noqa: SIM115


def _write_text(results: Sequence[FileResult], out: TextIO) -> None:
    for result in results:
        for diagnostic in result.diagnostics:
            out.write(_encodable(_line(diagnostic), out) + "\n")
    errors = sum(result.errors for result in results)
    warnings = sum(result.warnings for result in results)
    valid = sum(result.readable and not result.errors for result in results)
    out.write(
        f"{_count(len(results), 'file')} checked, {valid} valid: "
        f"{_count(errors, 'error')}, {_count(warnings, 'warning')}\n"
    )


def _line(diagnostic: Diagnostic) -> str:
    if diagnostic.severity == "error":
        return str(diagnostic)
    code = f" [{diagnostic.code}]" if diagnostic.code else ""
    return f"{diagnostic.place}: warning: {diagnostic.detail}{code}"


def _encodable(text: str, out: TextIO) -> str:
    """Return `text` with what the stream's encoding lacks written as escapes."""
    encoding = out.encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding, "replace")


def _write_json(results: Sequence[FileResult], out: TextIO) -> None:
    json.dump(
        {
            "findings": [asdict(d) for result in results for d in result.diagnostics],
            "files": [
                {
                    "path": result.path,
                    "readable": result.readable,
                    "errors": result.errors,
                    "warnings": result.warnings,
                }
                for result in results
            ],
            "errors": sum(result.errors for result in results),
            "warnings": sum(result.warnings for result in results),
        },
        out,
        indent=2,
    )
    out.write("\n")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


if __name__ == "__main__":
    sys.exit(main())
