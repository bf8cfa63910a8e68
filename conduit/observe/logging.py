"""The process log: one line an event, structured fields after the message (chapter 50 section 3).

Every part of the project logs through `get_log(target)`; targets keep the first components that
operators filter on (`conduit`, `conduit_core`, `conduit_config`, ...).
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from typing import TextIO

TRACE = 5
OFF = 100
LEVELS: Mapping[str, int] = {
    "off": OFF,
    "error": logging.ERROR,
    "warn": logging.WARNING,
    "info": logging.INFO,
    "debug": logging.DEBUG,
    "trace": TRACE,
}
_NAMES = {
    logging.ERROR: "ERROR",
    logging.WARNING: " WARN",
    logging.INFO: " INFO",
    logging.DEBUG: "DEBUG",
    TRACE: "TRACE",
}
_CONTROL = dict.fromkeys([*range(32), 127])


def strip_control(text: str) -> str:
    """Return `text` without ASCII control characters, so that a log line stays one line."""
    # nearly every text is clean, and the look costs a fraction of the work
    return text if text.isprintable() else text.translate(_CONTROL)


class Log:
    """A logger for one target: `info(message, key=value, ...)`.

    Fields print in the order given; None prints as `-` (chapter 50 section 3.3).
    """

    __slots__ = ("_logger", "debug_enabled", "target")

    def __init__(self, target: str) -> None:
        self.target = target
        self._logger = logging.getLogger(target)
        #: True when debug lines of this target are written: ask before building fields. A plain
        #: attribute, because the query path asks several times a query; `configure` sets it.
        self.debug_enabled = False

    def log(self, level: int, message: str, /, **fields: object) -> None:
        """Write one line at `level` (a `logging` level number)."""
        if self._logger.isEnabledFor(level):
            if _writers:
                _writers[0].write(level, self.target, message, fields)
            else:
                self._logger.log(level, "%s", message, extra={"conduit_fields": fields})

    def error(self, message: str, /, **fields: object) -> None:
        """Write one line at level error."""
        self.log(logging.ERROR, message, **fields)

    def exception(self, message: str, /, **fields: object) -> None:
        """Write one line at level error with the traceback of the exception being handled."""
        self._logger.error("%s", message, exc_info=True, extra={"conduit_fields": fields})

    def warn(self, message: str, /, **fields: object) -> None:
        """Write one line at level warn."""
        self.log(logging.WARNING, message, **fields)

    def info(self, message: str, /, **fields: object) -> None:
        """Write one line at level info."""
        self.log(logging.INFO, message, **fields)

    def debug(self, message: str, /, **fields: object) -> None:
        """Write one line at level debug."""
        self.log(logging.DEBUG, message, **fields)


_logs: dict[str, Log] = {}


def get_log(target: str) -> Log:
    """Return the log of `target`; the same object for the same target."""
    log = _logs.get(target)
    if log is None:
        log = _logs.setdefault(target, Log(target))
        _set_level(log)
    return log


class _Writer:
    """Writes lines to the process log past the `logging` machinery, which costs as much again.

    Made by `configure`; without it (in tests) lines go through `logging`.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self._second = -1
        self._stamp = ""

    def write(self, level: int, target: str, message: str, fields: Mapping[str, object]) -> None:
        """Write one line; errors of the stream are nobody's."""
        now = time.time()
        with self._lock:
            line = f"{self._time(now)} {_NAMES[level]} {target}: {_content(message, fields)}\n"
            try:
                self._stream.write(line)
                self._stream.flush()
            except (OSError, ValueError):
                pass

    def _time(self, now: float) -> str:
        second = int(now)
        if second != self._second:
            self._second = second
            self._stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        return f"{self._stamp}.{min(999_999, int((now - second) * 1_000_000)):06d}Z"


_writers: list[_Writer] = []


