"""From a file to a validated configuration: read, parse, type, check the schema, validate.

Each stage reports all its errors at once; a later stage runs only when the earlier ones found none.
Nothing but ConfigError leaves this module, whatever the file holds.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from conduit.config import document as nodes
from conduit.config.construction import build_config
from conduit.config.conversion import convert_document
from conduit.config.diagnostics import (
    ConfigError,
    Diagnostic,
    KeyPath,
    Stage,
    format_key_path,
    printable,
)
from conduit.config.document import Document, DocumentError, Scalar, parse_document
from conduit.config.model import Config
from conduit.config.paths import config_base_dir
from conduit.config.report import Report
from conduit.config.schema import load_schema
from conduit.config.schema_errors import check_schema
from conduit.config.validate import validate

#: Largest file that is read, in bytes.
MAX_FILE_BYTES: Final = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class LoadedConfig:
    """A valid configuration with the warnings about it and the place that it came from.

    `base_dir` is the directory that its relative paths are taken from; `tree` is what `config` was
    built from, as plain data with the keys of the file.
    """

    config: Config
    warnings: tuple[Diagnostic, ...]
    path: str
    base_dir: str
    tree: Mapping[str, Any] = field(default_factory=dict)


def load_file(path: str) -> LoadedConfig:
    """Load and validate the file at `path`.

    Raises ConfigError: stage "read" when the file cannot be read as UTF-8, "parse" when it is no
    configuration, "validation" when its values cannot work.
    """
    return load_text(read_text(path), path)


def load_text(text: str, path: str) -> LoadedConfig:
    """Load and validate a configuration from text; `path` names it and gives its directory.

    Raises ConfigError as load_file does, except for stage "read".
    """
    try:
        document = parse_document(text)
    except DocumentError as error:
        raise ConfigError(
            [_parse_error(path, (), error.line, error.column, error.message, "syntax")], "parse"
        ) from error
    warnings: list[Diagnostic] = []
    return _load(_convert(document, path, warnings), path, document, warnings)


def load_tree(tree: Mapping[str, Any], path: str) -> LoadedConfig:
    """Load and validate plain data with the keys of a file, as a change of configuration makes it.

    `path` is that of the start-up file: it gives the directory of relative paths. Raises
    ConfigError like load_text; its diagnostics have key paths and no places.
    """
    return _load(tree, path, None, [])


def _load(
    tree: Mapping[str, Any], path: str, document: Document | None, warnings: list[Diagnostic]
) -> LoadedConfig:
    findings = check_schema(tree, document or Document(nodes.Mapping(0, 0)))
    if findings:
        raise ConfigError([_parse_error(path, *finding) for finding in findings], "parse", warnings)
    config = build_config(tree)
    base_dir = config_base_dir(path)
    report = Report(path, document)
    validate(config, report, base_dir)
    warnings += report.warnings
    if report.errors:
        raise ConfigError(report.errors, "validation", warnings)
    return LoadedConfig(config, tuple(warnings), path, base_dir, tree)


def _convert(document: Document, path: str, warnings: list[Diagnostic]) -> dict[str, Any]:
    def warn(key: KeyPath, node: Scalar, message: str) -> None:
        warnings.append(
            Diagnostic(
                path,
                node.line,
                node.column,
                format_key_path(key),
                printable(message, 200),
                "warning",
                "parse",
                "unknown-key",
            )
        )

    return convert_document(document.root, load_schema(), warn)


def _parse_error(
    file: str, path: KeyPath, line: int, column: int, message: str, code: str
) -> Diagnostic:
    key = format_key_path(path)
    return Diagnostic(file, line, column, key, printable(message, 1000), "error", "parse", code)


def read_text(path: str) -> str:
    """Return the text of the file; raises ConfigError with stage "read"."""
    try:
        with open(path, "rb", opener=_open_without_waiting) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                # a device or a pipe could deliver without end
                raise OSError(errno.EINVAL, "not a regular file")
            content = file.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise _unreadable(path, f'reading config "{printable(path, 4096)}": {reason}') from error
    if len(content) > MAX_FILE_BYTES:
        raise _unreadable(
            path,
            f'reading config "{printable(path, 4096)}": larger than {MAX_FILE_BYTES} bytes',
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        column = error.start - (content.rfind(b"\n", 0, error.start) + 1) + 1
        raise _unreadable(
            path,
            f'reading config "{printable(path, 4096)}": not UTF-8 text (byte {error.start}); the '
            "argument must be the path of the YAML file and not of a binary",
            line,
            column,
        ) from error


def _open_without_waiting(path: str, flags: int) -> int:
    # a pipe without a writer would block the open
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)


def _unreadable(path: str, message: str, line: int = 0, column: int = 0) -> ConfigError:
    stage: Stage = "read"
    return ConfigError(
        [Diagnostic(path, line, column, "", message, "error", stage, "unreadable")], stage
    )
