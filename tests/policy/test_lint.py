"""The linter: each code with a configuration that earns it and with ones that do not."""

from __future__ import annotations

import random
import re
import time
from pathlib import Path

import pytest

from conduit.config import load_text
from conduit.policy.compile import compile_policy
from conduit.policy.lint import lint
from conduit.policy.lint_finding import Finding
from conduit.snapshot import RuntimeSnapshot
from conduit.transaction import Transaction
from tests.support.scripted import FakeListener, make_query, snapshot_of

BASE = """
schema_version: 1
listeners: {listeners: [{address: "127.0.0.1:0", protocol: udp}]}
"""
TWO_BACKENDS = (
    'pools: [{name: main, backends: [{address: "127.0.0.1:1"}, {address: "127.0.0.1:2"}]}]\n'
)
ONE_BACKEND = 'pools: [{name: main, backends: [{address: "127.0.0.1:1"}]}]\n'
TWO_POOLS = (
    'pools: [{name: main, backends: [{address: "127.0.0.1:1"}]}, '
    '{name: spare, backends: [{address: "127.0.0.1:1"}]}]\n'
)


def findings(text: str, directory: Path) -> list[Finding]:
    loaded = load_text(BASE + text, str(directory / "test.yaml"))
    return lint(loaded.config, loaded.base_dir)


def codes(text: str, directory: Path) -> list[str]:
    return [finding.code for finding in findings(text, directory)]


def rule(name: str, selectors: str = "", actions: str = "", hook: str = "request") -> str:
    return f"    - {{name: {name}, hook: {hook}, selectors: [{selectors}], actions: [{actions}]}}\n"


def rules(*texts: str) -> str:
    return "rules:\n  rules:\n" + "".join(texts)


def selector(kind: str, value: str, more: str = "") -> str:
    return f"{{type: {kind}, value: '{value}'{more}}}"


def suffix(value: str) -> str:
    return selector("qname_suffix", value)


def exact(value: str) -> str:
    return selector("qname_exact", value)


COVERED = [
    ("", ""),
    ("", exact("a.test.")),
    (suffix(".test."), suffix(".test.")),
    (suffix(".test."), exact("a.test.")),
    (suffix(".test."), exact("A.TEST.")),
    (suffix(".TEST."), suffix(".a.test.")),
    (suffix(".test."), f"{suffix('.a.test.')}, {selector('qtype', 'A')}"),
    (f"{selector('qtype', 'A')}", f"{selector('qtype', 'TYPE1')}, {selector('tag', 'x')}"),
    (
        f"{suffix('.test.')}, {selector('qtype', 'A')}",
        f"{selector('qtype', 'a')}, {exact('x.test.')}",
    ),
    (suffix("."), exact("a.test.")),
    (selector("sample_percent", "100"), selector("tag", "x")),
    (selector("every_nth_global", "1"), selector("tag", "x")),
    (selector("sample_percent", "5", ", key: k"), selector("sample_percent", "5.0", ", key: k")),
    (f"{suffix('.test.')}, {suffix('.a.test.')}", exact("b.a.test.")),
]


@pytest.mark.parametrize(("first", "second"), COVERED)
def test_unreachable_rule(first: str, second: str, tmp_path: Path) -> None:
    text = TWO_BACKENDS + rules(rule("first", first), rule("second", second))
    found = [f for f in findings(text, tmp_path) if f.code == "rule-unreachable"]
    assert [f.path for f in found] == [("rules", "rules", 1)]
    assert "rule 'second' is never reached: rule 'first' before it" in found[0].message


NOT_COVERED = [
    (exact("a.test."), ""),
    (exact("a.test."), suffix(".test.")),
    (suffix(".a.test."), suffix(".test.")),
    (suffix(".test."), exact("test.")),
    (suffix(".a.test."), suffix(".b.test.")),
    (selector("qtype", "A"), selector("qtype", "AAAA")),
    (f"{suffix('.test.')}, {selector('qtype', 'A')}", suffix(".a.test.")),
    (selector("tag", "x"), selector("tag", "X")),
    (selector("sample_percent", "5", ", key: k"), selector("sample_percent", "5", ", key: l")),
    (
        selector("sample_percent", "5", ", key_from: rule_name"),
        selector("sample_percent", "5", ", key_from: rule_name"),
    ),
    (selector("every_nth_global", "2"), selector("every_nth_worker", "2")),
]


