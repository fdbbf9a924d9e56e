"""Imports between the folders of the library go one way, from higher floors to lower ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.architecture import PAGE, ROOT, floors, page, parts, without_shortcuts

#: Most floors of the library: a folder stands one floor above the highest that it imports.
MAX_FLOORS = 10


def test_no_folders_import_each_other() -> None:
    assert max(floors(parts()).values()) < MAX_FLOORS


def test_a_circle_is_found(tmp_path: Path) -> None:
    for name, text in {
        "lower/a.py": "from fsjax.errors import X\n",
        "upper/b.py": "def f():\n    from fsjax.lower import a\n",
        "errors.py": "X = 1\n",
    }.items():
        path = tmp_path / "fsjax" / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text)
    assert floors(parts(tmp_path)) == {"fsjax.errors": 0, "fsjax.lower": 1, "fsjax.upper": 2}
    (tmp_path / "fsjax" / "lower" / "c.py").write_text("import fsjax.upper.b\n")
    with pytest.raises(ValueError, match="fsjax.lower -> fsjax.upper -> fsjax.lower"):
        floors(parts(tmp_path))


def test_arrows_that_follow_from_others_are_left_out() -> None:
    graph = {"a": {"b", "c"}, "b": {"c"}, "c": set()}
    assert without_shortcuts(graph) == {"a": {"b"}, "b": {"c"}, "c": set()}


def test_the_page_has_the_graph_and_names_every_folder() -> None:
    assert PAGE.read_text() == page(), "run python -m tools.architecture"
    text = PAGE.read_text(encoding="utf-8")
    package = ROOT / "fsjax"
    folders = [path.parent.relative_to(package) for path in package.rglob("*/__init__.py")]
    assert folders
    missing = [folder.as_posix() for folder in folders if f"`{folder.as_posix()}/`" not in text]
    assert not missing, f"ARCHITECTURE.md has no line for {missing}"
