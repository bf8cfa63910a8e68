"""Hostile and broken files: an error with its place, in bounded time and memory."""

from __future__ import annotations

import resource
import time
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conduit.config import ConfigError, Diagnostic, load_file, load_text
from conduit.config.document import MAX_DEPTH, parse_document
from tests.config.support import MINIMAL, errors, extend, failure, has

BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 12)
)


@pytest.fixture(params=["libyaml", "python"])
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run with each of the two parsers that PyYAML may have."""
    if request.param == "python":
        monkeypatch.setattr("conduit.config.document._LOADER", yaml.SafeLoader)
    elif not yaml.__with_libyaml__:
        pytest.skip("PyYAML was built without libyaml")


@pytest.mark.parametrize("text", ["", "\n", "# only a comment\n", "---\n", "~\n", "\ufeff"])
def test_empty_files_lack_their_required_keys(text: str) -> None:
    assert errors(text, "parse") == [
        "test.yaml:1:1: schema_version: missing required key 'schema_version'",
        "test.yaml:1:1: pools: missing required key 'pools'",
    ]


@pytest.mark.parametrize("null", ["null", "~", "Null"])
def test_pools_null(null: str) -> None:
    assert errors(f"schema_version: 1\npools: {null}\n", "parse") == [
        "test.yaml:2:8: pools: expected a list, got null"
    ]


def test_blank_blocks_are_empty() -> None:
    text = "schema_version: 1\npools:\nforward:\nlogging:\ncontrol:\n"
    config = load_text(text, "x").config
    assert config.pools == ()
    assert config.forward.timeout_ms == 2000
    assert config.control is None


@pytest.mark.parametrize(
    ("text", "line", "fragment"),
    [
        ("schema_version: 1\npools: [\n", 3, "invalid YAML"),
        ("schema_version: 1\n\tpools: []\n", 2, "invalid YAML"),
        ("schema_version: 1\npools: []\npools: []\n", 3, "duplicate key 'pools' (first on line 2)"),
        ("schema_version: 1\n'schema_version': 1\n", 2, "duplicate key 'schema_version'"),
        ("- 1\n", 1, "the top level must be a mapping"),
        ("text\n", 1, "the top level must be a mapping"),
        ("a: 1\n---\nb: 2\n", 2, "more than one YAML document"),
        ("? [a]\n: 1\n", 1, "a key must be a plain text"),
        ("? {a: 1}\n: 1\n", 1, "a key must be a plain text"),
        ("a: *b\n", 1, "unknown alias '*b'"),
        ("a: &a [*a]\n", 1, "alias '*a' contains itself"),
        ("a: &a {b: *a}\n", 1, "alias '*a' contains itself"),
        ("a: !python/object:os.system x\n", 1, "the tag '!python/object:os.system'"),
        ("a: !!python/name:os.system x\n", 1, "missing required key"),
        ("a: 1\nb: \x07\n", 2, "U+0007 is not allowed"),
        ("a: \ud800\n", 1, ""),
        # libyaml looks ahead for a key and meets its own limit first
        ("a:\n " + "[" * 5000, 2, "nest"),
        ("a: " + "{a: " * 5000, 1, f"nested deeper than {MAX_DEPTH}"),
        ("- " * 5000, 1, f"nested deeper than {MAX_DEPTH}"),
    ],
)
@pytest.mark.usefixtures("parser")
def test_broken_documents(text: str, line: int, fragment: str) -> None:
    error = failure(text)
    assert error.stage == "parse"
    assert fragment in error.diagnostics[0].message
    assert error.diagnostics[0].line == line
    assert error.diagnostics[0].column >= 1


@pytest.mark.usefixtures("parser")
def test_alias_bomb_ends_quickly_in_bounded_memory() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.process_time()
    assert has(errors(BOMB, "parse"), "aliases expand to too many values")
    assert time.process_time() - started < 2
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000


def test_alias_bomb_inside_the_bounds_of_one_alias() -> None:
    text = "a: &a [" + "x, " * 50_000 + "x]\nb: [" + "*a, " * 10 + "*a]\n"
    assert has(errors(text, "parse"), "aliases expand to too many values")


def test_huge_scalar_ends_quickly() -> None:
    started = time.process_time()
    text = MINIMAL.replace("default", "x" * 10_000_000)
    assert errors(text, "parse") == [
        "test.yaml:3:16: a value of 10000000 characters is too long; at most 65536"
    ]
    assert time.process_time() - started < 5


def test_anchors_and_aliases_work() -> None:
    config = extend(
        "rules:\n  rules:\n"
        "    - {name: a, hook: request, selectors: &s [{type: tag, value: t}], actions: []}\n"
        "    - {name: b, hook: request, selectors: *s, actions: []}\n"
    )
    assert config.rules.rules[0].selectors == config.rules.rules[1].selectors


def test_merge_keys_are_not_expanded() -> None:
    text = MINIMAL + "forward: {<<: {timeout_ms: 5}}\n"
    loaded = load_text(text, "x")
    assert loaded.config.forward.timeout_ms == 2000
    assert [w.message for w in loaded.warnings] == [
        "unknown key '<<' is ignored: merge keys are not expanded"
    ]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("10", "10"),
        ("NO", "NO"),
        ("1.50", "1.50"),
        ("on", "on"),
        ("012", "012"),
        ("1:30", "1:30"),
        ("~", "~"),
        ("", ""),
        ("null", "null"),
        ("true", "true"),
        ("2001-01-01", "2001-01-01"),
        ("'10'", "10"),
        ("|\n          text\n", "text\n"),
    ],
)
def test_text_fields_keep_their_source(written: str, value: str) -> None:
    config = extend(
        "rules:\n  rules:\n    - name: r\n      hook: request\n      actions: []\n"
        f"      selectors:\n      - type: tag\n        value: {written}\n"
    )
    assert config.rules.rules[0].selectors[0].value == value


@pytest.mark.parametrize(
    ("written", "value"),
    [("0x10", 16), ("0o17", 15), ("0b11", 3), ("+5", 5), ("012", 12), ("4294967295", 4294967295)],
)
def test_integers(written: str, value: int) -> None:
    assert extend(f"forward: {{timeout_ms: {written}}}\n").forward.timeout_ms == value


@pytest.mark.parametrize(
    "written", ["5.0", "1e3", "1_000", "-1", "4294967296", "~", "", "'5'", "0x", "9" * 5000, "[]"]
)
def test_integers_rejected(written: str) -> None:
    lines = errors(MINIMAL + f"forward: {{timeout_ms: {written}}}\n", "parse")
    assert has(lines, "forward.timeout_ms: expected an integer from 0 to 4294967295")


@pytest.mark.parametrize("written", ["true", "True", "TRUE"])
def test_booleans(written: str) -> None:
    assert extend(f"metrics: {{enabled: {written}}}\n").metrics is not None


@pytest.mark.parametrize("written", ["yes", "on", "off", "'true'", "1", "tRUE"])
def test_booleans_rejected(written: str) -> None:
    lines = errors(MINIMAL + f"metrics: {{enabled: {written}}}\n", "parse")
    assert has(lines, "metrics.enabled: expected true or false (unquoted)")


def test_former_names_are_pointed_out() -> None:
    rules = "rules: {rules: [{id: r, hook: request, selectors: [], actions: []}]}\n"
    assert has(errors(MINIMAL + rules, "parse"), "rules.rules[0].name", "is 'id' meant to be it?")
    sampling = "tracing: {activation: {sample_rate: 0.1}}\n"
    loaded = load_text(MINIMAL + sampling, "x")
    assert has([w.message for w in loaded.warnings], "did you mean 'sample_percent'?")


def test_messages_are_one_line_each() -> None:
    text = MINIMAL + 'rules: {rules: [{name: "a\\nb", hook: "x\\e[31m\\n", selectors: [], '
    for line in errors(text + "actions: []}]}\n"):
        assert line.isprintable()
    assert errors('"a\\nb": 1\n', "parse")[0].isprintable()


def test_unreadable_files(tmp_path: Path) -> None:
    binary = tmp_path / "binary"
    binary.write_bytes(b"schema_version: 1\n\x7fELF\xff\xfe")
    with pytest.raises(ConfigError, match="not UTF-8 text") as caught:
        load_file(str(binary))
    assert caught.value.stage == "read"
    assert (caught.value.diagnostics[0].line, caught.value.diagnostics[0].column) == (2, 5)
    for path in (tmp_path / "absent", tmp_path, Path("/dev/zero")):
        with pytest.raises(ConfigError, match='reading config "') as caught:
            load_file(str(path))
        assert caught.value.stage == "read"
    with pytest.raises(ConfigError, match="reading config"):
        load_file("nul\0byte")


@pytest.mark.usefixtures("parser")
def test_parse_document_places() -> None:
    document = parse_document("a:\n  - b: 1\n    c: {d: x}\n")
    assert document.place(("a", 0, "c", "d")) == (3, 12)
    assert document.place(("a", 0, "c")) == (3, 5)
    assert document.place(("a", 0, "missing")) == (2, 5)
    assert document.place(()) == (1, 1)


_WORDS = [
    "schema_version", "pools", "listeners", "rules", "name", "backends", "address", "metrics",
    "1", "-1", "true", "~", "''", "x", "*a", "&a", "!!str", "!x", "<<", "127.0.0.1:53", "0x1F",
    ".inf", "- ", ": ", "\n", "\n  ", "\n    ", "[", "]", "{", "}", ", ", "? ", "| ", "> ", "#",
    "---\n", "%YAML 1.2\n", "'", '"', "\t",
]  # fmt: skip
_TEXT = st.one_of(
    st.text(max_size=200), st.lists(st.sampled_from(_WORDS), max_size=60).map("".join)
)


def _findings(text: str) -> list[Diagnostic]:
    """Return what loading reports; any exception but ConfigError fails the test."""
    try:
        return list(load_text(text, "any.yaml").warnings)
    except ConfigError as error:
        if not error.diagnostics:
            raise
        return error.diagnostics


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_TEXT)
def test_any_text_loads_or_raises_config_error(text: str) -> None:
    assert all(d.line >= 1 and d.column >= 1 for d in _findings(text))


_KEYS = st.sampled_from(
    [
        "name",
        "type",
        "address",
        "value",
        "listeners",
        "rules",
        "selectors",
        "providers",
        "x",
        "lmdb",
    ]
)
_VALUES = st.recursive(
    st.one_of(st.integers(-5, 2**65), st.sampled_from(["a", "''", "~", "true", "", "1.5", "lmdb"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(_KEYS, inner, max_size=4),
    ),
    max_leaves=12,
)
_TOP = st.sampled_from(
    ["pools", "listeners", "forward", "rules", "acls", "lookup", "caches", "events", "metrics",
     "tracing", "control", "logging", "data_sources", "rhai", "dataplane", "shutdown"]
)  # fmt: skip


def _flow(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {_flow(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_flow(v) for v in value) + "]"
    return str(value)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(_TOP, _VALUES, max_size=4))
def test_any_shape_loads_or_raises_config_error(blocks: dict[str, object]) -> None:
    text = "schema_version: 1\n" + "".join(f"{k}: {_flow(v)}\n" for k, v in blocks.items())
    assert all(d.message.isprintable() for d in _findings(text))