@pytest.mark.parametrize(("first", "second"), NOT_COVERED)
def test_reachable_rule(first: str, second: str, tmp_path: Path) -> None:
    text = TWO_BACKENDS + rules(rule("first", first), rule("second", second))
    assert codes(text, tmp_path) == []


def test_other_hooks_cover_nothing(tmp_path: Path) -> None:
    text = TWO_BACKENDS + rules(rule("first"), rule("second", hook="response"))
    assert codes(text, tmp_path) == []


def test_a_covered_rule_covers_nothing_new(tmp_path: Path) -> None:
    text = TWO_BACKENDS + rules(
        rule("all", suffix(".test.")), rule("a", exact("a.test.")), rule("again", exact("a.test."))
    )
    found = findings(text, tmp_path)
    assert [f.path[2] for f in found] == [1, 2]
    assert all("rule 'all' before it" in f.message for f in found)


def test_dead_rules_match_nothing_in_the_rule_pass(tmp_path: Path) -> None:
    """Whatever the linter calls dead, the rule walk never finds: random rules, many queries."""
    pick = random.Random(7)
    names = ["test.", "a.test.", "b.test.", "b.a.test.", "x."]
    called_dead = never_found = 0
    for _ in range(40):
        texts = []
        for number in range(8):
            chosen = pick.sample(
                [
                    exact(pick.choice(names)),
                    suffix("." + pick.choice(names)),
                    selector("qtype", pick.choice(["A", "AAAA"])),
                    selector("tag", pick.choice(["x", "y"])),
                    selector("every_nth_global", pick.choice(["1", "2"])),
                ],
                pick.randrange(4),
            )
            texts.append(rule(f"r{number}", ", ".join(chosen)))
        loaded = load_text(BASE + TWO_BACKENDS + rules(*texts), str(tmp_path / "t.yaml"))
        dead = {
            f.path[2]
            for f in lint(loaded.config, loaded.base_dir)
            if f.code in ("rule-unreachable", "selector-conflict")
        }
        snapshot = snapshot_of(TWO_BACKENDS + rules(*texts))
        policy = compile_policy(
            loaded.config, loaded.base_dir, lambda tables: lambda rule, action: lambda txn: 0
        )
        assert policy.request is not None
        found = {
            match.position
            for qname in [*names, "c.b.a.test."]
            for qtype in ("A", "AAAA", "MX")
            for tags in ((), ("x",), ("y",), ("x", "y"))
            for number in (1, 2)
            if (match := policy.request.find(_transaction(snapshot, qname, qtype, tags, number)))
        }
        assert not dead & found
        called_dead += len(dead)
        never_found += 8 - len(found)
    # and it finds most of what no query reached
    assert called_dead > never_found / 2 > 20


def _transaction(
    snapshot: RuntimeSnapshot, qname: str, qtype: str, tags: tuple[str, ...], number: int
) -> Transaction:
    txn = Transaction(
        number, number, make_query(qname, qtype), snapshot, FakeListener(), "127.0.0.1", None, 0.0
    )
    for tag in tags:
        txn.set_flag(tag)
    return txn


@pytest.mark.parametrize(
    ("selectors", "at"),
    [
        (f"{selector('qtype', 'A')}, {selector('qtype', 'AAAA')}", 1),
        (f"{exact('a.test.')}, {selector('tag', 'x')}, {exact('b.test.')}", 2),
        (f"{suffix('.test.')}, {exact('a.example.')}", 1),
        (f"{suffix('.a.test.')}, {suffix('.test.')}, {suffix('.b.test.')}", 2),
        (f"{exact('test.')}, {suffix('.test.')}", 1),
    ],
)
def test_selectors_that_contradict(selectors: str, at: int, tmp_path: Path) -> None:
    (found,) = findings(TWO_BACKENDS + rules(rule("r", selectors)), tmp_path)
    assert (found.code, found.path) == (
        "selector-conflict",
        ("rules", "rules", 0, "selectors", at),
    )


