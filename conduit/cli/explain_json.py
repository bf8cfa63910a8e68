"""The explanation of one query as JSON; the keys are documented in docs/explain.md."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Final, TextIO

from conduit.cli.explain_record import Explanation

#: Raised when a key changes its meaning or goes away; new keys do not raise it.
FORMAT_VERSION: Final = 1


def write_explanation_json(explanation: Explanation, out: TextIO) -> None:
    """Write one JSON object and a line end."""
    json.dump({"explain_version": FORMAT_VERSION, **asdict(explanation)}, out, indent=2)
    out.write("\n")
