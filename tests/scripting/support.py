"""Runs policy scripts inside the pipeline: a snapshot with a script rule, a scripted upstream."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from conduit.transaction import Transaction
from tests.support.scripted import Answer, ScriptedRun, answer, make_query, snapshot_of

POOLS = (
    "pools: [{name: default, backends: [{address: '192.0.2.1:53', name: b1}]}, "
    "{name: b, backends: [{address: '192.0.2.2:53'}]}]\n"
)
OK = answer(records=["192.0.2.9"])


def configuration(
    folder: Path,
    actions: Sequence[str | dict[str, str]],
    hook: str = "request",
    rest: str = "",
    pools: str = POOLS,
) -> str:
    """YAML with one rule; an action that is text is a script, written to a file in `folder`."""
    listed: list[dict[str, str]] = []
    for number, action in enumerate(actions):
        if isinstance(action, str):
            (folder / f"s{number}.rhai").write_text(action, encoding="utf-8")
            listed.append({"type": "rhai", "value": f"s{number}.rhai"})
        else:
            listed.append(action)
    rules = {"rules": [{"name": "r1", "hook": hook, "selectors": [], "actions": listed}]}
    return f"{pools}rules: {json.dumps(rules)}\n{rest}"


def run(
    folder: Path,
    *actions: str | dict[str, str],
    hook: str = "request",
    answers: Sequence[Answer] | None = None,
    rest: str = "",
    setup: Callable[[Transaction], None] = lambda txn: None,
    pools: str = POOLS,
    **options: Any,
) -> ScriptedRun:
    """Run one query through a rule with `actions`."""
    snapshot = snapshot_of(configuration(folder, actions, hook, rest, pools), str(folder))
    query = options.pop("query", None) or make_query(options.pop("qname", "www.example.test."))
    return ScriptedRun(
        snapshot, [OK] if answers is None else answers, query=query, setup=setup, **options
    ).go()


def tags(done: ScriptedRun) -> dict[str, Any]:
    """All tags of the transaction."""
    return {**(done.txn.flags or {}), **(done.txn.strings or {})}


def errors(done: ScriptedRun) -> dict[str, int]:
    """Script errors by reason."""
    return {str(key[0]): count for key, count in done.recorder.script_errors.items()}