@pytest.mark.parametrize(
    "selectors",
    [
        f"{selector('qtype', 'A')}, {selector('qtype', 'TYPE1')}",
        f"{suffix('.test.')}, {suffix('.a.TEST.')}, {exact('b.a.test.')}",
        f"{selector('tag', 'x')}, {selector('tag', 'y')}",
        f"{selector('edns_option', 'NSID')}, {selector('edns_option', 'COOKIE')}",
    ],
)
def test_selectors_that_agree(selectors: str, tmp_path: Path) -> None:
    assert codes(TWO_BACKENDS + rules(rule("r", selectors)), tmp_path) == []


@pytest.mark.parametrize(
    ("selector_text", "hook", "code"),
    [
        (exact("a.test"), "request", "missing-trailing-dot"),
        (exact(""), "request", "missing-trailing-dot"),
        (suffix(".test"), "request", "missing-trailing-dot"),
        (exact("WWW.Example."), "request", None),
        (suffix("test."), "request", "suffix-without-dot"),
        (suffix(".test."), "request", None),
        (suffix("."), "request", None),
        (suffix(""), "request", None),
        (selector("rcode", "SERVFAIL"), "request", "selector-never-matches"),
        (selector("answer_source", "cache"), "request", "selector-never-matches"),
        (selector("rcode", "SERVFAIL"), "response", None),
        (selector("rcode", "SERVFAIL"), "no_answer", None),
        (selector("answer_source", "cache"), "no_answer", "selector-never-matches"),
        (selector("answer_source", "forward"), "response", None),
        (selector("opcode", "OPCODE16"), "request", "selector-never-matches"),
        (selector("opcode", "NOTIFY"), "request", None),
        (selector("cache_instance", "x"), "response", "unknown-cache"),
    ],
)
def test_single_selectors(selector_text: str, hook: str, code: str | None, tmp_path: Path) -> None:
    text = TWO_BACKENDS + rules(rule("r", selector_text, hook=hook))
    assert codes(text, tmp_path) == ([] if code is None else [code])


def test_known_cache(tmp_path: Path) -> None:
    text = (
        TWO_BACKENDS
        + "caches: [{name: x, type: memory}]\n"
        + rules(rule("r", selector("cache_instance", "x"), hook="response"))
    )
    assert codes(text, tmp_path) == []


RETRY = "{type: retry}"


@pytest.mark.parametrize(
    ("pools", "actions", "code"),
    [
        (ONE_BACKEND, RETRY, "retry-without-target"),
        (ONE_BACKEND, "{type: retry_now}", "retry-without-target"),
        (ONE_BACKEND, "{type: set_retry_pool, value: main}, {type: retry}", "retry-without-target"),
        # the stored pool comes behind the end of the rule
        (
            TWO_POOLS,
            "{type: retry_now}, {type: set_pool, value: main}",
            "retry-without-target",
        ),
        (ONE_BACKEND, "{type: retry}, {type: clear_retry}", None),
        (ONE_BACKEND, "{type: drop_now}, {type: retry}", None),
        (TWO_BACKENDS, RETRY, None),
        # another pool is another attempt, even with the same address in it
        (TWO_POOLS, "{type: set_retry_pool, value: spare}, {type: retry}", None),
        (TWO_POOLS, "{type: retry}, {type: set_retry_pool, value: spare}", None),
        (TWO_POOLS, "{type: set_pool, value: spare}, {type: retry}", None),
    ],
)
def test_retry_without_target(pools: str, actions: str, code: str | None, tmp_path: Path) -> None:
    found = codes(pools + rules(rule("r", actions=actions, hook="response")), tmp_path)
    assert [c for c in found if c != "pool-unused"] == ([] if code is None else [code])


