"""The floors of docs/architecture.md: a package imports only from floors below its own."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent / "conduit"

# The longest matching prefix decides.
FLOORS = {
    "conduit.wire": 0,
    "conduit.rhai": 0,
    # generated; nothing of ours below it
    "conduit.v1": 0,
    "conduit.config": 1,
    "conduit.observe": 4,
    "conduit.observe.counters": 1,
    "conduit.observe.families": 1,
    "conduit.observe.labels": 1,
    "conduit.observe.logging": 1,
    "conduit.observe.plan": 2,
    "conduit.observe.events": 2,
    "conduit.observe.tracing": 2,
    "conduit.policy": 2,
    "conduit.scripting": 2,
    "conduit.upstream": 2,
    "conduit.lookup.cache": 2,
    "conduit.transaction": 3,
    "conduit.snapshot": 3,
    "conduit.lookup": 3,
    "conduit.pipeline": 3,
    "conduit.runtime": 4,
    "conduit.control": 5,
    "conduit.cli": 6,
}
# the package itself holds only its version
NEUTRAL = {"conduit", "conduit.observe.__init__"}


def floor_of(module: str) -> int | None:
    parts = module.split(".")
    for length in range(len(parts), 1, -1):
        floor = FLOORS.get(".".join(parts[:length]))
        if floor is not None:
            return floor
    return None


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def runtime_imports(tree: ast.Module) -> list[tuple[int, str]]:
    """Imported modules with line numbers, those under `if TYPE_CHECKING:` left out."""
    found: list[tuple[int, str]] = []

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            for child in node.orelse:
                visit(child)
            return
        if isinstance(node, ast.Import):
            found.extend((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: relative import"
            assert node.module is not None
            found.append((node.lineno, node.module))
            found.extend((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(tree)
    return found


FILES = sorted(p for p in ROOT.rglob("*.py") if p.name != "__main__.py")


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_only_from_lower_floors(path: Path) -> None:
    module = module_name(path)
    if module in NEUTRAL or (path.name == "__init__.py" and module == "conduit.observe"):
        return
    own = floor_of(module)
    assert own is not None, f"{module} has no floor: name it in FLOORS and docs/architecture.md"
    room = module.split(".")[1]
    for line, imported in runtime_imports(ast.parse(path.read_text(), str(path))):
        if not imported.startswith("conduit.") or imported.split(".")[1] == room:
            continue
        other = floor_of(imported)
        if other is None:
            continue
        allowed = other <= own if own >= 2 else other < own
        assert allowed, f"{path}:{line}: floor {own} imports {imported} of floor {other}"


@pytest.mark.parametrize("package", ["rhai"])
def test_rhai_knows_nothing_of_the_project(package: str) -> None:
    for path in (ROOT / package).rglob("*.py"):
        for line, imported in runtime_imports(ast.parse(path.read_text(), str(path))):
            assert not imported.startswith("conduit.") or imported.startswith("conduit.rhai"), (
                f"{path}:{line}: imports {imported}"
            )
            assert imported != "dns"
            assert not imported.startswith("dns."), f"{path}:{line}: imports {imported}"
