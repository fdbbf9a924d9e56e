"""The folders of fsjax on floors, as their imports have it: the graph of ``ARCHITECTURE.md``.

    python -m tools.architecture

writes it. A part is a folder, or a module beside the folders. It is one floor above the highest
part that it imports; imports inside functions count, those for type checkers alone do not. Arrows
that follow from others are left out of the graph, as are a few helpers that most parts import.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "ARCHITECTURE.md"

#: What each part imports.
Graph = Mapping[str, set[str]]

#: Folders that stand on public names of the others; tests/test_wings.py has their own floors.
WINGS = ("fsjax.auto",)

#: Helpers that parts on many floors import; their arrows would hide the others.
HELPERS = ("fsjax.errors", "fsjax.extras", "fsjax.typing")


def modules(root: Path = ROOT) -> dict[str, Path]:
    """Files of the package by the name under which they are imported; ``__main__.py`` is not."""
    names = {}
    for path in sorted((root / "fsjax").rglob("*.py")):
        if path.stem == "__main__":
            continue
        parts = path.relative_to(root).with_suffix("").parts
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return names


def part_of(module: str, path: Path, root: Path = ROOT) -> str:
    """The folder of a module, or the module itself if it lies beside the folders.

    A wing is one part with all of its folders.
    """
    folder = path.relative_to(root).parent.parts
    if ".".join(folder[:2]) in WINGS:
        return ".".join(folder[:2])
    return module if folder == ("fsjax",) else ".".join(folder)


def imports(tree: ast.AST) -> Iterator[tuple[str, str | None]]:
    """Pairs of a module and a name in it, ``None`` for the module as a whole."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, alias.name) for alias in node.names)
        yield from imports(node)


def parts(root: Path = ROOT) -> dict[str, set[str]]:
    """The parts of the package, and what each imports of the others."""
    files = modules(root)
    graph: dict[str, set[str]] = defaultdict(set)
    for module, path in files.items():
        part = part_of(module, path, root)
        graph[part] |= set()
        for name, attribute in imports(ast.parse(path.read_text(encoding="utf-8"))):
            target = f"{name}.{attribute}" if f"{name}.{attribute}" in files else name
            if target in files:
                graph[part].add(part_of(target, files[target], root))
    return {part: targets - {part} for part, targets in graph.items()}


def floors(graph: Graph) -> dict[str, int]:
    """The length of the longest chain of imports below each part.

    Raises:
      ValueError: if parts import one another in a circle.
    """
    floor: dict[str, int] = {}

    def visit(part: str, above: tuple[str, ...]) -> int:
        if part in above:
            circle = (*above[above.index(part) :], part)
            raise ValueError(f"parts of fsjax import one another: {' -> '.join(circle)}")
        if part not in floor:
            below = [visit(target, (*above, part)) for target in sorted(graph[part])]
            floor[part] = max(below, default=-1) + 1
        return floor[part]

    for part in sorted(graph):
        visit(part, ())
    return floor


def without_shortcuts(graph: Graph) -> dict[str, set[str]]:
    """The arrows that do not follow from others: what is imported by way of no other part."""

    def reached(part: str) -> set[str]:
        return set().union(*({target} | reached(target) for target in graph[part]))

    return {
        part: targets - set().union(*(reached(target) for target in targets))
        for part, targets in graph.items()
    }


def drawn() -> str:
    """The Mermaid block of the page: each folder or module above what it imports."""
    graph = parts()
    floor = floors(graph)
    left_out = {"fsjax", *HELPERS}
    arrows = without_shortcuts(
        {part: targets - left_out for part, targets in graph.items() if part not in left_out}
    )
    lines = ["```mermaid", "graph TD"]
    for part in sorted(arrows, key=lambda part: (-floor[part], part)):
        lines += [f"  {_label(part)} --> {_label(target)}" for target in sorted(arrows[part])]
    return "\n".join([*lines, "```"])


def _label(part: str) -> str:
    return part.removeprefix("fsjax.").replace(".", "/")


def page() -> str:
    """``ARCHITECTURE.md`` with the graph as it is now."""
    return re.sub(r"```mermaid\n.*?```", drawn(), PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
