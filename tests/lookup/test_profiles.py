"""Lookup profiles: which one a query uses, and what cannot be chosen (chapter 40 section 1)."""

from __future__ import annotations

import pytest

from conduit.config import ConfigError, load_text
from tests.support.scripted import ScriptedRun, answer, snapshot_of

POOLS = "pools: [{name: default, backends: [{address: '127.0.0.1:5301'}]}]\n"
FORWARD_ONLY = "lookup: {profiles: {other: {providers: [{type: forward}]}}}\n"


def rule(hook: str, profile: str) -> str:
    return (
        f"rules: {{rules: [{{name: r, hook: {hook}, selectors: [],"
        f" actions: [{{type: set_lookup_profile, value: {profile}}}]}}]}}\n"
    )


def test_without_a_lookup_block_queries_are_forwarded() -> None:
    assert ScriptedRun(snapshot_of(POOLS), [answer()]).go().rcode == "NOERROR"


def test_without_a_default_profile_queries_that_choose_none_fail() -> None:
    run = ScriptedRun(snapshot_of(POOLS + FORWARD_ONLY), []).go()
    assert run.rcode == "SERVFAIL"
    assert run.txn.convergence_reason == "unknown_profile"


def test_a_request_rule_chooses_a_profile() -> None:
    yaml = POOLS + FORWARD_ONLY + rule("request", "other")
    run = ScriptedRun(snapshot_of(yaml), [answer()]).go()
    assert run.rcode == "NOERROR"
    assert run.txn.lookup_profile == "other"
    assert run.recorder.lookup_outcomes == {("other", "forward", "answered"): 1}


def test_the_choice_is_locked_once_lookup_is_entered() -> None:
    run = ScriptedRun(snapshot_of(POOLS), [answer()]).go()
    run.txn.set_lookup_profile("late")
    assert run.txn.lookup_profile == "default"


@pytest.mark.parametrize(
    ("hook", "profile", "fragments"),
    [
        ("request", "ghost", ["unknown lookup profile 'ghost'", "rule 'r'"]),
        ("response", "other", ["set_lookup_profile", "request hook"]),
        ("no_answer", "other", ["set_lookup_profile", "no_answer"]),
    ],
)
def test_what_validation_refuses(hook: str, profile: str, fragments: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        load_text("schema_version: 1\n" + POOLS + FORWARD_ONLY + rule(hook, profile), "t.yaml")
    text = "; ".join(str(d) for d in caught.value.diagnostics)
    assert all(fragment in text for fragment in fragments), text
