"""Data sources: named read-only tables loaded into a snapshot (chapter 30 section 10).

`CsvTable` maps keys to values exactly; `CidrTable` finds the most specific prefix that covers an
address. Loading reads at most the limits allow and names file, line and cause when it fails.
"""

from __future__ import annotations

import io
import os
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from conduit.config import DataSource, DataSourceLimits

DEFAULT_MAX_FILE_BYTES: Final = 16_777_216
DEFAULT_MAX_ENTRIES: Final = 1_000_000
DEFAULT_MAX_KEY_BYTES: Final = 1024
DEFAULT_MAX_VALUE_BYTES: Final = 4096
DEFAULT_MAX_TABLES: Final = 64
DEFAULT_MAX_TOTAL_BYTES: Final = 67_108_864
# lines between two pauses in a load, a power of two
_BREATHER_LINES: Final = 128

# White space at the ends of lines and fields, as the reference trims it (Unicode White_Space);
# Python's own set also holds U+001C to U+001F, which are data here.
_SPACE: Final = (
    "\t\n\x0b\x0c\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009"
    "\u200a\u2028\u2029\u202f\u205f\u3000"
)


class TableError(Exception):
    """A table cannot be loaded; the text says why, with the line where there is one."""


@dataclass(frozen=True)
class Limits:
    """The resolved limits of one table."""

    max_file_bytes: int
    max_entries: int
    max_key_bytes: int
    max_value_bytes: int


class CsvTable:
    """Exact look-up by key, case-sensitive, nothing trimmed."""

    __slots__ = ("name", "values")

    def __init__(self, name: str, values: Mapping[str, str]) -> None:
        self.name = name
        self.values = values

    def get(self, key: str) -> str:
        """Return the value of `key`; the empty string for a miss."""
        return self.values.get(key, "")

    def __len__(self) -> int:
        return len(self.values)


class CidrTable:
    """Longest-prefix match: one dictionary a prefix length, the longest length first."""

    __slots__ = ("_v4", "_v6", "name")

    def __init__(
        self,
        name: str,
        v4: Mapping[int, Mapping[int, str]],
        v6: Mapping[int, Mapping[int, str]],
    ) -> None:
        """`v4` and `v6` map prefix length to network number (host bits cut off) to value."""
        self.name = name
        self._v4 = [(32 - length, v4[length]) for length in sorted(v4, reverse=True)]
        self._v6 = [(128 - length, v6[length]) for length in sorted(v6, reverse=True)]

    def get(self, address: str) -> str | None:
        """Return the value of the most specific prefix that covers `address`, or None.

        An address that does not parse is a miss.
        """
        try:
            if ":" in address:
                packed = socket.inet_pton(socket.AF_INET6, address.partition("%")[0])
                prefixes = self._v6
            else:
                packed = socket.inet_pton(socket.AF_INET, address)
                prefixes = self._v4
        except (OSError, ValueError):
            return None
        number = int.from_bytes(packed, "big")
        for shift, networks in prefixes:
            value = networks.get(number >> shift)
            if value is not None:
                return value
        return None

    def covers(self, address: str) -> bool:
        """True when any prefix covers `address`, whatever its value."""
        return self.get(address) is not None

    def __len__(self) -> int:
        return sum(len(networks) for _, networks in (*self._v4, *self._v6))


Table = CsvTable | CidrTable


def load_tables(
    sources: Sequence[DataSource], limits: DataSourceLimits | None, base_dir: str
) -> dict[str, Table]:
    """Load every table of a validated configuration, in list order.

    Relative paths are taken from `base_dir`. Raises TableError at the first problem, with the
    table's name.
    """
    max_tables = (limits.max_tables if limits else 0) or DEFAULT_MAX_TABLES
    if len(sources) > max_tables:
        raise TableError(
            f"too many data_sources entries: {len(sources)} exceeds max_tables {max_tables}"
        )
    max_total = (limits.max_total_bytes if limits else 0) or DEFAULT_MAX_TOTAL_BYTES
    total = 0
    tables: dict[str, Table] = {}
    for source in sources:
        path = os.path.join(base_dir, source.path)
        try:
            bounds = resolve_limits(source, limits)
            text, size = _read(path, bounds.max_file_bytes)
            total += size
            if source.type == "cidr":
                tables[source.name] = parse_cidr(source.name, text, bounds)
            else:
                tables[source.name] = parse_csv(
                    source.name, text, source.key_column, source.value_column, bounds
                )
        except TableError as error:
            raise TableError(f"data source '{source.name}': {path}: {error}") from error
        if total > max_total:
            raise TableError(
                f"data source '{source.name}': data_sources aggregate size {total} bytes exceeds "
                f"max_total_bytes {max_total}"
            )
    return tables


