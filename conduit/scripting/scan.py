"""What a script's text names: tables, metrics, response metadata (chapter 35 sections 3 and 13).

Plain text scans, line by line, with no knowledge of comments or strings, as the reference does
them: what they find decides whether a configuration loads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from conduit.policy.tables import CidrTable, CsvTable, Table

#: Label keys that would carry unbounded values.
DISALLOWED_LABELS: Final = frozenset(
    {
        "qname", "client", "client_ip", "client_addr", "backend", "txn_id", "dns_id", "address",
        "ip", "host", "query", "zone", "fqdn",
    }
)  # fmt: skip
METRIC_NAME: Final = re.compile(r"[A-Za-z0-9_]+")

_LOOKUP: Final = re.compile(
    r"(?<![A-Za-z0-9_])(lookup_ip|lookup)(?![A-Za-z0-9_])[ \t]*\([ \t]*([\"'])(.*?)\2"
)
_METRIC: Final = re.compile(
    r"(?<![A-Za-z0-9_])(metrics\.inc_labels|metrics\.inc|metric_inc)(?![A-Za-z0-9_])"
    r"[ \t]*\([ \t]*([\"'])(.*?)\2"
)


class ScanError(ValueError):
    """A script names something it may not; `shape` says what the message is about."""

    def __init__(self, shape: str, message: str) -> None:
        super().__init__(message)
        self.shape = shape


@dataclass
class UserMetric:
    """A metric that scripts may count: its label keys and where it was first named."""

    labels: frozenset[str]
    path: str
    line: int
    #: The label keys in the order of the series.
    ordered: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.ordered = tuple(sorted(self.labels))


@dataclass
class MetricRegistry:
    """The metrics of all scripts of a snapshot."""

    metrics: dict[str, UserMetric] = field(default_factory=dict)

    def add(self, text: str, path: str) -> None:
        """Register what one script names; raises ScanError (shape `metric '<name>'`)."""
        for number, line in enumerate(text.split("\n"), 1):
            for match in _METRIC.finditer(line):
                name = match.group(3)
                labels = frozenset(_label_keys(line, match.start()))
                if not METRIC_NAME.fullmatch(name):
                    raise ScanError(f"metric '{name}'", "invalid metric name")
                for key in sorted(labels & DISALLOWED_LABELS):
                    raise ScanError(f"metric '{key}'", "high-cardinality label key is not allowed")
                known = self.metrics.setdefault(name, UserMetric(labels, path, number))
                if known.labels != labels:
                    raise ScanError(f"metric '{name}'", "conflicting label keys across scripts")


def _label_keys(line: str, start: int) -> Iterator[str]:
    _, opening, rest = line[start:].partition("#{")
    if not opening:
        return
    for part in rest.partition("}")[0].split(","):
        key, colon, _ = part.partition(":")
        if colon:
            yield key.strip()


def check_tables(text: str, tables: Mapping[str, Table], path: str) -> None:
    """Check the table names that stand literally in a script; raises ScanError."""
    for line in text.split("\n"):
        for match in _LOOKUP.finditer(line):
            function, name = match.group(1), match.group(3)
            wanted = CidrTable if function == "lookup_ip" else CsvTable
            if not isinstance(tables.get(name), wanted):
                raise ScanError(f"rule '{path}'", f"unknown data source '{name}' in {function}")