def _content(message: str, fields: Mapping[str, object]) -> str:
    parts = [strip_control(message)]
    parts.extend([f"{key}={_field_text(value)}" for key, value in fields.items()])
    return " ".join(parts)


class LineFormatter(logging.Formatter):
    """`<UTC RFC 3339, microseconds> <LEVEL> <target>: <message> <key>=<value> ...`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the finished line of `record`."""
        seconds = int(record.created)
        micros = min(999_999, int((record.created - seconds) * 1_000_000))
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
        level = _NAMES.get(record.levelno, record.levelname.rjust(5))
        fields: Mapping[str, object] = getattr(record, "conduit_fields", {})
        line = (
            f"{stamp}.{micros:06d}Z {level} {record.name}: {_content(record.getMessage(), fields)}"
        )
        if record.exc_info and record.exc_info[1] is not None:
            line += " traceback=" + _field_text(_one_line(record.exc_info[1]))
        return line


def _field_text(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    text = strip_control(str(value))
    return text if text else "-"


def _one_line(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)).replace("\n", " | ")


def parse_directives(text: str) -> tuple[dict[str, int], list[str]]:
    """Parse `RUST_LOG` directives (chapter 50 section 3.2).

    Returns the level per target prefix (`""` holds the bare level) and the directives that could
    not be understood.
    """
    levels: dict[str, int] = {}
    bad: list[str] = []
    for directive in text.split(","):
        directive = directive.strip()
        if not directive:
            continue
        target, sign, level = directive.partition("=")
        target, level = target.strip(), level.strip().lower()
        if not sign and target.lower() in LEVELS:
            levels[""] = LEVELS[target.lower()]
        elif not sign and target.replace("_", "").replace(":", "").isalnum():
            levels[target] = TRACE
        elif sign and target and level in LEVELS:
            levels[target] = LEVELS[level]
        else:
            bad.append(directive)
    return levels, bad


class _TargetFilter(logging.Filter):
    def __init__(self, levels: Mapping[str, int]) -> None:
        super().__init__()
        self._levels = sorted(levels.items(), key=lambda item: -len(item[0]))
        self._cache: dict[str, int] = {}

    def threshold(self, target: str) -> int:
        """Return the lowest level of `target` that is written: the longest prefix wins."""
        level = self._cache.get(target)
        if level is None:
            level = next((lvl for prefix, lvl in self._levels if target.startswith(prefix)), OFF)
            self._cache[target] = level
        return level

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno >= self.threshold(record.name)


# the filter of the last `configure`, for logs that are first asked for later
_configured: list[_TargetFilter] = []


def _set_level(log: Log) -> None:
    if _configured:
        level = min(_configured[0].threshold(log.target), OFF)
        logging.getLogger(log.target).setLevel(level)
        log.debug_enabled = level <= logging.DEBUG


def configure(level: str, output: str, environ: Mapping[str, str] | None = None) -> None:
    """Set up the process log.

    `level` is a name of `LEVELS`, `output` is `stderr` or `stdout`. `RUST_LOG` in `environ`
    (default: the process environment) wins over `level` where it is well formed.
    """
    environment = os.environ if environ is None else environ
    levels: dict[str, int] = {}
    directives = environment.get("RUST_LOG", "").strip()
    if directives:
        levels, bad = parse_directives(directives)
        for directive in bad:
            sys.stderr.write(f"conduit: RUST_LOG directive ignored: {strip_control(directive)!r}\n")
    if not levels:
        levels = {"": LEVELS[level or "info"]}
    stream: TextIO = sys.stdout if output == "stdout" else sys.stderr
    handler = logging.StreamHandler(stream)
    handler.setFormatter(LineFormatter())
    targets = _TargetFilter(levels)
    handler.addFilter(targets)
    logging.addLevelName(TRACE, "TRACE")
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging.raiseExceptions = False
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(min(levels.values()))
    _configured[:] = [targets]
    _writers[:] = [_Writer(stream)]
    for log in list(_logs.values()):
        _set_level(log)
