"""Every vector of the language chapter: value, error kind, full error text and printed lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.rhai.running import limits_of, run, same

VECTORS = [
    json.loads(line)
    for line in (Path(__file__).parent / "vectors.jsonl").read_text("utf-8").splitlines()
]
#: The exact operation at which a budget ends may differ (chapter 36, O-3).
INEXACT_POSITION = {"limit-01"}


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["id"] for vector in VECTORS])
def test_vector(vector: dict[str, Any]) -> None:
    outcome = run(vector["script"], limits_of(vector.get("limits", {})))
    assert same(outcome.expect, vector["expect"]), (outcome, vector)
    if "output" in vector:
        assert outcome.output == vector["output"]
    if "message" in vector and vector["id"] not in INEXACT_POSITION:
        assert outcome.message == vector["message"]