def resolve_limits(source: DataSource, limits: DataSourceLimits | None) -> Limits:
    """Return the limits of one table: its own, then the block's, then the built-in ones."""

    def pick(own: int | None, block: int, default: int) -> int:
        return own or block or default

    return Limits(
        pick(source.max_file_bytes, limits.max_file_bytes if limits else 0, DEFAULT_MAX_FILE_BYTES),
        pick(source.max_entries, limits.max_entries if limits else 0, DEFAULT_MAX_ENTRIES),
        pick(source.max_key_bytes, limits.max_key_bytes if limits else 0, DEFAULT_MAX_KEY_BYTES),
        pick(
            source.max_value_bytes,
            limits.max_value_bytes if limits else 0,
            DEFAULT_MAX_VALUE_BYTES,
        ),
    )


def _read(path: str, max_bytes: int) -> tuple[str, int]:
    try:
        with open(path, "rb") as file:
            data = file.read(max_bytes + 1)
    except OSError as error:
        raise TableError(f"failed to read {path}: {error.strerror or error}") from error
    if len(data) > max_bytes:
        raise TableError(f"file {path} exceeds max_file_bytes {max_bytes}")
    try:
        return data.decode("utf-8"), len(data)
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise TableError(
            f"failed to read {path}: invalid UTF-8: line {line}: {error.reason}"
        ) from error


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield physical line numbers and trimmed lines, empty and comment lines left out."""
    # read lazily: splitting a large text at once holds up every other thread
    for number, line in enumerate(io.StringIO(text, newline="\n"), 1):
        if not number & _BREATHER_LINES - 1:
            # lets waiting queries run now instead of at the next forced switch
            time.sleep(0)
        line = line.strip(_SPACE)
        if line and line[0] != "#":
            yield number, line


def parse_csv(name: str, text: str, key_column: str, value_column: str, limits: Limits) -> CsvTable:
    """Parse a comma-separated table; raises TableError (chapter 30 section 10.4)."""
    key_name, value_name = key_column or "key", value_column or "value"
    key_at, value_at = 0, 1
    header_found = False
    entries = 0
    values: dict[str, str] = {}
    for number, line in _lines(text):
        fields = [field.strip(_SPACE) for field in line.split(",")]
        if not header_found and (
            key_name in fields or value_name in fields or fields[0].lower() in ("qname", "key")
        ):
            header_found = True
            key_at = fields.index(key_name) if key_name in fields else 0
            value_at = fields.index(value_name) if value_name in fields else 1
            continue
        if len(fields) <= max(key_at, value_at):
            raise TableError(f"line {number}: not enough columns")
        key, value = fields[key_at], fields[value_at]
        _check_length(number, "key", key, limits.max_key_bytes)
        _check_length(number, "value", value, limits.max_value_bytes)
        entries += 1
        if entries > limits.max_entries:
            raise TableError(f"line {number}: exceeds max_entries {limits.max_entries}")
        values[key] = value
    return CsvTable(name, values)


def parse_cidr(name: str, text: str, limits: Limits) -> CidrTable:
    """Parse a table of prefixes; raises TableError (chapter 30 section 10.5)."""
    v4: dict[int, dict[int, str]] = {}
    v6: dict[int, dict[int, str]] = {}
    # one object for each distinct value, however many lines carry it
    interned: dict[str, str] = {}
    for entries, (number, line) in enumerate(_lines(text), 1):
        fields = line.split()
        if len(fields) > 2:
            raise TableError(f"line {number}: too many fields")
        value = fields[1] if len(fields) == 2 else "1"
        _check_length(number, "value", value, limits.max_value_bytes)
        prefix = parse_prefix(fields[0])
        if prefix is None:
            raise TableError(f"line {number}: invalid CIDR prefix or address '{fields[0]}'")
        if entries > limits.max_entries:
            raise TableError(f"line {number}: exceeds max_entries {limits.max_entries}")
        bits, length, network = prefix
        by_length = v4 if bits == 32 else v6
        by_length.setdefault(length, {})[network] = interned.setdefault(value, value)
    return CidrTable(name, v4, v6)


def parse_prefix(text: str) -> tuple[int, int, int] | None:
    """Return address bits (32 or 128), prefix length and network number, or None.

    Host bits are ignored; a bare address is a prefix of full length. No netmask, no zone.
    """
    address, slash, length_text = text.partition("/")
    bits = 128 if ":" in address else 32
    length = bits
    if slash:
        if not (length_text.isascii() and length_text.isdigit() and len(length_text) <= 4):
            return None
        length = int(length_text)
        if length > bits:
            return None
    try:
        # inet_pton refuses what the reference refuses: leading zeros, short forms, zones
        packed = socket.inet_pton(socket.AF_INET6 if bits == 128 else socket.AF_INET, address)
    except (OSError, ValueError):
        return None
    return bits, length, int.from_bytes(packed, "big") >> (bits - length)


def _check_length(number: int, what: str, text: str, maximum: int) -> None:
    length = len(text) if text.isascii() else len(text.encode("utf-8"))
    if length > maximum:
        raise TableError(
            f"line {number}: {what} length {length} exceeds max_{what}_bytes {maximum}"
        )
