"""`tools/generate-proto` and the committed modules."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_committed_modules_are_what_the_tool_writes(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "tools" / "generate-proto"), str(tmp_path)]
    subprocess.run(command, check=True, timeout=60)
    fresh = {path.name: path for path in (tmp_path / "conduit" / "v1").iterdir()}
    committed = {path.name for path in (ROOT / "conduit" / "v1").glob("*_pb2*")}
    assert committed == set(fresh)
    for name, path in fresh.items():
        assert _code(path) == _code(ROOT / "conduit" / "v1" / name), name


def _code(path: Path) -> list[str]:
    """The lines of a module without those that name the version of the generator."""
    lines = path.read_text().splitlines()
    start = next((n for n, line in enumerate(lines) if "DESCRIPTOR = " in line), 0)
    found = lines[start:]
    return [line for line in found if "_VERSION" not in line]
