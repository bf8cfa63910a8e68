"""What scripts make the operator see: errors, log lines, unknown tables, with their throttles.

One object belongs to a snapshot: its counters start anew with each generation (chapter 35, 7, 11
and 14).
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from conduit.observe.logging import get_log

if TYPE_CHECKING:
    from conduit.observe.counters import Recorder

_log = get_log("conduit_core")

_PLAIN_TABLE: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MILESTONES: Final = frozenset({1, 10, 100, 1000, 10_000, 100_000})
_PERIOD_SECONDS: Final = 60.0
_MESSAGE_BYTES: Final = 512


def reason_of(text: str) -> str:
    """Return the `reason` label of a script error from its text (chapter 35 section 7)."""
    lowered = text.lower()
    if "not available in response phase" in lowered or "not available in request phase" in lowered:
        return "phase_guard"
    if "script hook timeout" in lowered:
        return "timeout"
    if "operations limit" in lowered or "too many operations" in lowered:
        return "operation_limit"
    return "eval"


def table_label(name: str) -> str:
    """Return the bounded `table` label for a table name that a script made up."""
    if not name:
        return ""
    return name if _PLAIN_TABLE.fullmatch(name) else "other"


class _Throttle:
    __slots__ = ("last_logged", "last_time", "total")

    def __init__(self) -> None:
        self.total = 0
        self.last_logged = 0
        self.last_time = 0.0


class ScriptReports:
    """Counts and logs for all scripts of one snapshot."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._unknown: dict[tuple[str, str], _Throttle] = {}
        self._lines: dict[tuple[str, str, str], _Throttle] = {}
        #: Told of everything, unthrottled, by who explains one query.
        self.observer: Callable[[str], None] | None = None

    def failed(self, recorder: Recorder | None, script: str, rule: str, error: str) -> None:
        """Report a failed run."""
        reason = reason_of(error)
        if self.observer is not None:
            self.observer(f"fails ({reason}), its effects are dropped: {error}")
        if recorder is not None:
            recorder.script_errors[(reason, script, "")] += 1
        _log.warn("rhai script error", script=script, rule=rule, reason=reason, error=error)

    def unknown_table(self, recorder: Recorder | None, script: str, rule: str, table: str) -> None:
        """Report a look-up in a table that does not exist; the run goes on."""
        label = table_label(table)
        if self.observer is not None:
            self.observer(f"asks table '{table}', which does not exist")
        if recorder is not None:
            recorder.script_errors[("lookup_unknown_table", script, label)] += 1
        now = time.monotonic()
        with self._lock:
            throttle = self._unknown.setdefault((script, label), _Throttle())
            throttle.total += 1
            total = throttle.total
            milestone = total in _MILESTONES
            periodic = not milestone and now - throttle.last_time >= _PERIOD_SECONDS
            if not (milestone or periodic):
                return
            since, throttle.last_logged = total - throttle.last_logged, total
            throttle.last_time = now
        _log.warn(
            "unknown data source in table_lookup; returning empty string",
            script=script,
            rule=rule,
            table=table,
            table_label=label,
            total=total,
            since_last_log=since,
            periodic=periodic,
        )

    def bad_address(self, table: str, address: str) -> None:
        """Report a `lookup_ip` of something that is no address."""
        if self.observer is not None:
            self.observer(f"asks table '{table}' for '{address}', which is no address")
        _log.warn("lookup_ip: invalid IP address argument", table=table, addr=address)

    def script_line(self, level: str, script: str, rule: str, txn_id: int, message: str) -> None:
        """Log a line that a script wrote: calls 1, 100, 200, ... of each script and rule."""
        if self.observer is not None:
            self.observer(f"logs at {level}: {shorten(message)}")
        with self._lock:
            throttle = self._lines.setdefault((script, rule, level), _Throttle())
            throttle.total += 1
            total = throttle.total
            if total != 1 and total % 100:
                return
            since, throttle.last_logged = total - throttle.last_logged, total
        emit = _log.warn if level == "warn" else _log.info
        emit(
            "rhai script log",
            script=script,
            rule=rule,
            txn_id=txn_id,
            total=total,
            since_last_log=since,
            message=shorten(message),
        )


def shorten(message: str) -> str:
    """Cut a message to 512 octets, at a character boundary."""
    data = message.encode("utf-8")
    if len(data) <= _MESSAGE_BYTES:
        return message
    return data[:_MESSAGE_BYTES].decode("utf-8", "ignore") + "…"
