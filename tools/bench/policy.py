"""Policy: what rules and scripts cost."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tools.bench.alternatives import in_turn
from tools.bench.report import Bars, as_json, median, ratio, say

RULE_COUNTS = (0, 10, 1_000, 10_000)


def name_rules(count: int) -> str:
    """A `rules` block of `count` exact and suffix rules that no benchmark query matches."""
    if not count:
        return ""
    lines = ["rules:", "  rules:"]
    for number in range(count):
        kind = "qname_exact" if number % 2 else "qname_suffix"
        dot = "" if number % 2 else "."
        lines.append(
            f"    - {{ name: r{number}, hook: request, selectors: [{{ type: {kind}, "
            f'value: "{dot}blocked{number}.example.net." }}], actions: [{{ type: drop }}] }}'
        )
    return "\n".join(lines) + "\n"


def rules(folder: Path, options: argparse.Namespace, bars: Bars) -> dict[str, Any]:
    """Forwarding with 0, 10, 1,000 and 10,000 name rules, each in turn."""
    rounds = in_turn(
        folder, options, {f"rules{count}": name_rules(count) for count in RULE_COUNTS}, "rules"
    )
    say(f"\nforward with name rules, {options.window} outstanding")
    base = rounds["rules0"]
    for name, values in rounds.items():
        rate = median([r.rate for r in values])
        say(f"  {name:<12}{rate:>9.0f} q/s{ratio(values, base):>8.3f} of none")
    share = ratio(rounds[f"rules{RULE_COUNTS[-1]}"], base)
    bars.check("rate with 10,000 name rules against none (at least 0.85)", share, share >= 0.85)
    return {"rounds": as_json(rounds)}


#: A policy script of the usual kind: two suffixes, a table, a tag, a pool.
SCRIPT = """
let q = txn.question();
let name = q.qname;
if name.ends_with(".ads.example.") || name.ends_with(".bad.example.") {
    txn.drop_query_now();
}
if lookup("blocked", name) == "block" {
    txn.set_tag("blocked", true);
} else if txn.client_ip().starts_with("127.") && q.qtype == RecordType::A {
    txn.set_tag("local", true);
    txn.set_pool("default");
}
"""
SCRIPT_YAML = (
    "data_sources: [{ name: blocked, type: csv, path: blocked.csv }]\n"
    "rules: { rules: [{ name: policy, hook: request, selectors: [], "
    "actions: [{ type: rhai, value: policy.rhai }] }] }\n"
)


def script(folder: Path, options: argparse.Namespace, bars: Bars) -> dict[str, Any]:
    """Forwarding with a policy script on every query, against forwarding without."""
    (folder / "policy.rhai").write_text(SCRIPT)
    (folder / "blocked.csv").write_text("key,value\nbad.example.,block\n")
    rounds = in_turn(folder, options, {"plain": "", "script": SCRIPT_YAML}, "script")
    say(f"\nforward with a policy script, {options.window} outstanding")
    for name, values in rounds.items():
        say(f"  {name:<12}{median([r.rate for r in values]):>9.0f} q/s")
    share = ratio(rounds["script"], rounds["plain"])
    bars.check("rate with a script against none (at least 0.85)", share, share >= 0.85)
    return {"rounds": as_json(rounds)}
