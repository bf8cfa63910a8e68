"""The objects `lookup`, `metrics` and `log` of scripts, and what one run consists of.

All of them work on the `ScriptRun` that stands in the scope of the run (chapter 35 sections 11-14).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import TYPE_CHECKING

from conduit.policy.tables import CidrTable, CsvTable, Table
from conduit.rhai import Scope
from conduit.scripting.effects import Effects
from conduit.scripting.reports import ScriptReports
from conduit.scripting.scan import DISALLOWED_LABELS, MetricRegistry
from conduit.scripting.transaction_view import HostError, TransactionView

if TYPE_CHECKING:
    from conduit.transaction import Transaction


class ScriptHome:
    """What all runs of one script share: its identity, and what the snapshot gives it."""

    __slots__ = ("metrics", "on_response", "path", "reports", "rule", "tables")

    def __init__(
        self,
        path: str,
        rule: str,
        on_response: bool,
        tables: Mapping[str, Table],
        metrics: MetricRegistry,
        reports: ScriptReports,
    ) -> None:
        self.path = path
        self.rule = rule
        self.on_response = on_response
        self.tables = tables
        self.metrics = metrics
        self.reports = reports


class ScriptRun(Scope):
    """The scope of one run: the script's variables, and what its host functions work on."""

    __slots__ = ("effects", "home", "txn", "view")

    def __init__(self, txn: Transaction, home: ScriptHome) -> None:
        self.names = []
        self.cells = []
        self.txn = txn
        self.home = home
        self.effects = Effects()
        self.view = TransactionView(txn, self.effects, home.rule, home.on_response)

    # tables (section 11)

    def lookup(self, table: str, key: str) -> str:
        """Return the value of a csv row, the empty string without one."""
        found = self.home.tables.get(table)
        if not isinstance(found, CsvTable):
            self._unknown(table)
            return ""
        return found.get(key)

    def lookup_ip(self, table: str, address: str) -> str:
        """Return the value of the most specific prefix, the empty string without one."""
        found = self.home.tables.get(table)
        if not isinstance(found, CidrTable):
            self._unknown(table)
            return ""
        value = found.get(address)
        if value is None:
            if not _is_address(address):
                self.home.reports.bad_address(table, address)
            return ""
        return value

    def _unknown(self, table: str) -> None:
        home = self.home
        home.reports.unknown_table(self.txn.recorder, home.path, home.rule, table)

    # metrics (section 13)

    def count(self, name: str, delta: int, labels: Mapping[str, str]) -> None:
        """Queue an increment; raises HostError for a name or label the load did not see."""
        known = self.home.metrics.metrics.get(name)
        if known is None:
            raise HostError(f"metric '{name}': metric not registered at script load")
        for key in labels:
            if key in DISALLOWED_LABELS:
                raise HostError(f"metric '{key}': high-cardinality label key is not allowed")
            if key not in known.labels:
                raise HostError(f"metric '{name}': unexpected label key '{key}'")
        # a label that the call leaves out has the empty value
        pairs = tuple((key, labels.get(key, "")) for key in known.ordered)
        self.effects.count(name, max(0, delta), pairs)

    # log lines (section 14)

    def log(self, level: str, message: str) -> None:
        """Write a log line, at once and throttled."""
        home = self.home
        home.reports.script_line(level, home.path, home.rule, self.txn.id, message)


class Lookup:
    """The `lookup` object."""

    __slots__ = ("run",)

    def __init__(self, run: ScriptRun) -> None:
        self.run = run

    def lookup(self, table: str, key: str) -> str:
        """See `ScriptRun.lookup`."""
        return self.run.lookup(table, key)

    def lookup_ip(self, table: str, address: str) -> str:
        """See `ScriptRun.lookup_ip`."""
        return self.run.lookup_ip(table, address)


class Metrics:
    """The `metrics` object."""

    __slots__ = ("run",)

    def __init__(self, run: ScriptRun) -> None:
        self.run = run

    def inc(self, name: str, delta: int) -> None:
        """Count without labels."""
        self.run.count(name, delta, {})


class Log:
    """The `log` object."""

    __slots__ = ("run",)

    def __init__(self, run: ScriptRun) -> None:
        self.run = run

    def info(self, message: str) -> None:
        """Log at INFO."""
        self.run.log("info", message)

    def warn(self, message: str) -> None:
        """Log at WARN."""
        self.run.log("warn", message)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return "%" not in text
