"""The folders of fsjax on floors, as their imports have it: ``docs/pictures/architecture.png``.

    python -m tools.architecture

A part is a folder, or a module beside the folders. It is one floor above the highest part that it
imports; imports inside functions count, those for type checkers alone do not. Arrows that follow
from others are left out of the picture, as are a few helpers that most parts import.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from matplotlib.path import Path as Curve

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "pictures" / "architecture.png"

#: What each part imports.
Graph = Mapping[str, set[str]]

#: Inches: width of a character and of the rest of a box, height of a box, between floors, between
#: boxes, width of the picture at most. An arrow that passes a floor takes a little room on it.
CHARACTER, MARGIN, HEIGHT, FLOOR, SPACE, WIDTH = 0.078, 0.16, 0.27, 0.74, 0.14, 9.0
PASSING = 0.05

#: Of folders, of modules beside them, and of arrows.
FOLDER, MODULE, ARROW = "#cfe3f5", "#ffffff", "#8a93a0"

#: Folders that stand on public names of the others; tests/test_wings.py has their own floors.
WINGS = ("fsjax.auto",)

#: Helpers that parts on many floors import; their arrows would hide the others.
HELPERS = tuple(
    f"fsjax.{name}"
    for name in (
        "distinct_columns", "errors", "extras", "groups", "signatures", "typing", "user_functions",
        "version",
    )
)  # fmt: skip


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


class Layout:
    """Places of boxes, and of arrows between the boxes of the floors that they pass.

    Attributes:
      rows: what is on each floor, from left to right: parts, and (from, to, floor) of arrows.
      x: the middle of each of them, in inches.
    """

    def __init__(self, graph: Graph, floor: Mapping[str, int]) -> None:
        self.floor = floor
        self.rows: list[list] = [[] for _ in range(max(floor.values()) + 1)]
        self.neighbours: dict[object, list] = defaultdict(list)
        for part in sorted(graph, key=lambda name: (-len(graph[name]), name)):
            self.rows[floor[part]].append(part)
        for part, targets in sorted(graph.items()):
            for target in sorted(targets):
                chain = self.chain(part, target)
                for item, number in zip(
                    chain[1:-1], range(floor[part] - 1, floor[target], -1), strict=True
                ):
                    self.rows[number].append(item)
                for upper, lower in zip(chain, chain[1:], strict=False):
                    self.neighbours[upper].append(lower)
                    self.neighbours[lower].append(upper)
        self.x = {item: place for row in self.rows for place, item in enumerate(row)}
        for _ in range(60):
            for row in (*self.rows, *reversed(self.rows)):
                self._settle(row)

    def chain(self, part: str, target: str) -> list:
        """An arrow: its ends, and its place on each floor between them, from above."""
        between = range(self.floor[part] - 1, self.floor[target], -1)
        return [part, *((part, target, number) for number in between), target]

    def _settle(self, row: list) -> None:
        """Moves what is on a floor towards its neighbours above and below, without overlaps."""
        wish = {
            item: np.mean([self.x[other] for other in self.neighbours[item]])
            if self.neighbours[item]
            else self.x[item]
            for item in row
        }
        row.sort(key=lambda item: wish[item])
        widths = [width(item) for item in row]
        gaps = [(a + b) / 2 + SPACE for a, b in zip(widths, widths[1:], strict=False)]
        offsets = np.concatenate([[0.0], np.cumsum(gaps)]) if row else np.zeros(0)
        # Places in order with these gaps, closest to the wishes: an isotonic regression.
        settled = _ascending(np.array([wish[item] for item in row]) - offsets) + offsets
        half = WIDTH / 2 - (widths[0] if row else 0.0) / 2
        settled += np.clip(0.0, -half - settled.min(), None) if len(row) else 0.0
        over = settled[-1] - (WIDTH / 2 - widths[-1] / 2)
        settled -= max(over, 0.0)
        self.x.update(zip(row, settled, strict=True))


def _ascending(values: np.ndarray) -> np.ndarray:
    """The closest values that do not descend, by pooling neighbours."""
    pools: list[list[float]] = []
    for value in values:
        pools.append([value, 1])
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (first, size), (second, other) = pools[-2:]
            pools[-2:] = [[(first * size + second * other) / (size + other), size + other]]
    return np.concatenate([np.full(int(size), mean) for mean, size in pools])


def width(item: object) -> float:
    return CHARACTER * len(label(item)) + MARGIN if isinstance(item, str) else PASSING


def label(part: str) -> str:
    return part.removeprefix("fsjax.").replace(".", "/")


def draw(graph: Graph, folders: Sequence[str]) -> Figure:
    """The picture: folders in blue, modules beside them in white, arrows to what is imported."""
    floor = floors(graph)
    arrows = without_shortcuts(graph)
    layout = Layout(arrows, floor)
    height = FLOOR * len(layout.rows)
    left = min(layout.x[part] - width(part) / 2 for part in graph) - SPACE
    right = max(layout.x[part] + width(part) / 2 for part in graph) + SPACE
    figure = Figure(figsize=(right - left, height), dpi=200, facecolor="white")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(left, right), ylim=(-FLOOR / 2, height - FLOOR / 2))
    axes.set_axis_off()
    for part, targets in arrows.items():
        for target in targets:
            _arrow(axes, layout, part, target)
    for part in graph:
        _box(axes, layout.x[part], FLOOR * floor[part], part, FOLDER if part in folders else MODULE)
    return figure


def _box(axes: Axes, x: float, y: float, part: str, color: str) -> None:
    size = width(part)
    axes.add_patch(
        FancyBboxPatch(
            (x - size / 2, y - HEIGHT / 2), size, HEIGHT, boxstyle="round,pad=0,rounding_size=0.06",
            facecolor=color, edgecolor="#3b4652", linewidth=0.8, zorder=3,
        )
    )  # fmt: skip
    axes.text(x, y, label(part), fontsize=9, ha="center", va="center", zorder=4)


def _arrow(axes: Axes, layout: Layout, part: str, target: str) -> None:
    """An arrow from a box to one below it, upright where it passes floors."""
    chain = layout.chain(part, target)
    top = FLOOR * layout.floor[part] - HEIGHT / 2
    points, codes = [(layout.x[part], top)], [Curve.MOVETO]
    for number, item in enumerate(chain[1:], 1):
        middle = FLOOR * (layout.floor[part] - number)
        last = item == target
        end = middle + HEIGHT / 2
        (x0, y0), x1 = points[-1], layout.x[item]
        bend = (y0 - end) / 2
        points += [(x0, y0 - bend), (x1, end + bend), (x1, end)]
        codes += [Curve.CURVE4] * 3
        if not last:
            points.append((x1, middle - HEIGHT / 2))
            codes.append(Curve.LINETO)
    axes.add_patch(
        FancyArrowPatch(
            path=Curve(points, codes), arrowstyle="-|>", mutation_scale=7, color=ARROW,
            linewidth=0.8, zorder=2, shrinkA=0, shrinkB=0,
        )
    )  # fmt: skip


def main() -> None:
    graph = parts()
    floors(graph)
    folders = [part for part in graph if (ROOT / part.replace(".", "/")).is_dir()]
    left_out = {"fsjax", *HELPERS}
    drawn = {part: targets - left_out for part, targets in graph.items() if part not in left_out}
    draw(drawn, folders).savefig(PICTURE, metadata={"Software": None})
    print(PICTURE.relative_to(ROOT))


if __name__ == "__main__":
    main()
