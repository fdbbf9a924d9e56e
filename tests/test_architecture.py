"""Imports between the folders of the library go one way, from higher floors to lower ones."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

#: Most floors of the library: a folder stands one floor above the highest that it imports.
MOST_FLOORS = 10


def modules_of(root: Path) -> dict[str, Path]:
    """The files of the library by the names of their modules."""
    files = {}
    for path in sorted((root / "fsjax").rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return files


def imported_names(tree: ast.AST) -> Iterator[str]:
    """Modules, and names within them, that a file imports anywhere but for type checkers."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        yield from imported_names(node)


def folders_imported(root: Path) -> dict[str, set[str]]:
    """For each folder the others that it imports; a file directly in ``fsjax/`` is its own."""
    modules = modules_of(root)

    def folder(module: str) -> str:
        parent = modules[module].parent
        return module if parent == root / "fsjax" else ".".join(parent.relative_to(root).parts)

    imports: dict[str, set[str]] = {folder(module): set() for module in modules}
    for module, path in modules.items():
        for name in imported_names(ast.parse(path.read_text(encoding="utf-8"))):
            imported = name if name in modules else name.rpartition(".")[0]
            if imported in modules:
                imports[folder(module)].add(folder(imported))
    return {name: targets - {name} for name, targets in imports.items()}


def floors_of(imports: Mapping[str, set[str]]) -> dict[str, int]:
    """The floor of each folder, from 0; those on a circle, and above one, have none."""
    floors: dict[str, int] = {}
    while ready := [
        name for name, targets in imports.items() if name not in floors and targets <= floors.keys()
    ]:
        floors |= {
            name: 1 + max((floors[target] for target in imports[name]), default=-1)
            for name in ready
        }
    return floors


def check_folders(root: Path) -> int:
    """How many floors there are; AssertionError for folders that import each other in a circle."""
    imports = folders_imported(root)
    floors = floors_of(imports)
    remaining = {
        name: sorted(targets - floors.keys())
        for name, targets in imports.items()
        if name not in floors
    }
    assert not remaining, f"folders on a circle of imports, or above one: {remaining}"
    return max(floors.values()) + 1


def test_no_folders_import_each_other() -> None:
    assert check_folders(ROOT) <= MOST_FLOORS


def test_a_circle_is_found(tmp_path: Path) -> None:
    for name, text in {
        "lower/a.py": "from fsjax.errors import X\n",
        "upper/b.py": "def f():\n    from fsjax.lower import a\n",
        "errors.py": "X = 1\n",
    }.items():
        path = tmp_path / "fsjax" / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text)
    assert check_folders(tmp_path) == 3
    (tmp_path / "fsjax" / "lower" / "c.py").write_text("import fsjax.upper.b\n")
    with pytest.raises(AssertionError, match=r"fsjax\.lower.*fsjax\.upper"):
        check_folders(tmp_path)