def test_retry_pool_of_another_rule_counts(tmp_path: Path) -> None:
    text = TWO_POOLS + rules(
        rule("prepare", actions="{type: set_retry_pool, value: spare}"),
        rule("again", actions=RETRY, hook="response"),
    )
    assert codes(text, tmp_path) == []


def test_retry_beside_a_script(tmp_path: Path) -> None:
    (tmp_path / "s.rhai").write_text("// chooses by itself")
    script = "{type: rhai, value: s.rhai}"
    text = ONE_BACKEND + rules(rule("r", actions=f"{script}, {RETRY}", hook="response"))
    assert codes(text, tmp_path) == []


def test_retry_without_attempts(tmp_path: Path) -> None:
    again = rules(rule("r", actions=RETRY, hook="response"))
    limits = "orchestrator: {max_attempts: 1}\n"
    assert codes(TWO_BACKENDS + limits + again, tmp_path) == ["retry-without-attempts"]
    assert codes(TWO_BACKENDS + limits, tmp_path) == []
    limits = "orchestrator: {max_attempts: 2}\n"
    assert codes(TWO_BACKENDS + limits + again, tmp_path) == []


def test_pool_unused(tmp_path: Path) -> None:
    (found,) = findings(TWO_POOLS, tmp_path)
    assert (found.code, found.path) == ("pool-unused", ("pools", 1, "name"))
    # the pool named default serves what nothing sends elsewhere, not the first one
    (found,) = findings(TWO_POOLS.replace("spare", "default"), tmp_path)
    assert found.path == ("pools", 0, "name")
    for action in ("set_pool", "set_retry_pool"):
        used = rules(rule("r", actions=f"{{type: {action}, value: spare}}"))
        assert codes(TWO_POOLS + used, tmp_path) == []


def test_pool_named_in_a_script(tmp_path: Path) -> None:
    text = TWO_POOLS + rules(rule("r", actions="{type: rhai, value: s.rhai}"))
    # a script that cannot be read may name anything
    assert codes(text, tmp_path) == []
    (tmp_path / "s.rhai").write_text('set_pool("spare");')
    assert codes(text, tmp_path) == []
    (tmp_path / "s.rhai").write_text('set_pool("main");')
    assert codes(text, tmp_path) == ["pool-unused"]


TABLE = "data_sources: [{name: lan, type: cidr, path: lan.txt}]\n"


def test_table_unused(tmp_path: Path) -> None:
    (found,) = findings(TWO_BACKENDS + TABLE, tmp_path)
    assert (found.code, found.path) == ("table-unused", ("data_sources", 0, "name"))
    csv = TABLE.replace("cidr", "csv")
    assert codes(TWO_BACKENDS + csv, tmp_path) == ["table-unused"]
    acls = "acls: {rules: [{match: lan, action: drop}]}"
    assert codes(TWO_BACKENDS + TABLE + acls + "\n", tmp_path) == []
    by_rule = rules(rule("r", selector("client_cidr", "lan")))
    assert codes(TWO_BACKENDS + TABLE + by_rule, tmp_path) == []
    loaded = load_text(
        BASE.replace("protocol: udp", f"protocol: udp, {acls}") + TWO_BACKENDS + TABLE,
        str(tmp_path / "test.yaml"),
    )
    assert lint(loaded.config, loaded.base_dir) == []


def test_table_named_in_a_script(tmp_path: Path) -> None:
    text = TWO_BACKENDS + TABLE + rules(rule("r", actions="{type: rhai, value: s.rhai}"))
    (tmp_path / "s.rhai").write_text('table_get("lan", client)')
    assert codes(text, tmp_path) == []
    (tmp_path / "s.rhai").write_text('table_get("wan", client)')
    assert codes(text, tmp_path) == ["table-unused"]
    (tmp_path / "s.rhai").unlink()
    assert codes(text, tmp_path) == []


AGAIN = rules(rule("r", actions=RETRY, hook="response"))


