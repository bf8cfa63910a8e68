"""Data sources: csv and cidr tables, limits and error texts (chapter 30 section 10)."""

from __future__ import annotations

import ipaddress
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conduit.config import DataSource, DataSourceLimits
from conduit.policy.tables import (
    CidrTable,
    CsvTable,
    Limits,
    TableError,
    load_tables,
    parse_cidr,
    parse_csv,
    parse_prefix,
)

WIDE = Limits(1 << 30, 10_000_000, 1024, 4096)


def csv(text: str, key: str = "", value: str = "", limits: Limits = WIDE) -> CsvTable:
    return parse_csv("t", text, key, value, limits)


def cidr(text: str, limits: Limits = WIDE) -> CidrTable:
    return parse_cidr("t", text, limits)


def test_ch30_example_29_longest_prefix_and_later_line_win() -> None:
    table = cidr("10.0.0.0/8 outer\n10.1.0.0/16 inner\n10.1.0.0/16 later\n")
    assert table.get("10.1.2.3") == "later"
    assert table.get("10.2.0.1") == "outer"
    assert table.get("192.0.2.1") is None
    with pytest.raises(TableError, match="line 1: too many fields"):
        cidr("10.0.0.0/8 hq # x")
    assert cidr("10.1.2.3/8").get("10.200.0.1") == "1"


def test_ch30_example_30_named_columns_and_duplicates() -> None:
    table = csv("qname,action\nbad.test.,block\nbad.test.,allow\n", "qname", "action")
    assert table.get("bad.test.") == "allow"
    assert table.get("BAD.test.") == ""
    assert table.get("bad.test") == ""


def test_ch30_example_31_a_late_header_row_is_swallowed() -> None:
    table = csv("a,1\nb,value\nc,3\n")
    assert (table.get("a"), table.get("b"), table.get("c")) == ("1", "", "3")


def test_ch30_example_32_not_enough_columns() -> None:
    with pytest.raises(TableError, match="line 1: not enough columns"):
        csv("onlykey\n")


def test_ch30_example_33_entries_count_duplicates(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,1\na,2\na,3\n")
    source = DataSource("t", "csv", "t.csv")
    limits = DataSourceLimits(max_entries=2)
    with pytest.raises(TableError, match=r"data source 't'.*exceeds max_entries 2"):
        load_tables([source], limits, str(tmp_path))
    wider = DataSource("t", "csv", "t.csv", max_entries=3)
    assert len(load_tables([wider], limits, str(tmp_path))["t"]) == 1


def test_columns_by_header_in_any_order() -> None:
    table = csv("value, key\n1, a\n")
    assert table.get("a") == "1"


def test_comments_blank_lines_crlf_and_missing_last_newline() -> None:
    table = csv("# c\r\n\r\n  a , 1 \r\n\tb,2")
    assert dict(table.values) == {"a": "1", "b": "2"}


def test_a_bom_is_data() -> None:
    assert csv("\ufeffa,1\n").get("\ufeffa") == "1"


def test_u001c_is_data_and_not_white_space() -> None:
    assert csv("a\x1c,1\n").get("a\x1c") == "1"


def test_other_line_separators_do_not_split() -> None:
    assert csv("a\x85b,1\n").get("a\x85b") == "1"


def test_key_and_value_limits_name_the_line() -> None:
    with pytest.raises(TableError, match="line 2: key length 5 exceeds max_key_bytes 4"):
        csv("ok,1\nlonge,1\n", limits=Limits(100, 100, 4, 9))
    with pytest.raises(TableError, match="line 1: value length 4 exceeds max_value_bytes 3"):
        csv("k,ää\n", limits=Limits(100, 100, 9, 3))


@pytest.mark.parametrize(
    "text",
    [
        "10.0.0.0/33",
        "::/129",
        "10.0.0.0/",
        "10.0.0.0/x",
        "010.0.0.0/8",
        "10.0.0/8",
        "a",
        "10.0.0.0/8/9",
        "fe80::1%lo",
        "10.0.0.0/255.0.0.0",
        "10.0.0.0/+8",
    ],
)
def test_invalid_prefixes(text: str) -> None:
    with pytest.raises(TableError, match="line 1: invalid CIDR prefix or address"):
        cidr(text)


def test_leading_zeros_are_fine_in_lengths() -> None:
    assert parse_prefix("10.0.0.0/08") == (32, 8, 10)


def test_families_are_separate() -> None:
    table = cidr("0.0.0.0/0 four\n::/0 six\n")
    assert table.get("192.0.2.1") == "four"
    assert table.get("::ffff:192.0.2.1") == "six"
    assert table.get("nonsense") is None


def test_file_errors(tmp_path: Path) -> None:
    with pytest.raises(TableError, match=r"failed to read .*nope: No such file"):
        load_tables([DataSource("t", "csv", "nope")], None, str(tmp_path))
    (tmp_path / "bad").write_bytes(b"a,1\n\xff\xfe,2\n")
    with pytest.raises(TableError, match="invalid UTF-8: line 2"):
        load_tables([DataSource("t", "csv", "bad")], None, str(tmp_path))
    (tmp_path / "big").write_bytes(b"a,1\n" * 10)
    with pytest.raises(TableError, match="exceeds max_file_bytes 39"):
        load_tables([DataSource("t", "csv", "big", max_file_bytes=39)], None, str(tmp_path))
    assert load_tables([DataSource("t", "csv", "big", max_file_bytes=40)], None, str(tmp_path))


def test_total_and_count_limits(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a,1\n")
    sources = [DataSource(f"t{n}", "csv", "a") for n in range(3)]
    with pytest.raises(TableError, match="aggregate size 12 bytes exceeds max_total_bytes 11"):
        load_tables(sources, DataSourceLimits(max_total_bytes=11), str(tmp_path))
    with pytest.raises(TableError, match="too many data_sources entries: 3 exceeds max_tables 2"):
        load_tables(sources, DataSourceLimits(max_tables=2), str(tmp_path))


networks = st.one_of(
    st.ip_addresses(v=4).flatmap(
        lambda a: st.integers(0, 32).map(lambda n: ipaddress.ip_network((a, n), strict=False))
    ),
    st.ip_addresses(v=6).flatmap(
        lambda a: st.integers(0, 128).map(lambda n: ipaddress.ip_network((a, n), strict=False))
    ),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(networks, max_size=12), st.ip_addresses())
def test_longest_prefix_match_agrees_with_the_model(
    prefixes: list[ipaddress.IPv4Network | ipaddress.IPv6Network],
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    table = cidr("".join(f"{prefix} v{n}\n" for n, prefix in enumerate(prefixes)))
    best: tuple[int, str] | None = None
    for n, prefix in enumerate(prefixes):
        covers = prefix.version == address.version and address in prefix
        if covers and (best is None or prefix.prefixlen >= best[0]):
            best = (prefix.prefixlen, f"v{n}")
    assert table.get(str(address)) == (best[1] if best else None)


def test_large_tables_load_without_pathology() -> None:
    started = time.monotonic()
    small = csv("".join(f"n{n}.test.,block\n" for n in range(20_000)))
    first = time.monotonic() - started
    started = time.monotonic()
    large = csv("".join(f"n{n}.test.,block\n" for n in range(100_000)))
    second = time.monotonic() - started
    assert (len(small), len(large)) == (20_000, 100_000)
    # linear: five times the lines may not cost fifteen times the time
    assert second < 15 * max(first, 0.01)