@pytest.mark.parametrize(
    ("attempts", "tail", "expected"),
    [
        (4, AGAIN, ["attempts-exceed-backends"]),
        (2, AGAIN, []),
        # the built-in value is no choice of the file
        (3, AGAIN, []),
        # without a retry there is one attempt, whatever the limit
        (4, "", []),
    ],
)
def test_more_attempts_than_backends(
    attempts: int, tail: str, expected: list[str], tmp_path: Path
) -> None:
    limits = f"orchestrator: {{max_attempts: {attempts}}}\n"
    assert codes(TWO_BACKENDS + limits + tail, tmp_path) == expected


@pytest.mark.parametrize(
    ("timeout", "duration", "tail", "fragment"),
    [
        (3000, 5000, AGAIN, "response rules are not run after the last timeout"),
        (3000, 2000, AGAIN, "attempt 2 is never made"),
        (3000, 2000, "", "1 attempt of forward.timeout_ms 3000 take"),
        # waiting takes a little longer than the timeout
        (3000, 6000, AGAIN, "response rules are not run after the last timeout"),
        (3000, 3000, AGAIN, "attempt 2 is never made"),
        (3000, 6001, AGAIN, None),
        (3000, 3001, "", None),
        (0, 0, AGAIN, None),
    ],
)
def test_attempts_that_outlast_the_transaction(
    timeout: int, duration: int, tail: str, fragment: str | None, tmp_path: Path
) -> None:
    text = (
        f"forward: {{timeout_ms: {timeout}}}\n"
        f"orchestrator: {{max_txn_duration_ms: {duration}}}\n" + tail
    )
    found = findings(TWO_BACKENDS + text, tmp_path)
    assert [f.code for f in found] == ([] if fragment is None else ["attempts-exceed-duration"])
    assert fragment is None or fragment in found[0].message


def test_built_in_limits_earn_no_warning(tmp_path: Path) -> None:
    pools = TWO_BACKENDS.replace("]}]", ', {address: "127.0.0.1:3"}]}]')
    assert codes(pools + AGAIN, tmp_path) == []


def test_order_is_that_of_the_blocks(tmp_path: Path) -> None:
    text = (
        TWO_POOLS
        + TABLE
        + "orchestrator: {max_txn_duration_ms: 5}\n"
        + rules(rule("a", suffix("x.")), rule("b"), rule("c", suffix("y.")))
    )
    assert codes(text, tmp_path) == [
        "attempts-exceed-duration",
        "pool-unused",
        "suffix-without-dot",
        "suffix-without-dot",
        "rule-unreachable",
        "table-unused",
    ]


def test_every_code_is_documented() -> None:
    root = Path(__file__).resolve().parent.parent.parent
    sources = "".join(path.read_text() for path in (root / "conduit/policy").glob("lint*.py"))
    used = set(re.findall(r'^ +"([a-z]+(?:-[a-z]+)+)",?$', sources, re.MULTILINE))
    used |= set(re.findall(r', "([a-z]+(?:-[a-z]+)+)"$', sources, re.MULTILINE))
    documented = set(re.findall(r"^## (.+)$", (root / "docs/lint.md").read_text(), re.MULTILINE))
    assert used | {"unknown-key", "script-metric"} == documented
    assert len(used) == 12


@pytest.mark.parametrize("shape", ["names", "one suffix", "grid"])
def test_ten_thousand_rules(shape: str, tmp_path: Path) -> None:
    make = {
        "names": lambda n: suffix(f".host{n}.zone{n % 7}.test."),
        "one suffix": lambda n: f"{suffix('.test.')}, {selector('tag', f't{n}')}",
        "grid": lambda n: f"{selector('tag', f'a{n // 100}')}, {selector('tag', f'b{n % 100}')}",
    }[shape]
    texts = [rule(f"r{n}", make(n)) for n in range(10_000)]
    texts.append(rule("covered", f"{make(5000)}, {selector('qtype', 'A')}"))
    loaded = load_text(BASE + TWO_BACKENDS + rules(*texts), str(tmp_path / "test.yaml"))
    started = time.process_time()
    found = lint(loaded.config, loaded.base_dir)
    # processor time of this process: other load on the machine does not count
    assert time.process_time() - started < 2.0
    assert [f.path[2] for f in found if f.code == "rule-unreachable"] == [10_000]
